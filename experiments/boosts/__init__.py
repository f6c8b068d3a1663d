"""Networks trained at rest, seen by observers that move: ``python -m experiments.boosts``.

Needs ``cscnn[all]``.
"""

#: Of a study: all models on one grid, two of them on other grids, and with a longer displacement.
PARTS = ("models", "resolution", "displacement")
