"""A page about training runs: `cscnn.viz.report.page.write_report` and ``cscnn report``."""
