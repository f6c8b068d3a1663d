"""Data sets of multivector fields: make, store, read, cut into windows. Needs ``cscnn[data]``."""

from cscnn.data.files import FieldFile
from cscnn.data.header import Header
from cscnn.data.scaling import Scaling
from cscnn.data.windows import RandomSymmetry, Window, Windows, coarse_task

__all__ = ["FieldFile", "Header", "RandomSymmetry", "Scaling", "Window", "Windows", "coarse_task"]
