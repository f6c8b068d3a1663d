"""Experiments with `cscnn`, run from the repository; no part of the installed package."""
