"""The documentation site beside its pages: executed code, formulas, the API reference."""
