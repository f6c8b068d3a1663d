"""The data of docs/explorer/forecast.md: python examples/explorer_data.py docs/assets/explorer

Trains two networks on solitons at rest, and asks them for forecasts of one collision that observers
in motion see. Writes forecast_data.js: the truth and both forecasts, for each observer.
"""

import argparse
import base64
import json
import math
import tempfile
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from cscnn._util.files import replacing
from cscnn._util.progress import Bar
from cscnn.algebra.group import boost
from cscnn.data import FieldFile
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import create
from cscnn.data.simulators.sine_gordon import SineGordon, Solitons
from cscnn.forecasting import Forecaster, Task, Units, Window, Windows, collate
from cscnn.forecasting.evaluation.observers import Observer
from cscnn.kernels import Differential

SPACING = 0.2
FRAMES_IN, FRAMES_OUT, MARGIN = 24, 4, 8
RAPIDITIES = (0.0, 0.25, 0.5, 0.75, 1.0)
SHOWN = 64  # frames of the film
SPEED = 0.4  # of the kinks that meet; in training all are slower than 0.5
SHOWN_FIELD = "cosine"
LEVELS = 2**16 - 1
LIMITS = (-0.5, 2.5)  # of the field, 1 - cos φ, and of forecasts that overshoot

NETWORKS = {
    "differential": {
        "label": "CS-ResNet, differential kernels", "name": "cs_resnet", "rate": 0.012,
        "options": {"kernel": Differential(order=2), "activation": "product"},
    },
    "resnet": {"label": "ResNet", "name": "resnet", "rate": 0.006, "options": {}},
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs/assets/explorer"))
    parser.add_argument("--steps", type=int, default=300, help="of each training (default: 300)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    simulator = create("sine_gordon", spacing=SPACING, frames=56, grid=(64,), speed_limit=0.5)
    assert isinstance(simulator, SineGordon)
    with tempfile.TemporaryDirectory() as scratch:
        (plan,) = plans(simulator, Path(scratch), {"train": 128})
        generate([plan])
        with FieldFile(plan.path) as source:
            trained = {key: train(source, key, arguments.steps) for key in NETWORKS}
    path = arguments.folder / "forecast_data.js"
    with replacing(path) as temporary:
        text = json.dumps(film(simulator, trained), ensure_ascii=False, separators=(",", ":"))
        temporary.write_text(f"globalThis.forecastData = {text};\n", encoding="utf-8")
    print(path)


def train(source: FieldFile, key: str, steps: int) -> Forecaster:
    """A forecaster that has seen solutions at rest."""
    task = Task.from_header(
        source.header, frames_in=FRAMES_IN, frames_out=FRAMES_OUT, open_padding="extrapolate",
        margin=MARGIN,
    )  # fmt: skip
    torch.manual_seed(0)
    choice = NETWORKS[key]
    forecaster = Forecaster.build(
        choice["name"], task, Units.fit(source),
        params=16_000, blocks=2, kernel_size=5, **choice["options"],
    )  # fmt: skip
    windows = Windows(source, task, per_trajectory=1)
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(
        windows, batch_size=4, shuffle=True, collate_fn=collate, generator=generator
    )
    optimizer = torch.optim.AdamW(forecaster.parameters(), choice["rate"])
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, choice["rate"], steps)
    batches = iter(())
    for number in Bar("steps").over(choice["label"], range(steps)):
        if number % len(loader) == 0:
            windows.set_epoch(number // len(loader))
            batches = iter(loader)
        optimizer.zero_grad()
        forecaster.loss(next(batches)).backward()
        optimizer.step()
        schedule.step()
    return forecaster.double().eval()


# --- what observers see ---------------------------------------------------------------------------


def collision() -> Solitons:
    """A kink and an antikink that pass through each other at the origin."""
    theta = math.atanh(SPEED)
    poles = torch.tensor([math.exp(-theta), math.exp(theta)], dtype=torch.complex128)
    meeting = math.log(1 / math.tanh(theta))  # then both exponents are the same at the origin
    phases = torch.tensor([meeting, meeting + 1j * math.pi], dtype=torch.complex128)
    return Solitons(poles, phases)


def windows_of(observer: Observer, solution: Solitons, rapidity: float) -> list[Window]:
    """Windows whose newest forecast frame is at consecutive times of an observer.

    The displacement from input to output is boosted too, so it has a part along space. Windows are
    placed such that outputs are where the film is.
    """
    algebra = observer.forecaster.task.algebra
    g = boost(algebra, rapidity, [1.0])
    step = torch.tensor([SPACING, 0.0], dtype=torch.float64)
    displacement = g @ observer.displacement
    windows = []
    for number in range(SHOWN):
        newest = (number - (SHOWN - 1) / 2) * step
        first_new = newest + step - displacement  # of the input, about which frames are boosted
        moved = solution.translated(observer.centre - torch.linalg.inv(g) @ first_new)
        windows.append(observer.window(moved, g))
    return windows


@torch.no_grad()
def seen(observer: Observer, solution: Solitons, rapidity: float) -> tuple[Tensor, Tensor]:
    """Truth and forecast of an observer, each (frames, points)."""
    forecaster, task = observer.forecaster, observer.forecaster.task
    windows = windows_of(observer, solution, rapidity)
    known, target = (
        {name: torch.cat([window[part][name] for window in windows]) for name in windows[0][part]}
        for part in (0, 1)
    )
    predicted = forecaster(known, constants=windows[0].constants)
    truth, forecast = (task.inside(x)[SHOWN_FIELD][:, -1, :, 0] for x in (target, predicted))
    return truth, forecast


def film(simulator: SineGordon, trained: dict[str, Forecaster]) -> dict[str, object]:
    """All that the page shows."""
    networks, truths = [], []
    for key, forecaster in trained.items():
        observer = Observer(simulator, forecaster)
        views = [
            seen(observer, collision(), r) for r in Bar("observers").over("forecasts", RAPIDITIES)
        ]
        truths = [encoded(truth) for truth, _ in views]
        errors = [float((f - t).norm() / t.norm()) for t, f in views]
        print(f"{key}: {forecaster.n_parameters()} parameters; relative errors by rapidity:")
        print("  " + ", ".join(f"{r:g}: {e:.3f}" for r, e in zip(RAPIDITIES, errors, strict=True)))
        networks.append(
            {
                "key": key,
                "label": NETWORKS[key]["label"],
                "parameters": forecaster.n_parameters(),
                "errors": [round(error, 6) for error in errors],
                "forecasts": [encoded(forecast) for _, forecast in views],
            }
        )
    return {
        "spacing": SPACING,
        "frames": SHOWN,
        "points": simulator.grid[0] - 2 * MARGIN,
        "ahead": FRAMES_OUT * SPACING,
        "limits": LIMITS,
        "rapidities": RAPIDITIES,
        "truths": truths,
        "networks": networks,
    }


def encoded(values: Tensor) -> str:
    """Two bytes for each number, the smaller first, in base64."""
    low, high = LIMITS
    codes = ((values - low) / (high - low)).clamp(0, 1).mul(LEVELS).round()
    return base64.b64encode(codes.cpu().numpy().astype("<u2").tobytes()).decode("ascii")


if __name__ == "__main__":
    main()
