"""Stresses as tensors against stresses as numbers: forecasts of elastic waves.

``python -m experiments.tensors`` trains; see `experiments.tensors.presets` for what.
"""
