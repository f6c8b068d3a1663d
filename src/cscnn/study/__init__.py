"""The paper's comparisons, from one command. Needs ``cscnn[all]``."""

#: Of a study: all sizes of the training set, others trained for as long as ours, ablations.
PARTS = ("scaling", "time", "ablations")
