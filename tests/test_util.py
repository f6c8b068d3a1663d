"""Private helpers: JSON comes back as it was, errors name what is wrong."""

import io
import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from cscnn._util import resources
from cscnn._util.checks import check_choice, check_int, check_positive
from cscnn._util.jsonform import from_json, read_json, to_json, write_json
from cscnn._util.optional import require
from cscnn._util.progress import Bar, duration
from cscnn._util.resources import check_disk, check_memory, size

# --- room -----------------------------------------------------------------------------------------


def test_sizes_for_people() -> None:
    counts = (0, 999, 1000, 99_960, 123_456, 2.5e9, 1e12)
    assert [size(n) for n in counts] == [
        "0 B", "999 B", "1.0 kB", "100 kB", "123 kB", "2.5 GB", "1.0 TB",
    ]  # fmt: skip


def test_room_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(tmp_path).free
    check_disk(tmp_path / "not" / "yet", 1000, "x")
    with pytest.raises(OSError, match=r"film needs .* TB of disk, but .* has .* free"):
        check_disk(tmp_path, free + 10**13, "film")
    monkeypatch.setattr(resources, "available_memory", lambda: 2000)
    check_memory(2000, "x")
    with pytest.raises(
        MemoryError, match=r"film needs 3\.0 kB of memory, but 2\.0 kB is available"
    ):
        check_memory(3000, "film")
    monkeypatch.setattr(resources, "available_memory", lambda: None)
    check_memory(10**20, "x")  # who knows


def test_available_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    free = resources.available_memory()
    assert free is None or 2**20 < free < 2**60
    group = Path("/sys/fs/cgroup/memory.max")
    read = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda path, *a, **k: "4096" if path == group else read(path, *a, **k)
    )
    assert resources.available_memory() == 4096


# --- JSON -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    name: str
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Flat:
    slope: int


@dataclass(frozen=True)
class Record:
    """Every type of entry that our files have."""

    name: str
    count: int
    rate: float
    done: bool
    curve: Curve
    curves: list[Curve]
    by_name: dict[str, Curve]
    by_step: dict[int, float]
    size: tuple[int, int]
    grid: Sequence[int]
    notes: Mapping[str, Any]
    mode: Literal["fast", "slow"]
    folder: Path
    label: str | None = None
    limit: float | None = None
    shape: Curve | Flat = Flat(0)
    number: int | str = 0
    free: Any = None
    bare: tuple = ()  # type: ignore[type-arg]
    other: list[float | None] = field(default_factory=list)


RECORD = Record(
    name="a",
    count=3,
    rate=0.5,
    done=False,
    curve=Curve("c", (1.0, 2.5)),
    curves=[Curve("d"), Curve("e", (0.0,))],
    by_name={"x": Curve("f")},
    by_step={1: 0.5, 10: 2.0},
    size=(4, 5),
    grid=(6, 7, 8),
    notes={"a": [1, "b", None]},
    mode="slow",
    folder=Path("runs/smoke"),
    label="text",
    limit=1.5,
    shape=Curve("g", (3.0,)),
    number="many",
    free={"nested": [1, 2]},
    bare=(1, "two"),
    other=[1.0, None],
)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    assert from_json(Record, to_json(RECORD)) == RECORD
    path = tmp_path / "record.json"
    write_json(path, RECORD)
    assert from_json(Record, read_json(path)) == RECORD
    assert list(tmp_path.iterdir()) == [path]
    optional = {"label", "limit", "shape", "number", "free", "bare", "other"}
    short = from_json(Record, {k: v for k, v in to_json(RECORD).items() if k not in optional})
    assert (short.label, short.limit, short.shape, short.other) == (None, None, Flat(0), [])


def test_what_is_not_finite_becomes_null_and_nan(tmp_path: Path) -> None:
    path = tmp_path / "curve.json"
    write_json(path, Curve("loss", (1.0, math.nan, math.inf)))
    assert json.loads(path.read_text()) == {"name": "loss", "values": [1.0, None, None]}
    values = from_json(Curve, read_json(path)).values
    assert values[0] == 1.0
    assert math.isnan(values[1])
    assert math.isnan(values[2])
    assert to_json({"deep": [{"rate": -math.inf}]}) == {"deep": [{"rate": None}]}


def test_integers_are_floats_but_booleans_are_not_numbers() -> None:
    value = from_json(Curve, {"name": "a", "values": [1, 2]}).values[0]
    assert (value, type(value)) == (1.0, float)
    for entry in (True, False):
        with pytest.raises(ValueError, match=rf"Curve.values\[0\]: expected float, got {entry}"):
            from_json(Curve, {"name": "a", "values": [entry]})
        with pytest.raises(ValueError, match=f"Flat.slope: expected int, got {entry}"):
            from_json(Flat, {"slope": entry})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": 3}, r"^run.json.name: expected str, got 3$"),
        ({"count": 1.5}, r"run.json.count: expected int, got 1.5"),
        ({"count": None}, r"run.json.count: expected int, got None"),
        ({"done": 1}, r"run.json.done: expected bool, got 1"),
        ({"rate": "fast"}, r"run.json.rate: expected float, got 'fast'"),
        ({"curve": [1]}, r"run.json.curve: expected an object, got \[1\]"),
        ({"curve": {}}, r"run.json.curve: there is no entry name"),
        ({"curves": [{"name": "a", "values": ["b"]}]}, r"curves\[0\].values\[0\]: expected float"),
        ({"curves": 3}, r"run.json.curves: expected a list, got 3"),
        ({"by_name": {"x": {"nam": "a"}}}, r"by_name.x: unknown entries nam; it has name, values"),
        ({"by_name": [1]}, r"by_name: expected an object, got \[1\]"),
        ({"by_step": {"first": 1.0}}, r"by_step: expected an integer as key, got 'first'"),
        ({"size": [1, 2, 3]}, r"run.json.size: expected 2 entries, got \[1, 2, 3\]"),
        ({"mode": "slower"}, r"mode: expected one of \('fast', 'slow'\), got 'slower'"),
        ({"number": 1.5}, r"expected int, got 1.5; or run.json.number: expected str, got 1.5"),
        ({"shape": {"slop": 1}}, r"slop; it has name, values; or run.json.shape: .* has slope"),
        ({"limit": "none"}, r"run.json.limit: expected float, got 'none'"),
    ],
)
def test_bad_entries_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(Record, {**to_json(RECORD), **changes}, "run.json")


def test_bad_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    for content in (b"{", b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.json is damaged, it is no JSON: "):
            read_json(path)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json")
    with pytest.raises(ValueError, match=r"^Flat: expected an object, got \[1\]$"):
        from_json(Flat, [1])


def test_what_json_does_not_know_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}


# --- checks, optional packages, progress ----------------------------------------------------------


class Index:
    def __index__(self) -> int:
        return 5


def test_integers() -> None:
    assert check_int("width", 3, low=1) == 3
    assert check_int("width", Index(), low=1) == 5
    with pytest.raises(ValueError, match="width must be at least 1, got 0"):
        check_int("width", 0, low=1)
    for value, shown in ((2.0, r"2\.0 \(float\)"), (True, r"True \(bool\)"), ("3", r"'3' \(str\)")):
        with pytest.raises(TypeError, match=f"width must be an integer, got {shown}"):
            check_int("width", value, low=1)


def test_choices() -> None:
    assert check_choice("mode", "fast", ("fast", "slow")) == "fast"
    for value in ("quick", None, ["fast"]):
        with pytest.raises(ValueError, match="mode must be one of fast, slow, got "):
            check_choice("mode", value, ("fast", "slow"))


def test_positive_numbers() -> None:
    check_positive(radius=1, spacing=(0.5, 2.0), sizes=[3])
    bad: list[tuple[Any, str]] = [(0, "0"), (-1.5, "-1.5"), (math.nan, "nan"), (math.inf, "inf")]
    for value, shown in [*bad, ((1.0, 0.0), r"\(1.0, 0.0\)")]:
        with pytest.raises(ValueError, match=f"radius must be positive, got {shown}"):
            check_positive(radius=value)
    for value in ("1", None, [1.0, "2"]):
        with pytest.raises(TypeError, match="radius must be a positive number, got "):
            check_positive(radius=value)


def test_required_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert require("json", "files", "data") is json
    message = r"^files needs the package absent: pip install 'cscnn\[data\]'$"
    for package in ("absent", "absent.part"):
        with pytest.raises(ImportError, match=message) as caught:
            require(package, "files", "data")
        assert caught.value.name == "absent"
    monkeypatch.setitem(sys.modules, "csv", None)
    with pytest.raises(ImportError, match="files needs the package csv"):
        require("csv", "files", "data")
    # A package that is there and lacks one of its own names that one.
    (tmp_path / "half_installed.py").write_text("import missing_part")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="files needs the package missing_part"):
        require("half_installed", "files", "data")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_and_elsewhere() -> None:
    terminal, log, silent = Terminal(), io.StringIO(), Terminal()
    for stream, quiet in ((terminal, False), (log, False), (silent, True)):
        assert list(Bar("files", stream, quiet).over("reading", [1, 2, 3])) == [1, 2, 3]
    assert "reading 3/3 files" in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")
    assert log.getvalue() == silent.getvalue() == ""  # short work is not worth a line in a log


def test_progress_in_ascii() -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    Bar("files", terminal)("reading", 1, 2)
    terminal.seek(0)
    assert "############............ reading 1/2 files" in terminal.read()


def test_times_for_people() -> None:
    assert [duration(s) for s in (0, 59.4, 59.6, 3600)] == ["0 s", "59 s", "1 min 0 s", "1 h 0 min"]
