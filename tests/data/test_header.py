"""What a header accepts, and how it is compared and stored."""

import json

import pytest

from cscnn.data import Background, Field, Header
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
    ],
)
def test_impossible_headers(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HEADER.replace(**changes)
