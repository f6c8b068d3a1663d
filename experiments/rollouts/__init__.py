"""What makes forecasts last: levers of training, for several networks, in rollouts.

``python -m experiments.rollouts`` trains; see `experiments.rollouts.presets` for what.
"""
