"""``python -m benchmarks`` measures, writes, and says in one line what is wrong."""

import json
from dataclasses import asdict, replace

import pytest

from benchmarks import registry
from benchmarks.__main__ import main
from benchmarks.registry import Case
from benchmarks.runner import Row
from cscnn._util.command import run_command


@pytest.fixture
def files(tmp_path):
    """The files to write, and the options that ask for them."""
    paths = [tmp_path / "bench.json", tmp_path / "page.md"]
    return paths, ["--json", str(paths[0]), "--markdown", str(paths[1])]


def test_the_list_has_a_line_for_each_benchmark(capsys):
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(registry.names())


def test_it_measures_and_writes(files, tmp_path, capsys):
    (table, page), options = files
    assert main(["--only", "product_layer", "--repeats", "1", *options]) == 0
    assert "dense einsum" in capsys.readouterr().out
    data = json.loads(table.read_text())
    ours, dense = data["rows"]
    assert (ours["variant"], dense["ratio"]) == ("cscnn", 1.0)
    assert ours["error"] < 1e-5
    assert 0 < ours["peak_bytes"] < dense["peak_bytes"]
    assert data["machine"]["torch"] in page.read_text()
    assert set(tmp_path.iterdir()) == {table, page}


def test_an_interrupted_run_keeps_its_rows(files, tmp_path, monkeypatch, capsys):
    (table, page), options = files
    measured = []

    def measure(name, case, repeats):
        if name == "network":
            assert json.loads(table.read_text())["rows"] == measured  # after each benchmark
            raise KeyboardInterrupt
        row = Row(name, case.label, "ours", 1.0, 0.1, 1.0, 0, None, "")
        measured.append(asdict(row))
        yield row

    monkeypatch.setattr("benchmarks.runner._measure", measure)
    assert main(["--only", "product_layer", "network", "conv", *options]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert json.loads(table.read_text())["rows"] == measured
    assert len(measured) == page.read_text().count("| ours |") == 1
    assert set(tmp_path.iterdir()) == {table, page}


@pytest.mark.parametrize(("target", "code"), [("time ≤ 1.05: met", 0), ("time ≤ 1.05: MISSED", 1)])
def test_strict_fails_if_a_target_is_missed(monkeypatch, target, code):
    def measure(name, case, repeats):
        yield Row(name, case.label, "ours", 1.0, 0.1, 1.0, 0, None, target)

    monkeypatch.setattr("benchmarks.runner._measure", measure)
    assert main(["--only", "product_layer", "--strict"]) == code
    assert main(["--only", "product_layer"]) == 0


def test_packages_that_are_not_installed_are_named(files, monkeypatch, capsys):
    (_, page), options = files
    entry = registry.get("product_layer")
    assert replace(entry, packages=("torch",)).missing() == ""
    entry = replace(entry, packages=("no_such_package", "torch", "nor_this"))
    monkeypatch.setitem(registry._registry, "product_layer", entry)
    assert main(["--only", "product_layer", "--repeats", "1", *options]) == 0
    message = "Not measured, since not installed: no_such_package, nor_this."
    assert message in capsys.readouterr().out
    assert message in page.read_text().replace("\n", " ")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--only", "nonsense"], "unknown benchmark 'nonsense': choose from"),
        (["--repeats", "0"], "--repeats must be at least 1, got 0"),
        (["--json", "no/such/folder/x.json"], "there is no folder"),
        (["--jax", "/nope"], "/nope is not a checkout of the published code"),
        (["--json", "."], ". is a folder: give the name of a file"),
    ],
)
def test_errors_are_one_line(argv, message, capsys):
    assert main(argv) == 1
    err = capsys.readouterr().err
    assert err.startswith("python -m benchmarks: error: ")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_debug_shows_the_traceback(capsys):
    with pytest.raises(ValueError, match="unknown benchmark"):
        main(["--only", "nonsense", "--debug"])

    def fail():
        raise RuntimeError("two\nlines")

    assert run_command("program", fail) == 1
    assert capsys.readouterr().err == (
        "program: error: RuntimeError: two lines (--debug shows where)\n"
    )


def test_the_help_teaches_by_an_example(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "examples:\n  python -m benchmarks --only" in capsys.readouterr().out


def test_a_case_needs_its_reference():
    with pytest.raises(ValueError, match="'b' is not one of"):
        Case("x", {"a": list}, reference="b")
