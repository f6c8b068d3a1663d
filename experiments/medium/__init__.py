"""The tasks of the paper at a size that looks like physics: who is ahead in equal time?

``python -m experiments.medium`` trains; see `experiments.medium.presets` for what.
"""
