"""What a user meets first: import, README, pages, command line."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import cscnn
from cscnn.cli import main
from cscnn.conv.spectral import cost, tune

ROOT = Path(__file__).parents[1]
HEAVY = (
    "clifford",
    "cliffordlayers",
    "h5py",
    "huggingface_hub",
    "jinja2",
    "jsonargparse",
    "lightning",
    "matplotlib",
    "neuralop",
    "numba",
    "onnx",
    "rich",
    "safetensors",
    "scipy",
    "torchdiffeq",
)
DOCS = ROOT / "docs"
#: Pages that programs write, and what is said of their numbers.
RESULTS = {"benchmarks.md", "models.md", "results.md", "results_discussion.md"}
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in DOCS.rglob("*.md") if str(page.relative_to(DOCS)) not in RESULTS),
]
#: Commands from simulation to export. The Python of WITH_DATA needs the files that they make.
PIPELINE = "docs/howto/pipeline.md"
WITH_DATA = (PIPELINE, "docs/guides/training.md", "docs/guides/evaluation.md")
#: Pages whose Python needs files that a test of its own makes.
WITH_HUB = ("docs/howto/share.md",)
OWN_TEST = ("docs/guides/data_format.md", "docs/guides/points.md", "docs/guides/readers.md")


def run_python(code, folder=ROOT):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    ).stdout


@pytest.mark.parametrize(
    "code",
    [
        "import cscnn",
        "import cscnn.networks",
        "import cscnn.testing",
        "from cscnn.forecasting import Forecaster, Task",
        "from cscnn.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass",
    ],
)
def test_imports_are_light(code):
    """Nothing heavier than torch, which may bring packages of its own."""
    loaded = f"print([name for name in {HEAVY!r} if name in set(sys.modules) - before])"
    out = run_python(f"import sys, torch\nbefore = set(sys.modules)\n{code}\n{loaded}")
    assert out.splitlines()[-1] == "[]"


def test_rooms_are_found_without_importing_them():
    assert run_python("import cscnn; print(cscnn.testing.assert_equivariant.__name__)")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cscnn.nonsense


def test_version_has_one_source():
    assert version("cscnn") == cscnn.__version__
    assert f"version: {cscnn.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {cscnn.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_wheel_holds_the_package_alone():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["packages"] == ["src/cscnn"]
    package = ROOT / "src" / "cscnn"
    rooms = {path.relative_to(package).parts[0] for path in package.rglob("*.py")}
    assert not rooms & {"bench", "benchmarks", "experiments", "study"}


# --- pages ----------------------------------------------------------------------------------------


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def names_of_pages_with_python():
    """Those that the site does not run when it is built."""
    names = [page.relative_to(ROOT).as_posix() for page in PAGES]
    return [
        name
        for name in names
        if "```python" in read(name) and not re.match(r"---\n.*execute: true\n", read(name))
    ]


def python_of(name):
    """The Python of a page, as one program."""
    blocks = re.findall(r"```python\n(.*?)```", read(name), re.DOTALL)
    assert blocks, name
    return "\n".join(blocks)


def commands_of(name, program="cscnn"):
    """The command lines of a page that begin with a program, without it."""
    text = read(name).replace("\\\n", " ")
    commands = re.findall(rf"^(?:    )?{program} (.*)$", text, re.MULTILINE)
    assert commands, name
    return [shlex.split(command.partition(" > ")[0], comments=True) for command in commands]


@pytest.mark.slow
def test_pipeline_runs(tmp_path, monkeypatch):
    """Its commands and then its Python, as somebody would who reads from top to bottom."""
    monkeypatch.chdir(tmp_path)
    for command in commands_of(PIPELINE):
        assert main(command) == 0, command
    for page in WITH_DATA:
        run_python(python_of(page), tmp_path)


@pytest.mark.slow
def test_programs_of_studies_run():
    """``python -m experiments...``, in a checkout."""
    for command in commands_of("docs/howto/reproduce.md", "python -m"):
        subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True, cwd=ROOT)


@pytest.mark.slow
def test_data_format_examples_run(tmp_path, monkeypatch):
    """The training is planned only: it takes minutes."""
    monkeypatch.chdir(tmp_path)
    run_python(python_of("docs/guides/data_format.md"), tmp_path)
    for command in commands_of("docs/guides/data_format.md"):
        assert main([*command, *["--dry-run"] * (command[0] == "train")]) == 0, command


@pytest.mark.slow
def test_points_page_runs(tmp_path, monkeypatch):
    """Its first commands, its Python, and then the commands about the files that this has written.

    Trainings have two steps.
    """
    monkeypatch.chdir(tmp_path)
    commands = commands_of("docs/guides/points.md")
    first = next(i for i, command in enumerate(commands) if command[0] == "data")
    short = ["--trainer.epochs", "1", "--trainer.steps", "2"]
    for number, command in enumerate(commands):
        if number == first:
            run_python(python_of("docs/guides/points.md"), tmp_path)
        assert main([*command, *short * (command[0] == "train")]) == 0, command
    assert first == 5


@pytest.mark.slow
def test_boosts_page_runs(tmp_path, monkeypatch, capsys):
    """All its commands, with few data and steps; evaluations have errors of boosted observers."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    short = {
        "generate": ["--split", "train=2", "valid=1", "test=1"],
        "train": ["--trainer.epochs", "1", "--trainer.steps", "1"],
        "evaluate": ["--windows", "2", "--trajectories", "1", "--steps", "2"],
    }
    commands = commands_of("docs/boosts.md")
    assert [command[0] for command in commands] == [
        "generate", "train", "evaluate", "train", "evaluate", "report"
    ]  # fmt: skip
    for command in commands:
        assert main([*command, *short.get(command[0], ())]) == 0, command
        assert command[0] != "evaluate" or "boosted observers" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", [page for page in names_of_pages_with_python() if page not in (*WITH_DATA, *OWN_TEST)]
)
def test_examples_of_pages_run(name, tmp_path):
    if name in WITH_HUB:
        pytest.importorskip("huggingface_hub", reason="needs the extra hub")
    run_python(python_of(name), tmp_path)


def test_pages_with_a_test_of_their_own_have_python():
    """So all Python of pages runs: here, in tests/data (readers.md), or by make docs."""
    assert {*WITH_DATA, *OWN_TEST} < set(names_of_pages_with_python())


def test_pages_name_commands_that_exist(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = set(re.findall(r"^    (\w+)(?: |$)", capsys.readouterr().out, re.MULTILINE))
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    assert {"train", "evaluate"} <= commands
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"(?:^|`| {4})cscnn ([a-z]+)", text, re.MULTILINE)) <= commands, page
        assert set(re.findall(r"(?:^|`| {4})make ([\w-]+)", text, re.MULTILINE)) <= targets, page
    assert re.findall(r"^make (\w+)", read("README.md"), re.MULTILINE) == ["demo", "test"]


@pytest.mark.parametrize(
    "page", [*PAGES, DOCS / "boosts.md"], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_pages_have_commands_that_parse(page):
    """Options exist and have values of their types. Files that a command names need not exist."""
    pytest.importorskip("jsonargparse")
    from cscnn.cli import parser_of, split
    from cscnn.forecasting.training.command import parse

    name = page.relative_to(ROOT).as_posix()
    if not re.search(r"^(?:    )?cscnn ", read(name), re.MULTILINE):
        return
    for command in commands_of(name):
        words = [word for word in command if word != "..."]
        needs_a_file = {"--resume", "--config"} & set(words)
        if words[0] == "train" and not needs_a_file:
            parse([word for word in words[1:] if word != "--dry-run"])
        elif words[0] != "train":
            command, rest = split(words)
            parser_of(command).parse_args(rest)


def test_pages_name_files_that_exist():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page} links to {target}"


# --- the command line -----------------------------------------------------------------------------


def test_info(capsys):
    assert main(["info", "--metric=+--"]) == 0
    out = capsys.readouterr().out
    assert "e12 (+1), e13 (+1), e23 (-1)" in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["info", "--metric=+0"], "takes + and - signs only"),
        (["info", "--metric=+++++++"], "between 1 and 6 entries, got 7"),
        (["tune", "--device", "nonsense"], "cannot measure on device 'nonsense'"),
        (["evaluate", "no/such/run"], "no/such/run"),
    ],
)
def test_cli_errors_are_one_line(argv, message, capsys):
    assert main(argv) == 1
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_debug_shows_the_traceback():
    with pytest.raises(ValueError, match="signs only"):
        main(["--debug", "info", "--metric=x"])


@pytest.fixture
def tuning(tmp_path, monkeypatch):
    """A file of rates for this test alone."""
    path = tmp_path / "folder" / "tuning.json"
    with monkeypatch.context() as patch:
        patch.setenv("CSCNN_TUNING", str(path))
        cost.reload_rates()
        yield path
    cost.reload_rates()


def test_tune_measures_this_machine(tuning, monkeypatch, capsys):
    small = [(dim, 1, 1, points, 3) for dim in (1, 2, 3, 4) for points in (6, 8)]
    monkeypatch.setattr(tune, "SHAPES", small)
    assert cost.device_rates("cpu") == cost.DEFAULT_RATES
    assert main(["tune"]) == 0
    out = capsys.readouterr().out
    assert "billion operations/s" in out
    assert f"written to {tuning}" in out
    assert set(json.loads(tuning.read_text())) == {"cpu"}
    assert cost.device_rates("cpu") != cost.DEFAULT_RATES
