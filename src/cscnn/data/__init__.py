"""Data sets of multivector fields: make, store, read, cut into windows. Needs ``cscnn[data]``."""

from cscnn.data.files import FieldFile
from cscnn.data.header import Header
from cscnn.data.readers import open_fields
from cscnn.data.scaling import Scaling
from cscnn.data.source import FieldSource
from cscnn.data.windows import RandomSymmetry, Window, Windows, coarse_task

__all__ = [
    "FieldFile",
    "FieldSource",
    "Header",
    "RandomSymmetry",
    "Scaling",
    "Window",
    "Windows",
    "coarse_task",
    "open_fields",
]
