"""The paper's comparisons, from one command. Needs ``cscnn[all]``."""
