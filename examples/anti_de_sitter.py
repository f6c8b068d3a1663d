"""A Klein-Gordon field on anti-de Sitter space, forecast from earlier events.

AdS₂ is the quadric x₀² + x₁² - x₂² = 1 with time around it. Fields of mass m² = Δ(Δ - 1) have exact
wave packets: Re c (z·x)^(-Δ) for any complex null vector z, a particle that swings through the
potential well of the curvature; here Δ = 2. Given φ and its gradient at 45 early events, scattered
about a regular pattern, predict both at 12 later ones within their domain of dependence.

One network, three sets of edges: geodesics with parallel transport; geodesics without transport;
and a flat map of time τ and place χ, with x = (cos τ cosh χ, sin τ cosh χ, sinh χ). All are trained
in one place and tested there, and on the same fields and events moved by isometries SO(2,1):
boosts, which mix time, place and the direction around the quadric.

    python examples/anti_de_sitter.py              # minutes
    python examples/anti_de_sitter.py --quick      # seconds: does it run?
"""

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from _training import fit, point_network
from torch import Tensor

from cscnn import CliffordAlgebra
from cscnn.algebra.group import boost
from cscnn.geometry import Edges, all_pairs, anti_de_sitter
from cscnn.networks import CSPointNet, Neighbourhood, count_parameters

SPACE = anti_de_sitter(2)
AMBIENT, SPACETIME = CliffordAlgebra(SPACE.ambient), CliffordAlgebra(SPACE.metric)
WEIGHT = 2  # Δ
EDGES = ("geodesics, transport", "geodesics, no transport", "flat map")
RAPIDITIES = (0.0, 0.25, 0.5, 0.75, 1.0)
KNOWN = 45


def on_quadric(time: Tensor, place: Tensor) -> Tensor:
    """Points of the chart: (..., 3)."""
    ring = place.cosh()
    return torch.stack([time.cos() * ring, time.sin() * ring, place.sinh()], -1)


def chart(x: Tensor) -> Tensor:
    """Time and place of points (..., 3): (..., 2)."""
    return torch.stack([torch.atan2(x[..., 1], x[..., 0]), x[..., 2].asinh()], -1)


def chart_frames(x: Tensor) -> Tensor:
    """Unit vectors along time and place as columns: (..., 3, 2)."""
    time, place = chart(x).unbind(-1)
    zero = torch.zeros_like(time)
    e_time = torch.stack([-time.sin(), time.cos(), zero], -1)
    e_place = torch.stack([time.cos() * place.sinh(), time.sin() * place.sinh(), place.cosh()], -1)
    return torch.stack([e_time, e_place], -1)


@dataclass
class Sample:
    """Events (N, 3), the later ones last, φ (N,) and its gradient in the ambient space (N, 3)."""

    events: Tensor
    value: Tensor
    gradient: Tensor

    def moved(self, g: Tensor) -> "Sample":
        """The same field and events after an isometry."""
        return Sample(self.events @ g.mT, self.value, self.gradient @ g.mT)


def packets(x: Tensor, z: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Σ Re c (z·x)^(-Δ) and its gradient at points (N, 3), for z (K, 3) and c (K,), complex."""
    form = SPACE.form(x).to(z)
    product = x.to(z) @ form @ z.T  # (N, K)
    value = (c * product**-WEIGHT).sum(-1).real
    tangent = z - product.unsqueeze(-1) * x.unsqueeze(1)
    slope = -WEIGHT * c * product ** (-WEIGHT - 1)
    return value, (slope.unsqueeze(-1) * tangent).sum(1).real


def samples(count: int, seed: int) -> list[Sample]:
    """Fields of three packets each, on events of their own."""
    g = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=g, dtype=torch.float64)

    result = []
    for _ in range(count):
        time = torch.linspace(-0.5, 0, 5).double()[:, None] + 0.1 * (noise(5, 9) - 0.5)
        place = torch.linspace(-1, 1, 9).double() + 0.15 * (noise(5, 9) - 0.5)
        late_time = torch.tensor([[0.15], [0.3], [0.45]]).double() + 0.1 * (noise(3, 4) - 0.5)
        edge = torch.tan(math.atan(math.sinh(1.0)) - late_time).asinh()  # of what is determined
        late_place = edge * (torch.linspace(-0.8, 0.8, 4).double() + 0.2 * (noise(3, 4) - 0.5))
        times = torch.cat([time.flatten(), late_time.flatten()])
        events = on_quadric(times, torch.cat([place.flatten(), late_place.flatten()]))
        angle, swing, phase = 2 * math.pi * noise(3), 0.8 * noise(3), 2 * math.pi * noise(3)
        z = torch.stack(
            [
                torch.complex(angle.cos() * swing.cosh(), -angle.sin()),
                torch.complex(angle.sin() * swing.cosh(), angle.cos()),
                torch.complex(swing.sinh(), torch.zeros_like(swing)),
            ],
            -1,
        )
        result.append(Sample(events, *packets(events, z, torch.polar(0.5 + noise(3), phase))))
    return result


def edges(x: Tensor, name: str) -> Edges:
    """Edges between all events (N, 3), for features in the frames of the chart."""
    if name == "flat map":
        return all_pairs(chart(x)).to(torch.float32)
    geodesics = SPACE.edges(x, frames=chart_frames(x))
    if name == "geodesics, no transport":
        geodesics = replace(geodesics, transport=None)
    return geodesics.to(torch.float32)


def features(sample: Sample) -> Tensor:
    """φ + ∇φ as multivectors in the frames of the chart, (N, 1, 4)."""
    inner = (sample.gradient @ SPACE.form(sample.events)).unsqueeze(1) @ chart_frames(sample.events)
    vector = inner.squeeze(1) * torch.tensor(SPACE.metric)
    field = SPACETIME.embed(sample.value.unsqueeze(-1), 0) + SPACETIME.embed(vector, 1)
    return field.unsqueeze(1).float()


def masked(field: Tensor) -> Tensor:
    """What a network sees, (N, 2, 4): the field where it is known, and where that is."""
    known = torch.zeros_like(field)
    known[:KNOWN, :, 0] = 1
    return torch.cat([field * known[..., :1], known], 1)


def train(name: str, data: list[Sample], args: argparse.Namespace) -> CSPointNet:
    """Fit the later events."""
    torch.manual_seed(args.seed)
    near = Neighbourhood(radius=1.0, neighbours=len(data[0].events))
    net = point_network(SPACETIME, 2, 1, near, width=args.width, blocks=2)
    pairs = [(features(s), edges(s.events, name)) for s in data]

    def loss() -> Tensor:
        batch = [pairs[i] for i in torch.randint(len(pairs), (4,)).tolist()]
        forecast = net(torch.cat([masked(f) for f, _ in batch]), Edges.cat([e for _, e in batch]))
        error = forecast.unflatten(0, (4, -1)) - torch.stack([f for f, _ in batch])
        return error[:, KNOWN:, :, :3].square().mean()

    fit(name, net, loss, args.steps, rate=1e-2)
    return net.eval()


@torch.no_grad()
def errors(net: torch.nn.Module | None, name: str, tests: list[Sample]) -> list[float]:
    """Relative errors of φ at the later events, for each rapidity of the isometry."""
    result = []
    for rapidity in RAPIDITIES:
        squares = total = 0.0
        for i, test in enumerate(tests):
            sample = test.moved(isometry(rapidity, i))
            truth = features(sample)
            if net is None:  # φ at the nearest known event, by the coordinates of the map
                places = chart(sample.events)
                forecast = truth[torch.cdist(places[KNOWN:], places[:KNOWN]).argmin(-1)]
            else:
                forecast = net(masked(truth), edges(sample.events, name))[KNOWN:]
            squares += float((forecast - truth[KNOWN:])[..., 0].square().sum())
            total += float(truth[KNOWN:, :, 0].square().sum())
        result.append(math.sqrt(squares / total))
    return result


def isometry(rapidity: float, seed: int) -> Tensor:
    """Boosts of both time directions of the ambient space with place, one after the other."""
    result = torch.eye(3, dtype=torch.float64)
    signs = torch.rand(2, generator=torch.Generator().manual_seed(seed)).round() * 2 - 1
    for direction in torch.diag(signs).tolist():
        result = boost(AMBIENT, rapidity, direction) @ result
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, default=Path("anti_de_sitter.png"))
    parser.add_argument("--quick", action="store_true", help="a run of seconds")
    args = parser.parse_args()
    count = 96
    if args.quick:
        args.steps, args.width, count = 2, 2, 4
    data, tests = samples(count, seed=1), samples(max(2, count // 4), seed=2)
    print(
        f"A Klein-Gordon field on AdS₂, forecast from {KNOWN} events: relative error of φ at later"
    )
    print(f"events, where the networks were trained ({count} samples) and moved by isometries.\n")
    print(f"| {'edges':<24} |" + "".join(f" rapidity {r:<4} |" for r in RAPIDITIES))
    print(f"|{'-' * 26}|" + f"{'-' * 14}:|" * len(RAPIDITIES))
    results, nets = {}, {"nearest known event": None}
    for name in ("nearest known event", *EDGES):
        if name in EDGES:
            nets[name] = train(name, data, args)
        results[name] = errors(nets[name], name, tests)
        print(f"| {name:<24} |" + "".join(f" {e:>13.3f} |" for e in results[name]), flush=True)
    print(f"\nParameters of each network: {count_parameters(nets[EDGES[0]]):,}.")
    draw(results, nets[EDGES[0]], tests[0], args.figure)


def draw(results: dict[str, list[float]], net: torch.nn.Module, test: Sample, path: Path) -> None:
    """A field before and after an isometry, with events and guesses; errors over rapidities."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), width_ratios=(1, 1, 1.2))
    limit = float(test.value.abs().max())
    for axis, rapidity in zip(axes, (RAPIDITIES[0], RAPIDITIES[-1]), strict=False):
        sample = test.moved(isometry(rapidity, 0))
        with torch.no_grad():
            forecast = net(masked(features(sample)), edges(sample.events, EDGES[0]))
        places = chart(sample.events)
        colours = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "edgecolors": "black"}
        axis.scatter(
            *places[:KNOWN].T.flip(0), c=sample.value[:KNOWN], s=25, linewidths=0, **colours
        )
        late = places[KNOWN:].T.flip(0)
        axis.scatter(*late, c=sample.value[KNOWN:], s=110, marker="s", linewidths=0.5, **colours)
        axis.scatter(*late, c=forecast[KNOWN:, 0, 0], s=25, linewidths=0.5, **colours)
        axis.set_xlabel("place χ")
        axis.set_ylabel("time τ")
        axis.set_title(f"isometry of rapidity {rapidity:g}", fontsize=10)
    axes[0].set_title("early events; later ones: squares exact, dots predicted", fontsize=9)
    for name, row in results.items():
        style = ":" if name == "nearest known event" else "-"
        axes[2].plot(RAPIDITIES, row, style, marker=".", label=name)
    axes[2].set_xlabel("rapidity of the isometry (trained at 0)")
    axes[2].set_title("relative error of φ", fontsize=10)
    axes[2].set_yscale("log")
    axes[2].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    print(f"Figure: {path}")


if __name__ == "__main__":
    main()
