"""Models that map multivector fields to multivector fields: the CS-ResNet and its baselines."""

from cscnn.models.base import ComponentModel, FieldModel
from cscnn.models.registry import build, load, match, names, register, save
from cscnn.models.tasks import TASKS, Background, Field, Task

__all__ = [
    "TASKS",
    "Background",
    "ComponentModel",
    "Field",
    "FieldModel",
    "Task",
    "build",
    "load",
    "match",
    "names",
    "register",
    "save",
]
