"""What a user meets first: import, README, command line, benchmarks."""

import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

import cscnn
from cscnn import bench
from cscnn.bench.registry import Case
from cscnn.cli import main

ROOT = Path(__file__).parents[1]
HEAVY = (
    "lightning",
    "onnx",
    "h5py",
    "matplotlib",
    "scipy",
    "numba",
    "clifford",
    "neuralop",
    "safetensors",
)


def run_python(code, folder=ROOT):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    ).stdout


def test_import_is_light():
    """Nothing heavier than torch, and at most 0.3 s on top of it (best of three)."""
    code = (
        "import time, torch, sys; before = set(sys.modules); start = time.perf_counter(); "
        "import cscnn; print(time.perf_counter() - start); "
        f"print([m for m in {HEAVY!r} if m in set(sys.modules) - before])"
    )
    runs = [run_python(code).splitlines() for _ in range(3)]
    assert runs[0][1] == "[]"
    assert min(float(seconds) for seconds, _ in runs) < 0.3


def test_rooms_are_found_without_importing_them():
    assert run_python("import cscnn; print(cscnn.testing.assert_equivariant.__name__)")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cscnn.nonsense


def test_version_has_one_source():
    from importlib.metadata import version

    assert version("cscnn") == cscnn.__version__
    assert f"version: {cscnn.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {cscnn.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def readme_blocks(name="README.md"):
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_readme_examples_run(tmp_path, monkeypatch):
    """Its commands and then its Python, as somebody would who reads from top to bottom."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^cscnn (.*)$", text, re.MULTILINE)
    blocks = readme_blocks()
    assert commands
    assert blocks
    for command in commands:
        assert main(command.split()) == 0, command
    run_python("\n".join(blocks), tmp_path)
    run_python("\n".join(readme_blocks("docs/training.md")), tmp_path)  # of the same data


def test_data_format_example_runs(tmp_path):
    run_python("\n".join(readme_blocks("docs/data_format.md")), tmp_path)


def test_geometry_examples_run(tmp_path):
    run_python("\n".join(readme_blocks("docs/geometry.md")), tmp_path)


def test_readme_commands_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^make (\w+)", text, re.MULTILINE))
    assert {"demo", "test"} <= targets
    assert all(f"\n{target}:" in makefile for target in targets)


SHORT = {
    "anti_de_sitter": ["--quick"],
    "compare_kernels": ["--steps", "2", "--seeds", "1", "--size", "16"],
    "demo": ["--epochs", "1", "--train", "2"],
    "lorentz_events": ["--quick"],
    "sphere": ["--quick"],
}


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(script, tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error", script, *SHORT.get(script.stem, [])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_info(capsys):
    assert main(["info", "--metric=+--"]) == 0
    out = capsys.readouterr().out
    assert "e12 (+1), e13 (+1), e23 (-1)" in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["info", "--metric=+0"], "takes + and - signs only"),
        (["info", "--metric=+++++++"], "between 1 and 6 entries, got 7"),
        (["bench", "--only", "nonsense"], "unknown benchmark 'nonsense': choose from"),
        (["bench", "--repeats", "0"], "--repeats must be at least 1, got 0"),
        (["bench", "--json", "no/such/folder/x.json"], "there is no folder"),
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


def test_bench_measures_and_writes(tmp_path, capsys):
    assert main(["bench", "--list"]) == 0
    assert "product_layer" in capsys.readouterr().out
    paths = [tmp_path / "bench.json", tmp_path / "page.md"]
    argv = ["bench", "--only", "product_layer", "--repeats", "1"]
    assert main([*argv, "--json", str(paths[0]), "--markdown", str(paths[1])]) == 0
    data = json.loads(paths[0].read_text())
    ours, dense = data["rows"]
    assert (ours["variant"], dense["ratio"]) == ("cscnn", 1.0)
    assert ours["error"] < 1e-5
    assert 0 < ours["peak_bytes"] < dense["peak_bytes"]
    assert data["machine"]["torch"] in paths[1].read_text()
    assert not list(tmp_path.glob("*.tmp*"))


def test_interrupted_bench_keeps_what_it_has(tmp_path, monkeypatch, capsys):
    seen = []

    def measure(name, case, repeats):
        if name == "network":
            assert json.loads(paths[0].read_text())["rows"] == seen  # after each benchmark
            raise KeyboardInterrupt
        row = bench.Row(name, case.label, "ours", 1.0, 1.0, 0, None, "")
        seen.append(asdict(row))
        yield row

    monkeypatch.setattr("cscnn.bench.runner._measure", measure)
    paths = [tmp_path / "bench.json", tmp_path / "page.md"]
    argv = ["bench", "--only", "product_layer", "network", "conv"]
    assert main([*argv, "--json", str(paths[0]), "--markdown", str(paths[1])]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert json.loads(paths[0].read_text())["rows"] == seen
    assert seen
    assert paths[1].read_text().count("| ours |") == len(seen)
    assert not list(tmp_path.glob("*.tmp*"))


@pytest.mark.external  # one of them: the packages of the published data
@pytest.mark.parametrize("name", bench.names())
def test_every_benchmark_yields_cases(name):
    entry = bench.registry.get(name)
    if missing := entry.missing():
        pytest.skip(missing)
    case = next(entry.cases())
    assert case.reference in case.variants


def test_a_benchmark_without_its_packages_is_skipped(monkeypatch, capsys):
    entry = replace(bench.registry.get("simulator"), any_of=("no_such_package", "nor_this"))
    monkeypatch.setitem(bench.registry._registry, "simulator", entry)
    assert main(["bench", "--only", "simulator"]) == 0
    assert "skipped: needs one of the packages no_such_package, nor_this" in capsys.readouterr().out
    with_one = replace(entry, any_of=("no_such_package", "torch"))
    assert with_one.missing() == ""


def test_a_case_needs_its_reference():
    with pytest.raises(ValueError, match="'b' is not one of"):
        Case("x", {"a": list}, reference="b")


def test_bench_judges_peak_memory():
    case = Case("x", {"a": list}, reference="a", gigabytes=1.0)
    verdicts = [bench.runner._verdict(case, 1.0, peak, 1, 1.0) for peak in (10**8, 2 * 10**9)]
    assert verdicts == ["memory ≤ 1 GB: met", "memory ≤ 1 GB: MISSED"]


def test_bench_reports_slopes(monkeypatch):
    @bench.benchmark("growing", "for this test")
    def growing():
        for size in (1, 2, 4):
            yield Case(
                label=f"{size}",
                variants={"linear": lambda: [torch.ones(1)], "also": lambda: [torch.ones(1)]},
                reference="also",
                series=("size", size),
                slope=1.1,
            )

    times = {"1": 1.0, "2": 2.0, "4": 4.0}

    def measure(name, case, repeats):
        for variant, power in (("linear", 1), ("also", 2)):
            seconds = times[case.label] ** power
            yield bench.Row(name, case.label, variant, seconds, 1.0, 0, None, "")

    monkeypatch.setattr("cscnn.bench.runner._measure", measure)
    rows = [row for row in bench.run("growing") if row.slope is not None]
    assert [(row.case, row.variant, round(row.slope, 9)) for row in rows] == [
        ("growth with size", "linear", 1.0),
        ("growth with size", "also", 2.0),
    ]
    assert rows[0].target == "slope ≤ 1.1: met (1.00)"
    assert rows[1].target == ""


def test_tune_measures_this_machine(tmp_path, monkeypatch, capsys):
    from cscnn.bench import tune
    from cscnn.conv import backend

    path = tmp_path / "folder" / "tuning.json"
    monkeypatch.setenv("CSCNN_TUNING", str(path))
    small = [(d, 1, 1, n, 3) for d in (1, 2, 3, 4) for n in (6, 8)]
    monkeypatch.setattr(tune, "SHAPES", small)
    assert main(["bench", "--tune"]) == 0
    assert "billion operations/s" in capsys.readouterr().out
    assert set(json.loads(path.read_text())) == {"cpu"}
    assert backend.current_rates("cpu") != backend.DEFAULT_RATES
    assert main(["bench", "--tune", "--device", "nonsense"]) == 1
    assert "cannot measure on device 'nonsense'" in capsys.readouterr().err
    monkeypatch.undo()
    backend.forget()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of escnn
def test_other_libraries_are_measured_where_installed(tmp_path, monkeypatch):
    from cscnn.bench import competitors

    for dim in (3, 2):
        x = torch.randn(1, 2, *(5,) * dim, 2**dim)
        works = competitors.other_libraries((1,) * dim, 2, 3, x)
        assert set(works) <= {"cliffordlayers", "escnn"}
        for work in works.values():
            assert work()[0].shape[0] == 1
    monkeypatch.setattr(competitors, "jax_checkout", tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a checkout of the published code"):
        competitors.other_libraries((1, 1), 2, 3, x)
