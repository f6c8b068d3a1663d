"""Burgers' equation on the sphere, learnt with and without its curvature.

A tangent vector field u on S² obeys  ∂u/∂t + ∇_u u = ν Δu  (Δ of Hodge): waves that steepen into
fronts, the same wherever on the sphere they are. Its solutions are exact: if φ > 0 obeys the heat
equation then u = -2ν ∇log φ is one (Cole and Hopf), and heat spreads by Legendre polynomials,

    φ(x, t) = 1 + sum_k A_k sum_l (2l + 1) exp(-(s + νt) l(l + 1)) P_l(x · c_k) / const.

One network, three sets of edges: geodesics with parallel transport; geodesics without transport
(vectors compared by their components along meridians and parallels); and a flat map of latitude and
longitude. Trained on a few frames of fields that live near the equator, they are tested there, and
on the same fields rotated so that their equator runs over the poles.

    python examples/sphere.py              # minutes
    python examples/sphere.py --quick      # seconds: does it run?
"""

import argparse
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from _training import fit, point_network
from torch import Tensor

from cscnn import CliffordAlgebra
from cscnn.geometry import Edges, fibonacci_sphere, radius_edges, sphere
from cscnn.networks import Neighbourhood, count_parameters

PLANE = CliffordAlgebra((1, 1))
START, STEP, FRAMES = 0.08, 0.02, 5  # heat has spread by START; νΔt of a frame is STEP
REACH = 0.55  # of an edge


def sources(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Centres (count, 4, 3) within 25 degrees of the equator, and strengths (count, 4, 1)."""
    g = torch.Generator().manual_seed(seed)
    u, v, w = torch.rand(3, count, 4, generator=g, dtype=torch.float64)
    height, angle = math.sin(math.radians(25)) * (2 * u - 1), 2 * math.pi * v
    ring = (1 - height**2).sqrt()
    centres = torch.stack([ring * angle.cos(), ring * angle.sin(), height], -1)
    return centres, (4**w).unsqueeze(-1)


def velocity(points: Tensor, centres: Tensor, strengths: Tensor, spread: float) -> Tensor:
    """-∇φ / φ at points (N, 3), for fields (F, K, 3): (F, N, 3)."""
    z = centres @ points.T  # (F, K, N)
    before, p = torch.ones_like(z), z
    slope_before, slope = torch.zeros_like(z), torch.ones_like(z)
    peak, phi, dphi = 1.0, torch.ones_like(z), torch.zeros_like(z)
    for degree in range(1, 25):
        weight = (2 * degree + 1) * math.exp(-spread * degree * (degree + 1))
        peak += (2 * degree + 1) * math.exp(-START * degree * (degree + 1))
        phi, dphi = phi + weight * p, dphi + weight * slope
        n = degree
        before, p = p, ((2 * n + 1) * z * p - n * before) / (n + 1)
        slope_before, slope = slope, slope_before + (2 * n + 1) * before
    phi = 1 + (strengths * phi).sum(1) / peak
    tangent = centres.unsqueeze(2) - z.unsqueeze(-1) * points  # the gradient of x · c
    gradient = (strengths.unsqueeze(-1) * dphi.unsqueeze(-1) * tangent).sum(1) / peak
    return -gradient / phi.unsqueeze(-1)


class Sphere:
    """Points, their frames along meridians and parallels, and three sets of edges."""

    def __init__(self, count: int):
        self.points, _ = fibonacci_sphere(count)
        x, y, z = self.points.unbind(-1)
        ring = (x**2 + y**2).sqrt()
        south = torch.stack([x * z / ring, y * z / ring, -ring], -1)
        east = torch.stack([-y / ring, x / ring, torch.zeros_like(x)], -1)
        self.frames = torch.stack([south, east], -1)
        geodesics = sphere(2).edges(self.points, REACH, frames=self.frames)
        chart = torch.stack([torch.acos(z), torch.atan2(y, x)], -1)
        flat = radius_edges(chart, REACH, period=(None, 2 * math.pi))
        self.edges: dict[str, Edges] = {
            "geodesics, transport": geodesics.to(torch.float32),
            "geodesics, no transport": replace(geodesics, transport=None).to(torch.float32),
            "flat map": flat.to(torch.float32),
        }

    def trajectories(self, count: int, seed: int, rotated: bool = False) -> Tensor:
        """Exact frames as multivectors, (trajectories, FRAMES, points, 1, 4)."""
        centres, strengths = sources(count, seed)
        if rotated:
            x, y, z = centres.unbind(-1)
            centres = torch.stack([x, -z, y], -1)
        frames = [
            velocity(self.points, centres, strengths, START + i * STEP) for i in range(FRAMES)
        ]
        components = torch.einsum("ftni,nij->ftnj", torch.stack(frames, 1), self.frames)
        return PLANE.embed(components, 1).unsqueeze(-2).float()


class Forecast(torch.nn.Module):
    """u -> u + net(u) a frame later."""

    def __init__(self, neighbours: int, width: int):
        super().__init__()
        near = Neighbourhood(radius=REACH, neighbours=neighbours)
        self.net = point_network(PLANE, 1, 1, near, width=width, blocks=2)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """(fields, points, 1, 4), with edges for as many spheres."""
        change = PLANE.grade(self.net(x.flatten(0, 1), edges), 1)  # the rest of y is no velocity
        return x + 0.2 * PLANE.embed(change, 1).view_as(x)  # the field changes by about a fifth


def train(name: str, edges: Edges, data: Tensor, args: argparse.Namespace) -> Forecast:
    """Fit pairs of subsequent frames."""
    torch.manual_seed(args.seed)
    model = Forecast(round(len(edges) / edges.n_receivers), args.width)
    before, after = data[:, :-1].flatten(0, 1), data[:, 1:].flatten(0, 1)
    pair = edges.repeat(2)

    def loss() -> Tensor:
        chosen = torch.randint(len(before), (2,))
        x, y = before[chosen], after[chosen]
        return (model(x, pair) - y).square().mean() / (x - y).square().mean()

    fit(name, model, loss, args.steps, rate=5e-3)
    return model


@torch.no_grad()
def rollout(model: Forecast, edges: Edges, data: Tensor) -> Tensor:
    """All frames from the first, (trajectories, FRAMES, points, 1, 4)."""
    frames = [data[:, 0]]
    for _ in range(FRAMES - 1):
        frames.append(torch.cat([model(x[None], edges) for x in frames[-1]]))
    return torch.stack(frames, 1)


def error(guess: Tensor, truth: Tensor) -> float:
    """|guess - truth| / |truth|, in norms over the sphere, for all trajectories together."""
    return float((guess - truth).norm() / truth.norm())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--points", type=int, default=250)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, default=Path("sphere.png"))
    parser.add_argument("--quick", action="store_true", help="a run of seconds")
    args = parser.parse_args()
    if args.quick:
        args.steps, args.points, args.width = 2, 150, 2
    space = Sphere(args.points)
    count, few = (8, 2) if args.quick else (64, 12)
    data = space.trajectories(count, seed=1)
    scale = data.square().sum(-1).mean().sqrt()
    tests = {
        "equator": space.trajectories(few, seed=2) / scale,
        "rotated": space.trajectories(few, seed=2, rotated=True) / scale,
    }
    print(f"Burgers' equation on S²: {args.points} points, {count} training trajectories of")
    print(f"{FRAMES} frames near the equator. Relative errors after 1 frame and after {FRAMES - 1}")
    print("(rollout), near the equator and with the same fields rotated over the poles.\n")
    results = compare(space, data / scale, tests, args)
    draw(space, tests["rotated"], results, args.figure)


def compare(
    space: Sphere, data: Tensor, tests: dict[str, Tensor], args: argparse.Namespace
) -> dict[str, dict[str, Tensor]]:
    """Train on each set of edges and print errors; forecasts by edges and test."""
    last = FRAMES - 1
    print(f"| {'edges':<24} | equator, 1 | rotated, 1 | equator, {last} | rotated, {last} |")
    print(f"|{'-' * 26}|{'-' * 11}:|{'-' * 11}:|{'-' * 11}:|{'-' * 11}:|")

    def report(name: str, forecasts: dict[str, Tensor]) -> dict[str, Tensor]:
        numbers = [error(forecasts[k][:, i], tests[k][:, i]) for i in (1, last) for k in tests]
        print(f"| {name:<24} |" + "".join(f" {e:>9.3f}  |" for e in numbers), flush=True)
        return forecasts

    persistence = {test: x[:, :1].expand_as(x) for test, x in tests.items()}
    results = {"persistence": report("persistence", persistence)}
    for name, edges in space.edges.items():
        model = train(name, edges, data, args)
        results[name] = report(name, {test: rollout(model, edges, x) for test, x in tests.items()})
    print(f"\nParameters of each network: {count_parameters(model):,}.")
    return results


def draw(space: Sphere, truth: Tensor, results: dict[str, dict[str, Tensor]], path: Path) -> None:
    """A rotated field seen from above the north pole, and errors by latitude."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 5, figsize=(14, 3), width_ratios=(1, 1, 1, 1, 1.4))
    draw_fields(axes[:-1], space, truth, results)
    axis, latitude = axes[-1], torch.rad2deg(torch.asin(space.points[:, 2].abs()))
    borders = torch.linspace(0, 90, 7).double()
    for name, forecasts in results.items():
        squares = (forecasts["rotated"][:, -1] - truth[:, -1]).square().sum((0, 2, 3))
        sizes = truth[:, -1].square().sum((0, 2, 3))
        bands = [(latitude >= a) & (latitude < b) for a, b in pairwise(borders)]
        curve = [float((squares[band].sum() / sizes[band].sum()).sqrt()) for band in bands]
        style = ":" if name == "persistence" else "-"
        axis.plot((borders[1:] + borders[:-1]) / 2, curve, style, marker=".", label=name)
    axis.set_xlabel("latitude (degrees)")
    axis.set_title("relative error, rotated fields", fontsize=9)
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    print(f"Figure: {path}")


def draw_fields(
    axes: Any, space: Sphere, truth: Tensor, results: dict[str, dict[str, Tensor]]
) -> None:
    """The last frame of the trajectory that is strongest at the pole, exact and forecast."""
    above = space.points[:, 2] > 0
    places = space.points[above, :2]
    strength = truth[:, -1].norm(dim=-1)
    chosen = strength[:, space.points[:, 2] > 0.8].mean((1, 2)).argmax()
    top = float(strength[chosen].max())
    fields = {f"exact, frame {FRAMES - 1}": truth}
    fields |= {name: f["rotated"] for name, f in results.items() if name != "persistence"}
    for axis, (title, field) in zip(axes, fields.items(), strict=True):
        u = field[chosen, -1, above, 0, 1:3]
        arrows = torch.einsum("nij,nj->ni", space.frames[above].float(), u)
        axis.tricontourf(*places.T, u.norm(dim=-1), levels=torch.linspace(0, top, 13), extend="max")
        axis.quiver(*places.T, *arrows[:, :2].T, color="white", scale=12 * top, width=0.008)
        axis.set_title(title, fontsize=9)
        axis.set_aspect("equal")
        axis.axis("off")


if __name__ == "__main__":
    main()
