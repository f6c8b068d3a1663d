"""Where will five charged particles be? The benchmark of EGNN, SEGNN and CGENN.

``python -m experiments.nbody`` trains; see `experiments.nbody.presets` for what.
"""
