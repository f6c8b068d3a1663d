"""The paper's comparisons, from one command: ``python -m experiments.paper``.

Needs ``cscnn[all]``.
"""

#: Of a study: all sizes of the training set, others trained for as long as ours, ablations.
PARTS = ("scaling", "time", "ablations")
