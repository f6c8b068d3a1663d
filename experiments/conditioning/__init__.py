"""Do kernels that see the field beat plain global context at equal cost?

``python -m experiments.conditioning`` trains; see `experiments.conditioning.presets` for what.
"""
