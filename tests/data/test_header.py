"""What a header accepts, and how it is compared and stored."""

import json
import math

import pytest

from cscnn.data import Background, Field, Given, Header
from tests.data.test_files import HEADER


def test_shapes_and_grades() -> None:
    assert HEADER.shape("velocity") == (5, 4, 6, 2)
    assert HEADER.shape("heat") == (5, 4, 6, 1)
    assert HEADER.grade("velocity") == 1
    with pytest.raises(ValueError, match="no field 'wind', only velocity, smoke, heat"):
        HEADER.shape("wind")


def test_differences() -> None:
    assert HEADER.differences(HEADER) == []
    assert HEADER.differences(HEADER.replace(seed=3, split="test")) == ["seed", "split"]


def test_json_form() -> None:
    data = json.loads(json.dumps(HEADER.to_dict()))
    assert data == HEADER.to_dict()
    assert Header.from_dict(data) == HEADER.replace(parameters=data["parameters"])
    with pytest.raises(ValueError, match="unknown entries colour"):
        Header.from_dict({**data, "colour": 1})
    del data["metric"]
    with pytest.raises(ValueError, match="there is no entry metric"):
        Header.from_dict(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": (1, 0)}, r"metric \(1, 0\) is degenerate"),
        ({"axes": ("x", "x")}, "axes must name each of 2 axes"),
        ({"time_axis": 1}, "time must be axis 0"),
        ({"grid": (4,)}, "grid of 2 positive sizes"),
        ({"frames": 0}, "at least one"),
        ({"fields": ()}, r"needs fields of different names, got \[\]"),
        ({"fields": (Field("a", 0), Field("a", 1))}, r"different names, got \['a', 'a'\]"),
        ({"fields": (Field("a", 3),)}, r"a has grade 3, .* has 0\.\.2"),
        ({"backgrounds": (Background("g", -1, ()),)}, "g has grade -1"),
        ({"backgrounds": (Background("g", 1, (1.0,)),)}, r"has 2 components, got \(1.0,\)"),
        ({"boundary": ("wall",)}, r"boundary needs one value per axis, 2 in all, got \('wall',\)"),
        ({"boundary": ("wall", "magic")}, "boundary must be one of .* got 'magic'"),
        ({"spacing": (1.0,)}, "spacing needs one value per axis"),
        ({"spacing": (1.0, 0.0)}, r"spacing must be positive, got \(1.0, 0.0\)"),
        ({"frame_spacing": -2.0}, "frame_spacing must be positive, got -2.0"),
        ({"start_time": math.nan}, "start_time must be a finite number, got nan"),
        ({"backgrounds": (Background("heat", 0, (1.0,)),)}, "different names, got 'heat' twice"),
        (
            {"backgrounds": (Background("g", 0, (1.0,)), Background("g", 0, (2.0,)))},
            r"different names, got 'g' twice: .* backgrounds \['g', 'g'\]",
        ),
        (
            {
                "given": (Given("g", 0, "constant"),),
                "backgrounds": (Background("g", 0, (2.0,)),),
            },
            "different names, got 'g' twice",
        ),
    ],
)
def test_impossible_headers(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HEADER.replace(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"spacing": 0.5}, "spacing needs one value per axis, 2 in all, got 0.5"),
        ({"fields": Field("a", 0)}, "fields of a header must be a tuple of Field, got Field"),
        ({"fields": ("a",)}, r"fields of a header must be a tuple of Field, got \('a',\)"),
        ({"given": ("a",)}, "given of a header must be a tuple of Given"),
        ({"backgrounds": ("a",)}, "backgrounds of a header must be a tuple of Background"),
        (
            {"fields": (Field("a", "0"),)},
            "the grade of a must be an integer or 'symmetric', got '0'",
        ),
        ({"frames": "3"}, "frames of a header must be an integer, got '3'"),
        ({"grid": 4}, "grid must list the points per axis of space, got 4"),
        ({"grid": (4.0, 6)}, "grid of a header must be an integer, got 4.0"),
        ({"units": "m"}, "units of a header must be a mapping, got 'm'"),
        ({"cloud": 1}, "cloud must be of type Cloud, got 1"),
    ],
)
def test_values_of_the_wrong_type(changes: dict, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        HEADER.replace(**changes)
