"""The page about the study: ours beside what others have reported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cscnn._util.files import write_text
from cscnn._util.jsonform import from_json, read_json
from cscnn._util.progress import duration
from experiments import archive
from experiments.markdown import page_text
from experiments.nbody.beside import FILE, PROGRAM, Comparison
from experiments.nbody.presets import PUBLISHED
from experiments.nbody.records import FORMAT, Record, Results

STORY = """# Five charged particles

After this page you know how forecasts of charged particles by `CSPointNet` compare with published
[equivariant](glossary.md#equivariant) networks.

Five particles with charges ±1 attract and repel each other in space. Given their positions,
velocities and charges, a network predicts their positions 1,000 steps of the simulator later. The
task, the simulator and the sizes of the splits are those of Satorras et al. (2021): 3,000
simulations for training, 2,000 for validation, 2,000 for the test, batches of 100. Our simulator
draws the same random numbers as the public one, so the simulations are those of the published
runs, up to rounding, which close encounters amplify. The error is the mean squared error of all
coordinates.

Every particle is a point, and each sends to the four others. The networks see positions and
velocities relative to those of the centre, and charges. They predict what is to be added to x + v.
All forecasts commute with rotations, reflections, translations and a change of the observer's
velocity. In training two symmetries of the equations are shown by random changes of simulations:
all charges change their sign, and lengths and velocities are multiplied by a factor, charges by its
power 3/2. Without the second, networks learn the training split by heart.

- **gates**: scalars of each channel scale its multivector.
- **products**: gates with geometric products of multivectors.
- **points that move**: as before; after each block the points move to where particles are expected.
"""


def write_page(results: Results, folder: Path) -> Path:
    """Write nbody.md and its records.

    Args:
        results: of the study.
        folder: of the page.
    """
    records = results.finished()
    if not records:
        raise FileNotFoundError(f"there are no records in {results.out}: run without --draw")
    archive.save(folder / "nbody.json", records, FORMAT)
    file = folder / "nbody.md"
    lines = [STORY, *_table(results, records), *_notes(results, records), *_beside(folder)]
    write_text(file, page_text(lines))
    return file


def _beside(folder: Path) -> list[str]:
    """What `experiments.nbody.beside` measured, if it was."""
    path = folder / FILE
    if not path.is_file():
        return []
    found = from_json(Comparison, read_json(path), str(path))
    lines = [
        f"\nThe public code of CGENN was run beside ours on the same machine, on {found.steps} "
        "batches, with one thread for both. CGENN has the optimiser of its public command, at a "
        "constant learning rate; ours has its own schedule, shortened to these steps:\n",
        "| network | parameters | a step | validation error then |",
        "| --- | --- | --- | --- |",
    ]
    for row in found.rows:
        lines.append(
            f"| {row.label} | {row.parameters:,} | {1e3 * row.seconds:.0f} ms | {row.valid:.4f} |"
        )
    return [*lines, f"\nMade by `{PROGRAM} DIR --steps {found.steps} --page docs`."]


def _table(results: Results, records: Sequence[Record]) -> list[str]:
    lines = [
        "Mean squared error of the test split. What follows ± is half the range of the seeds. "
        "Those marked *published* are numbers of their authors, which were not run here.\n",
        "| network | MSE | seeds | parameters | steps | time |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| x + t v, t fitted | {records[0].straight:.4f} | | 1 | | |",
    ]
    for key, contender in results.contenders.items():
        if own := [record for record in records if record.contender == key]:
            steps = sum(record.steps for record in own) // len(own)
            seconds = sum(record.seconds for record in own) / len(own)
            lines.append(
                f"| {contender.label} | {_spread(own)} | {len(own)} | {own[0].parameters:,} | "
                f"{steps:,} | {duration(seconds)} |"
            )
    lines += [f"| {name}, *published* | {error:.4f} | | | | |" for name, error in PUBLISHED.items()]
    return lines


def _notes(results: Results, records: Sequence[Record]) -> list[str]:
    setting = results.setting
    length = f"{setting.minutes:g} minutes" if setting.minutes else f"{setting.steps:,} steps"
    machine = records[0].machine
    return [
        f"\nEach training takes {length} of AdamW with a cosine learning rate. Weights are those "
        f"with the lowest error of the validation split, out of {setting.checks} looks at it. The "
        "public commands train longer: CGENN for 131,072 steps, EGNN for 10,000 epochs.",
        "\nThe simulator clips each component of a force. Where it does, in close encounters, "
        "the benchmark itself does not commute with rotations.",
        f"\nMeasured on: {machine.get('processor', 'unknown')}, "
        f"{machine.get('torch threads', '?')} threads for each training, PyTorch "
        f"{machine.get('torch', '?')}. The records are in [nbody.json](nbody.json). Run it "
        "yourself: `make nbody`.",
    ]


def _spread(records: Sequence[Record]) -> str:
    values = [record.test for record in records if record.test is not None]
    if len(values) < len(records):
        return "diverged"
    half = (max(values) - min(values)) / 2
    return f"{sum(values) / len(values):.4f}" + (f" ± {half:.4f}" if len(values) > 1 else "")
