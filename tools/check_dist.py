"""Build the sdist and the wheel, and try them as their users will: installed, without a checkout.

    python tools/check_dist.py [--out dist]

make dist runs it. It needs the extra ``dist``. Environments and files of the trial are in a
temporary folder, which is the current folder of everything that runs there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Mapping
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tools" / "programs"
PACKAGE = "src/cscnn"
EXTRAS = "train,viz"
#: What fails without extras, and what the error must name.
MISSING = {
    "data": "from pathlib import Path\nPath('fields.h5').write_bytes(b'HDF')\n"
    "from cscnn.data import open_fields\nopen_fields('fields.h5')",
    "train": "from cscnn import networks as n, CliffordAlgebra as A\n"
    "n.save('net.safetensors', n.CSResNet(A((1,)), 1, 1, width=1))",
    "viz": "from cscnn.viz import plot_kernel\nfrom cscnn.kernels import CompleteKernel as K\n"
    "from cscnn import CliffordAlgebra as A\nplot_kernel(K(A((1, 1)), 1, 1))",
}
#: The main job in seconds, as typed after ``cscnn``.
COMMANDS = (
    "generate navier_stokes --preset small --set grid=16,16 frames=8 --out data "
    "--split train=2 valid=1 test=1",
    "train --preset navier_stokes_small --data.train data/train.h5 --data.valid data/valid.h5 "
    "--data.test data/test.h5 --data.coarsen 1 --trainer.epochs 1 --trainer.steps 2 --out run",
    "evaluate run --steps 2",
    "report run --out report.html",
    "predict run data/test.h5 --steps 2 --out forecast.h5",
)


class Failure(Exception):
    """What is wrong with the distributions."""


def step(text: str) -> None:
    """Say what is done next."""
    print(f"-- {text}", flush=True)


def run(*command: object, folder: Path, env: Mapping[str, str] | None = None) -> str:
    """The output of a command that has to succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=folder, env=env, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise Failure(f"{' '.join(words)}\nended with status {done.returncode}:\n{done.stdout}")
    return done.stdout


# --- the files ------------------------------------------------------------------------------------


def build(out: Path, scratch: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of the tree, in a folder that holds nothing else of this package."""
    for old in [*out.glob("cscnn-*.whl"), *out.glob("cscnn-*.tar.gz")]:
        old.unlink()
    builder = (sys.executable, "-m", "build", "--no-isolation")
    run(*builder, "--sdist", "--wheel", "--outdir", out, ROOT, folder=scratch)
    (sdist,), (wheel,) = out.glob("cscnn-*.tar.gz"), out.glob("cscnn-*.whl")
    return sdist, wheel


def wheel_of_sdist(sdist: Path, scratch: Path) -> Path:
    """The wheel that an installer makes of the sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / "sdist", filter="data")
    (tree,) = (scratch / "sdist").iterdir()
    builder = (sys.executable, "-m", "build", "--no-isolation")
    run(*builder, "--wheel", "--outdir", scratch / "rebuilt", tree, folder=scratch)
    (wheel,) = (scratch / "rebuilt").glob("*.whl")
    return wheel


def contents(wheel: Path) -> dict[str, bytes]:
    """File names of a wheel -> what is in them."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_same(wheel: Path, other: Path) -> None:
    """Raise unless two wheels hold the same files."""
    first, second = contents(wheel), contents(other)
    different = sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
    if different:
        raise Failure(f"the tree and the sdist give wheels that differ in {', '.join(different)}")


def check_files(names: set[str], expected: set[str]) -> None:
    """Raise unless a wheel holds the files of the package and its description, and no others.

    Args:
        names: in the wheel.
        expected: of the package, as ``cscnn/...``.
    """
    package = {name for name in names if ".dist-info/" not in name}
    if missing := sorted(expected - package):
        raise Failure(f"the wheel lacks {', '.join(missing)}")
    if more := sorted(package - expected):
        raise Failure(f"the wheel holds {', '.join(more)}, which are not files of {PACKAGE}")
    for kind in ("py.typed", ".yaml", ".html"):
        if not any(name.endswith(kind) for name in package):
            raise Failure(f"the wheel has no file *{kind}")


def files_of_package() -> set[str]:
    """Those of the tree, as a wheel names them."""
    source = ROOT / PACKAGE
    files = (path.relative_to(source.parent) for path in source.rglob("*") if path.is_file())
    return {path.as_posix() for path in files if "__pycache__" not in path.parts}


def check_metadata(wheel: Path, sdist: Path, scratch: Path) -> None:
    """Raise unless an index accepts the metadata, shows all of it, and its links lead somewhere."""
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, folder=scratch)
    (text,) = (v for name, v in contents(wheel).items() if name.endswith(".dist-info/METADATA"))
    metadata = message_from_bytes(text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for field, expected in (
        ("Project-URL", [f"{name}, {address}" for name, address in project["urls"].items()]),
        ("Provides-Extra", list(project["optional-dependencies"])),
        ("Classifier", project["classifiers"]),
        ("License-Expression", [project["license"]]),
        ("Requires-Python", [project["requires-python"]]),
    ):
        if sorted(metadata.get_all(field, [])) != sorted(expected):
            raise Failure(f"{field} is {metadata.get_all(field)}, expected {expected}")
    readme = metadata.get_payload(decode=True)
    assert isinstance(readme, bytes)
    check_links(readme.decode("utf-8"))


def check_links(markdown: str) -> None:
    """Raise if a page links to files beside it, which an index does not have."""
    targets = re.findall(r"\]\(([^)]+)\)", markdown) + re.findall(r'src="([^"]+)"', markdown)
    if local := [target for target in targets if not target.startswith(("http", "#"))]:
        raise Failure(f"the description links to files of the repository: {', '.join(local)}")


# --- as installed ---------------------------------------------------------------------------------


class Environment:
    """A new environment outside the checkout, and a folder for what runs in it.

    Args:
        folder: to make it in.
    """

    def __init__(self, folder: Path):
        venv = folder / "venv"
        run(sys.executable, "-m", "venv", venv, folder=folder)
        self.bin = venv / ("Scripts" if os.name == "nt" else "bin")
        self.python = shutil.which("python", path=self.bin)
        self.work = folder / "work"
        self.work.mkdir()
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        path = f"{self.bin}{os.pathsep}{os.environ.get('PATH', '')}"
        self.variables = {**kept, "PATH": path, "PYTHONUTF8": "1"}

    def run(self, *command: object) -> str:
        """The output of a command in this environment."""
        return run(*command, folder=self.work, env=self.variables)

    def install(self, wheel: Path, extras: str = "") -> None:
        """The wheel, with pinned versions of what it needs."""
        target = f"{wheel}[{extras}]" if extras else str(wheel)
        pins = ROOT / "constraints.txt"
        self.run(self.python, "-m", "pip", "install", "--quiet", "-c", pins, target)
        place = self.run(self.python, "-c", "import cscnn; print(cscnn.__file__)").strip()
        if not Path(place).is_relative_to(self.bin.parent):
            raise Failure(f"cscnn is imported from {place}, not from {self.bin.parent}")

    def cscnn(self, line: str) -> str:
        """The output of a command line of the package."""
        return self.run(shutil.which("cscnn", path=self.bin) or "cscnn", *line.split())

    def program(self, name: str) -> str:
        """The output of a program, from a copy: it does not see the checkout."""
        copy = shutil.copy(PROGRAMS / name, self.work)
        return self.run(self.python, copy)


def check_without_extras(environment: Environment, version: str) -> None:
    """The library half runs, and what needs more says which extra to install."""
    print(environment.program("library.py"), end="")
    told = environment.cscnn("--version").splitlines()[0]
    if told.split() != ["cscnn", version]:
        raise Failure(f"cscnn --version begins with {told!r}, expected version {version}")
    if "Cl(1, 3)" not in environment.cscnn("info --metric=+---"):
        raise Failure("cscnn info does not describe Cl(1, 3)")
    for extra, code in MISSING.items():
        try:
            environment.run(environment.python, "-c", code)
        except Failure as failure:
            if f"pip install 'cscnn[{extra}]'" in str(failure):
                continue
            raise
        raise Failure(f"this runs without the extra {extra}: {code}")


def check_with_extras(environment: Environment) -> None:
    """The main job, from simulation to report and forecast."""
    print(environment.program("forecasts.py"), end="")
    for line in COMMANDS:
        print(f"cscnn {line}", flush=True)
        environment.cscnn(line)
    if "run" not in (environment.work / "report.html").read_text(encoding="utf-8"):
        raise Failure("the report does not name the run")
    environment.cscnn("data check forecast.h5")


def check_types(environment: Environment) -> None:
    """mypy and pyright know the types of the installed package, and notice a wrong one."""
    checkers: tuple[tuple[object, ...], ...] = (
        (sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull,
         "--python-executable", environment.python),
        (sys.executable, "-m", "pyright", "--warnings", "--pythonpath", environment.python),
    )  # fmt: skip
    programs = [shutil.copy(path, environment.work) for path in sorted(PROGRAMS.glob("*.py"))]
    wrong = environment.work / "wrong.py"
    wrong.write_text("import cscnn\n\nblades: str = cscnn.CliffordAlgebra((1,)).n_blades\n")
    for checker in checkers:
        print(environment.run(*checker, *programs), end="")
        try:
            environment.run(*checker, wrong.name)
        except Failure as failure:
            if '"int"' not in str(failure):
                raise
        else:
            raise Failure(f"{checker[2]} takes the number of blades for a text")
    print(completeness(environment))


def completeness(environment: Environment) -> str:
    """What part of the public names has a type that all checkers agree on."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--verifytypes", "cscnn", "--ignoreexternal"],
        cwd=environment.work, env=environment.variables, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    match = re.search(r"Type completeness score: [\d.]+%", done.stdout)
    if match is None or "Path of py.typed file" not in done.stdout:
        raise Failure(f"pyright found no types:\n{done.stdout}")
    return match[0]


def main() -> int:
    """Build, check, try; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="(default: dist)")
    out = parser.parse_args().out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cscnn-dist-") as name:
        scratch = Path(name).resolve()
        try:
            check(out, scratch)
        except Failure as failure:
            print(f"error: {failure}", file=sys.stderr)
            return 1
    print(f"-- all good, {time.monotonic() - start:.0f} s")
    return 0


def check(out: Path, scratch: Path) -> None:
    """Raise `Failure` unless the distributions can be published."""
    step("build the sdist and the wheel")
    sdist, wheel = build(out, scratch)
    for path in (sdist, wheel):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    step("files of the wheel, the same from the tree and from the sdist")
    check_files(set(contents(wheel)), files_of_package())
    check_same(wheel, wheel_of_sdist(sdist, scratch))
    step("metadata")
    check_metadata(wheel, sdist, scratch)
    environment = Environment(scratch)
    step("the wheel without extras")
    environment.install(wheel)
    check_without_extras(environment, wheel.name.split("-")[1])
    step(f"the wheel with the extras {EXTRAS}")
    environment.install(wheel, EXTRAS)
    check_with_extras(environment)
    step("types, as mypy and pyright see them")
    check_types(environment)


if __name__ == "__main__":
    sys.exit(main())
