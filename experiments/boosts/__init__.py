"""Networks trained at rest, seen by observers that move: ``python -m experiments.boosts``.

Needs ``cscnn[all]``.
"""

#: Of a study: all models on one grid; some of them on other grids, with a longer displacement, and
#: with more steps of the optimiser.
PARTS = ("models", "resolution", "displacement", "steps")
