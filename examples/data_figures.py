"""Pictures and numbers of the data cards: python examples/data_figures.py docs/figures

Makes docs/figures/data_TASK.png for every data set, from small presets. With --cards docs/data it
also writes the parts of the cards that are computed: parameters, stored fields, sizes, times.
"""

import argparse
import dataclasses
import inspect
import re
import tempfile
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch

from cscnn._util.machine import machine
from cscnn.data import FieldFile
from cscnn.data.files import trajectory_bytes
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import SIMULATORS, Simulator, create, stream
from cscnn.viz import plot_fields

mpl.use("Agg")

FRAMES = {"navier_stokes": (0, 2, 4, 8), "maxwell3d": (0, 1, 2, 3)}
SPLITS = {"maxwell_spacetime": {"train": 2048, "valid": 256, "test": 256}}  # of the paper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs/figures"))
    parser.add_argument("--cards", type=Path, help="folder of the cards to bring up to date")
    parser.add_argument("--no-times", action="store_true", help="do not measure the full presets")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    print(f"one thread of {machine()['processor']}, torch {torch.__version__}")
    for name in SIMULATORS:
        with tempfile.TemporaryDirectory() as scratch:
            (plan,) = plans(create(name, "small"), Path(scratch), {"train": 4})
            generate([plan])
            with FieldFile(plan.path) as file:
                print(picture(file, name, arguments.folder))
                parts = {"scales": scales(file), **computed(name)}
        if not arguments.no_times:
            parts["time"] = seconds(name)
            print(f"{name}: {parts['time']}")
        if arguments.cards:
            update(arguments.cards / f"{name}.md", parts)


def picture(file: FieldFile, name: str, folder: Path) -> Path:
    """Stills of one trajectory."""
    figure = plot_fields(file, frame=FRAMES.get(name))
    path = folder / f"data_{name}.png"
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})
    return path


def scales(file: FieldFile) -> str:
    """A table of how large the fields are and how fast they change."""
    rows = [
        "| field | standard deviation | largest | change per frame | missed by extrapolation |",
        "|---|---:|---:|---:|---:|",
    ]
    for field in file.header.fields:
        # frames first; trajectories on points have different sizes
        rows_of = [
            file.read(i)[field.name].reshape(file.header.frames, -1) for i in range(len(file))
        ]
        x = np.concatenate(rows_of, 1).astype(float)
        after = np.linalg.norm(x[2:])
        change = np.linalg.norm(x[2:] - x[1:-1]) / after
        missed = np.linalg.norm(x[2:] - 2 * x[1:-1] + x[:-2]) / after
        rows.append(
            f"| `{field.name}` | {x.std():.2g} | {np.abs(x).max():.2g} | {change:.0%} | "
            f"{missed:.0%} |"
        )
    return "\n".join(rows)


def computed(name: str) -> dict[str, str]:
    """The parts of a card that follow from the code alone."""
    return {"parameters": parameters(name), "fields": fields(name), "sizes": sizes(name)}


def seconds(name: str) -> str:
    """How long one trajectory of full size takes."""
    simulator = create(name)
    rngs = [stream(name, 0, "train", i) for i in range(max(2, simulator.batch))]
    create(name, "small").simulate(rngs[:1])  # start-up
    start = time.process_time()  # others may use the machine
    for i in range(0, len(rngs), simulator.batch):
        simulator.simulate(rngs[i : i + simulator.batch])
    each = (time.process_time() - start) / len(rngs)
    return f"{each:.2g} s of processor time (one thread of {machine()['processor']})"


def parameters(name: str) -> str:
    """A table of all options, from the dataclass and its docstring."""
    presets = SIMULATORS[name].presets
    small = create(name, "small").parameters()
    rows = [f"| option | `{_full(name)}` (default) | `small` | meaning |", "|---|---|---|---|"]
    meanings = _meanings(SIMULATORS[name])
    for field in dataclasses.fields(SIMULATORS[name]):
        other = small[field.name] if field.name in presets["small"] else None
        cells = (f"`{field.name}`", _show(field.default), "" if other is None else _show(other))
        rows.append(f"| {' | '.join(cells)} | {meanings[field.name]} |")
    return "\n".join(rows)


def _full(name: str) -> str:
    """The preset of full size, which is the default."""
    return next(iter(SIMULATORS[name].presets))


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    return f"({', '.join(map(_show, value))})" if isinstance(value, tuple) else str(value)


def _meanings(simulator: type[Simulator]) -> dict[str, str]:
    """Option -> its line in the section Attributes of the docstring."""
    meanings: dict[str, str] = {}
    for base in reversed(simulator.__mro__):
        docstring = inspect.cleandoc(base.__dict__.get("__doc__") or "")
        section = re.sub(r"\n {8,}", " ", docstring.partition("Attributes:\n")[2])
        for names, meaning in re.findall(r"^ {4}([\w, ]+): (.*)$", section, re.M):
            meaning = meaning.replace("``", "`").rstrip(".")
            meanings.update(dict.fromkeys(names.split(", "), meaning))
    return meanings


def fields(name: str) -> str:
    """A table of what is stored."""
    header = create(name).header()
    rows = [
        "| field | grade | components | units | shape of a trajectory |",
        "|---|---|---|---|---|",
    ]
    for field in header.fields:
        blades = ", ".join(header.components(field.grade))
        sizes = map(str, header.shape(field.name))
        if header.cloud is not None:
            frames, _, components = sizes
            sizes = iter((frames, "points", components))
        shape = " × ".join(sizes)
        rows.append(f"| `{field.name}` | {field.grade} | {blades} | {field.units} | {shape} |")
    return "\n".join(rows)


def sizes(name: str) -> str:
    """A table of bytes in float32, without compression."""
    presets = (_full(name), "small")
    rows = [f"| trajectories | `{presets[0]}` | `small` |", "|---|---:|---:|"]
    each = [_stored(create(name, p)) for p in presets]
    rows.append(f"| 1 | {' | '.join(_bytes(n) for n in each)} |")
    for split, count in SPLITS.get(name, {"": 1000}).items():
        label = f"{count}, the paper's {split}" if split else f"{count}"
        rows.append(f"| {label} | {' | '.join(_bytes(count * n) for n in each)} |")
    return "\n".join(rows)


def _stored(simulator: Simulator) -> int:
    """Bytes of a trajectory, on points of one of mean size."""
    header = simulator.header()
    each = trajectory_bytes(header, "float32")
    if header.cloud is None:
        return each
    return sum(simulator.points) * (each + 8 * header.algebra.dim) // 2


def _bytes(count: int) -> str:
    power = min(9, max(3, (len(str(count)) - 1) // 3 * 3))
    return f"{count / 10**power:.3g} {({3: 'kB', 6: 'MB', 9: 'GB'})[power]}"


def update(path: Path, parts: dict[str, str]) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- end -->``."""
    text = path.read_text(encoding="utf-8")
    for name, part in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda m, p=part: m[1] + p + "\n" + m[2], text, flags=re.S)
        if count != 1:
            raise ValueError(f"{path} needs one part <!-- {name} --> … <!-- end -->, has {count}")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
