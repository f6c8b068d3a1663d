"""Tasks: what headers say, channels and the components in them, impossible ones."""

import json

import pytest
import torch

from cscnn.data import Background, Field
from cscnn.data.simulators import ON_GRIDS, create
from cscnn.forecasting import Task
from cscnn.forecasting.packing import symmetric_part
from cscnn.forecasting.training import DataConfig

GRIDS = {2: (8, 12), 3: (4, 8, 8), 4: (4, 4, 8, 4)}
FLUID = Task.from_header(create("navier_stokes").header())


@pytest.mark.parametrize("name", ON_GRIDS)
def test_tasks_come_from_headers(name):
    header = create(name).header()
    task = Task.from_header(header, frames_in=4)
    assert (task.metric, task.fields, task.boundary) == (
        header.metric,
        header.fields,
        header.boundary,
    )
    assert (task.spacing, task.frame_spacing) == (header.spacing, header.frame_spacing)
    task.check_data(header)
    told = [b.name for b in task.constants]
    displaced = ["displacement"] if header.time_axis is not None else []
    assert told == [b.name for b in header.backgrounds] + displaced
    assert not Task.from_header(header, constants=False).constants
    assert Task.from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_frames_that_are_seen_by_default():
    """One rule, for data, configurations and tasks that are written down."""
    fluid, waves = create("navier_stokes").header(), create("sine_gordon").header()
    assert waves.time_axis == 0
    cases = [(fluid, 4, 1), (waves.replace(frames=64), 16, 16), (waves.replace(frames=9), 4, 4)]
    for header, seen, predicted in cases:
        task = Task.from_header(header)
        assert (task.frames_in, task.frames_out) == (seen, predicted)
        told = Task.from_header(header, frames_in=DataConfig().frames_in)
        assert told == task
    assert Task("any", (1, 1), fluid.fields).frames_in == Task.from_header(fluid).frames_in


@pytest.mark.parametrize("name", ON_GRIDS)
def test_tasks_pack_what_they_unpack(name):
    task = Task.from_header(create(name).header(), frames_in=4)
    space = GRIDS[task.dim][1:] if task.time_axis is not None else GRIDS[task.dim]
    fields = {
        f.name: symmetric_part(f, torch.randn(2, 4, *space, task.algebra.size(f.grade)))
        for f in task.fields
    }
    x = task.pack(fields)
    assert x.shape[:2] == (2, task.in_channels)
    assert x.shape[-1] == task.algebra.n_blades
    again = task.unpack(x)
    for field in task.fields:  # traces of tensors are rounded
        rounding = 1e-6 if field.grade == "symmetric" else 0.0
        assert torch.allclose(again[field.name], fields[field.name], rtol=0, atol=rounding)


def test_fields_of_one_grade_get_channels_of_their_own():
    task = Task("two", (1, 1), (Field("a", 0), Field("b", 0), Field("v", 1)), frames_in=3)
    assert task.frame_type.grades == ((0, 1), (0,))
    assert (task.in_channels, task.output_type.channels) == (6, 2)
    fields = {n: torch.randn(1, 3, 4, 4, k) for n, k in (("a", 1), ("b", 1), ("v", 2))}
    x = task.pack(fields)
    assert all(torch.equal(v, fields[n]) for n, v in task.unpack(x).items())
    # what carries data is known for each channel and blade, not for all channels together
    data = (x != 0).any(0).any(1).any(1)
    assert torch.equal(data, task.input_type.mask)
    assert task.output_type.components == 4  # not 2 channels of 3


def test_constants_have_types_of_their_own():
    assert FLUID.input_type.grades == ((0, 1),) * 4 + ((1,),)
    assert FLUID.input_type.components == 14
    spacetime = Task.from_header(create("maxwell_spacetime").header())
    assert spacetime.input_type.grades == ((2,), (1,))
    assert spacetime.constant_multivectors()[0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert not spacetime.replace(displacement=False).constants


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fields": ()}, "a task needs fields of different names"),
        ({"fields": (Field("a", 3),)}, "a has grade 3"),
        ({"boundary": "box"}, "one of periodic, wall, open, got 'box'"),
        ({"boundary": ("wall",)}, "one value per axis"),
        ({"frames_in": 0}, "frames_in"),
        ({"time_axis": 2}, "one of the 2 axes, got 2"),
        (
            {"time_axis": 0, "frames_in": 2, "frames_out": 3},
            "at most frames_in frames later: got 2",
        ),
        ({"margin": -1}, "margin must be at least 0, got -1"),
        ({"open_padding": "mirror"}, "open_padding must be one of .* got 'mirror'"),
        ({"backgrounds": (Background("g", 1, (1.0,)),)}, "has 2 components, got"),
    ],
)
def test_impossible_tasks(changes, message):
    with pytest.raises(ValueError, match=message):
        FLUID.replace(**changes)


def test_descriptions_of_something_else():
    with pytest.raises(ValueError, match="task: unknown entries nonsense"):
        Task.from_dict({**FLUID.to_dict(), "nonsense": 1})
    with pytest.raises(ValueError, match=r"task.frames_in: expected int, got 'four'"):
        Task.from_dict({**FLUID.to_dict(), "frames_in": "four"})
