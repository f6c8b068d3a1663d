"""Burgers' equation on the sphere, learnt with and without its curvature.

A tangent vector field u on S² obeys  ∂u/∂t + ∇_u u = ν Δu  (Δ of Hodge): waves that steepen into
fronts, the same wherever on the sphere they are. Its solutions are exact: if φ > 0 obeys the heat
equation then u = -2ν ∇log φ is one (Cole and Hopf), and heat spreads by Legendre polynomials,

    φ(x, t) = 1 + sum_k A_k sum_l (2l + 1) exp(-(s + νt) l(l + 1)) P_l(x · c_k) / const.

One network, three sets of edges: geodesics with parallel transport; geodesics without transport
(vectors compared by their components along meridians and parallels); and a flat map of latitude and
longitude. Trained on a few frames of fields that live near the equator, they are tested there, and
on the same fields turned so that their equator runs over the poles.

    python examples/sphere.py              # minutes
    python examples/sphere.py --quick      # seconds: does it run?
"""

import argparse
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from cscnn import CliffordAlgebra, models
from cscnn.geometry import Edges, fibonacci_sphere, radius_edges, sphere
from cscnn.progress import Bar

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

    def trajectories(self, count: int, seed: int, turned: bool = False) -> Tensor:
        """Exact frames as multivectors, (trajectories, FRAMES, points, 1, 4)."""
        centres, strengths = sources(count, seed)
        if turned:
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
        self.net = models.build(
            "cs_pointnet", PLANE, c_in=1, c_out=1, width=width, blocks=2, radius=REACH,
            neighbours=neighbours,
        )  # fmt: skip

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """(fields, points, 1, 4), with edges for as many spheres."""
        change = PLANE.grade(self.net(x.flatten(0, 1), edges), 1)  # the rest of y is no velocity
        return x + 0.2 * PLANE.embed(change, 1).view_as(x)  # the field changes by about a fifth


def train(name: str, edges: Edges, data: Tensor, args: argparse.Namespace, bar: Bar) -> Forecast:
    """Fit pairs of subsequent frames."""
    torch.manual_seed(args.seed)
    model = Forecast(round(len(edges) / edges.n_receivers), args.width)
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, args.steps)
    before, after = data[:, :-1].flatten(0, 1), data[:, 1:].flatten(0, 1)
    pair = edges.repeat(2)
    for _ in bar.over(name, range(args.steps)):
        chosen = torch.randint(len(before), (2,))
        x, y = before[chosen], after[chosen]
        loss = (model(x, pair) - y).square().mean() / (x - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
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
    space, bar = Sphere(args.points), Bar("steps")
    count, few = (8, 2) if args.quick else (64, 12)
    data = space.trajectories(count, seed=1)
    scale = data.square().sum(-1).mean().sqrt()
    data = data / scale
    tests = {
        "equator": space.trajectories(few, seed=2) / scale,
        "turned": space.trajectories(few, seed=2, turned=True) / scale,
    }
    print(f"Burgers' equation on S²: {args.points} points, {len(data)} training trajectories of")
    print(f"{FRAMES} frames near the equator. Relative errors after 1 frame and after {FRAMES - 1}")
    print("(rollout), near the equator and with the same fields turned over the poles.\n")
    last = FRAMES - 1
    print(f"| {'edges':<24} | equator, 1 | turned, 1 | equator, {last} | turned, {last} |")
    print(f"|{'-' * 26}|{'-' * 11}:|{'-' * 10}:|{'-' * 11}:|{'-' * 10}:|")
    results = {"no change": {kind: test[:, :1].expand_as(test) for kind, test in tests.items()}}
    for name in ("no change", *space.edges):
        if name in space.edges:
            edges = space.edges[name]
            model = train(name, edges, data, args, bar)
            results[name] = {kind: rollout(model, edges, test) for kind, test in tests.items()}
        guess = results[name]
        numbers = [error(guess[k][:, i], tests[k][:, i]) for i in (1, last) for k in tests]
        print(f"| {name:<24} |" + "".join(f" {e:>9.3f}  |" for e in numbers), flush=True)
    print(f"\nParameters of each network: {model.net.n_parameters():,}.")
    draw(space, tests["turned"], results, args.figure)


def draw(space: Sphere, truth: Tensor, results: dict[str, dict[str, Tensor]], path: Path) -> None:
    """A turned field seen from above the north pole, and errors by latitude."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 5, figsize=(14, 3), width_ratios=(1, 1, 1, 1, 1.4))
    above = space.points[:, 2] > 0
    where = space.points[above, :2]
    at_pole = truth[:, -1].norm(dim=-1)[:, space.points[:, 2] > 0.8].mean((1, 2)).argmax()
    fields = {"exact": truth} | {k: g["turned"] for k, g in results.items() if k != "no change"}
    top = float(truth[at_pole, -1].norm(dim=-1).max())
    for axis, (name, field) in zip(axes, fields.items(), strict=False):
        u = field[at_pole, -1, above, 0, 1:3]
        arrows = torch.einsum("nij,nj->ni", space.frames[above].float(), u)
        axis.tricontourf(*where.T, u.norm(dim=-1), levels=torch.linspace(0, top, 13), extend="max")
        axis.quiver(*where.T, *arrows[:, :2].T, color="white", scale=12 * top, width=0.008)
        title = f"exact, frame {FRAMES - 1}" if name == "exact" else name
        axis.set_title(title, fontsize=9)
        axis.set_aspect("equal")
        axis.axis("off")
    latitude = torch.rad2deg(torch.asin(space.points[:, 2].abs()))
    bins = torch.linspace(0, 90, 7).double()
    for name, guesses in results.items():
        squares = (guesses["turned"][:, -1] - truth[:, -1]).square().sum((0, 2, 3))
        sizes = truth[:, -1].square().sum((0, 2, 3))
        rows = [(latitude >= a) & (latitude < b) for a, b in pairwise(bins)]
        curve = [float((squares[r].sum() / sizes[r].sum()).sqrt()) for r in rows]
        style = ":" if name == "no change" else "-"
        axes[-1].plot((bins[1:] + bins[:-1]) / 2, curve, style, marker=".", label=name)
    axes[-1].set_xlabel("latitude (degrees)")
    axes[-1].set_title("relative error, turned fields", fontsize=9)
    axes[-1].set_ylim(bottom=0)
    axes[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    print(f"Figure: {path}")


if __name__ == "__main__":
    main()
