"""What the documentation site needs beside its pages: executed code, formulas, the API reference."""
