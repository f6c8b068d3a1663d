"""Data sets of multivector fields: simulate, store and read them. Needs ``cscnn[data]``."""

from cscnn.data.coarse import Coarse
from cscnn.data.fields import Background, Field
from cscnn.data.files import FieldFile
from cscnn.data.header import Header
from cscnn.data.readers import open_fields
from cscnn.data.source import FieldSource, Source

__all__ = [
    "Background",
    "Coarse",
    "Field",
    "FieldFile",
    "FieldSource",
    "Header",
    "Source",
    "open_fields",
]
