"""Data sets of multivector fields: made, stored, read and cut into windows. Needs ``cscnn[data]``."""

from cscnn.data.files import FieldFile
from cscnn.data.header import Header

__all__ = ["FieldFile", "Header"]
