"""How the header of a data set is kept in an HDF5 file: attributes, and names of datasets."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from cscnn.algebra.clifford import SYMMETRIC
from cscnn.data.fields import KINDS, grade_folder
from cscnn.data.header import Header

#: Parts of a header that are written as datasets, or as their shapes.
DATASETS = ("fields", "backgrounds", "given", "frames", "grid")
#: Parts that files have only where they say something: older files have none.
OPTIONAL = ("cloud", "start_time")
#: Parts that are written as JSON.
TEXTS = ("units", "parameters", "cloud")


def write_header(file: Any, header: Header) -> None:
    """Write the attributes; fields, backgrounds and what is given are datasets of their own."""
    for name, value in header.to_dict().items():
        if name in DATASETS or (name in OPTIONAL and not value):
            continue
        if name in TEXTS:
            value = json.dumps(value, sort_keys=True)
        elif name == "time_axis":
            value = -1 if value is None else value
        file.attrs[name] = value
    file.attrs["fields"] = [f.name for f in header.fields]
    for name in ("backgrounds", "given"):
        if listed := [quantity.name for quantity in getattr(header, name)]:
            file.attrs[name] = listed


def read_header(file: Any) -> Header:
    """The header of a file whose datasets are there."""
    values: dict[str, Any] = {}
    for name in Header.__dataclass_fields__:
        if name in DATASETS or (name in OPTIONAL and name not in file.attrs):
            continue
        if name not in file.attrs:
            raise ValueError(f"attribute {name} is missing")
        value = file.attrs[name]
        if name in TEXTS:
            value = json.loads(value)
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, np.generic):
            value = value.item()
        values[name] = value
    values["time_axis"] = None if values["time_axis"] < 0 else values["time_axis"]
    grades = (*range(len(values["metric"]) + 1), SYMMETRIC)
    listed = [
        (name, grade, dataset)
        for grade in grades
        for name, dataset in file.get(grade_folder(grade), {}).items()
    ]
    stored = {name: (grade, dataset) for name, grade, dataset in listed}
    names = [str(name) for name in file.attrs.get("fields", ())]
    if not names or sorted(names) != sorted(name for name, *_ in listed):
        there = [f"{grade_folder(grade)}/{name}" for name, grade, _ in listed]
        raise ValueError(f"attribute fields lists {names}, but the file holds {there}")
    values["fields"] = [
        {"name": n, "grade": stored[n][0], "units": stored[n][1].attrs["units"]} for n in names
    ]
    shape = stored[names[0]][1].shape
    if values.get("cloud") is None:
        values["frames"], values["grid"] = shape[1], shape[2:-1]
    else:
        values["frames"], values["grid"] = shape[0], ()
    values["backgrounds"] = _ordered(
        file,
        "backgrounds",
        {
            name: {"name": name, "grade": grade, "components": dataset[:].tolist()}
            for grade in grades
            for name, dataset in file.get(f"backgrounds/{grade_folder(grade)}", {}).items()
        },
    )
    values["given"] = _ordered(
        file,
        "given",
        {
            name: {"name": name, "grade": grade, "kind": kind, "units": dataset.attrs["units"]}
            for kind in KINDS
            for grade in grades
            for name, dataset in file.get(f"{kind}/{grade_folder(grade)}", {}).items()
        },
    )
    return Header.from_dict(values)


def _ordered(file: Any, attribute: str, stored: dict[str, Any]) -> list[Any]:
    """What is stored in the order of an attribute, which must list all of it."""
    order = [str(name) for name in file.attrs.get(attribute, ())]
    if set(order) != set(stored):
        raise ValueError(f"attribute {attribute} lists {order}, the file holds {sorted(stored)}")
    return [stored[name] for name in order]
