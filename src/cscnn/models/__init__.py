"""Models that map multivectors to multivectors, on grids and on point sets, by name."""

from cscnn.models.base import ComponentModel, FieldModel, Model, PointModel
from cscnn.models.registry import build, kind, load, match, names, register, save
from cscnn.models.tasks import TASKS, Background, Field, Task

__all__ = [
    "TASKS",
    "Background",
    "ComponentModel",
    "Field",
    "FieldModel",
    "Model",
    "PointModel",
    "Task",
    "build",
    "kind",
    "load",
    "match",
    "names",
    "register",
    "save",
]
