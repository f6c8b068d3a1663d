"""Data sets of multivector fields: simulate, store and read them. Needs ``cscnn[data]``."""

from cscnn.data.coarse import Coarse
from cscnn.data.fields import Background, Field, Given
from cscnn.data.files import FieldFile
from cscnn.data.header import Header
from cscnn.data.joined import JoinedFiles
from cscnn.data.readers import open_fields
from cscnn.data.source import FieldSource, Source
from cscnn.data.strided import Strided

__all__ = [
    "Background",
    "Coarse",
    "Field",
    "FieldFile",
    "FieldSource",
    "Given",
    "Header",
    "JoinedFiles",
    "Source",
    "Strided",
    "open_fields",
]
