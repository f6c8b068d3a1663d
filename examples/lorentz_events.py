"""Where and when did it flash? Regression on events of spacetime, seen from moving frames.

A flash happens at an unknown event X of R^{1,3}. Six satellites see it, at events x_i on its future
light cone, but for errors of their clocks; their four-velocities u_i are known. Find X from x_i and
u_i: relativistic positioning. The answer moves with the question under the whole Poincaré group.

All models are trained on satellites of rapidity up to 0.3, and tested on the same flashes as
recorded by observers who move past them, in any direction, faster and faster. Errors are measured
in the frame of the training data, so that they can be compared.

- cs_pointnet on all pairs of events, with features 1 + u_i: each event gets a vector that points to
  its guess of X, and the guesses are averaged. Kernels of O(1,3) are functions of x_j - x_i.
- An MLP of equal size on the coordinates of x_i, relative to their mean, and of u_i, in order of
  time; and the same trained on data that are boosted at random by up to rapidity 1.
- Least squares, told the physics: 2 x_i·X - X·X = x_i·x_i is linear in X and X·X.

    python examples/lorentz_events.py              # minutes
    python examples/lorentz_events.py --quick      # seconds: does it run?
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from _training import fit, point_network
from torch import Tensor, nn

from cscnn import CliffordAlgebra
from cscnn.geometry import all_pairs
from cscnn.kernels import Complete
from cscnn.networks import FieldType, Neighbourhood, count_parameters, fit_budget

SPACETIME = CliffordAlgebra((1, -1, -1, -1))
METRIC = torch.tensor(SPACETIME.metric, dtype=torch.float64)
COUNT, CLOCK, SPEED = 6, 0.01, 0.3  # satellites, error of clocks, rapidity
RAPIDITIES = (0.0, 0.5, 1.0, 1.5, 2.0)


def flashes(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Satellites (count, 2, COUNT, 4): events and velocities; and their flashes (count, 4).

    Satellites are 1 to 2 from the centre, the flash is within 1 of it, in units of light time.
    """
    g = torch.Generator().manual_seed(seed)

    def in_shell(low: float, high: float, *shape: int) -> Tensor:
        direction = torch.randn(*shape, 3, generator=g, dtype=torch.float64)
        share = torch.rand(*shape, 1, generator=g, dtype=torch.float64)
        distance = (low**3 + share * (high**3 - low**3)) ** (1 / 3)
        return nn.functional.normalize(direction, dim=-1) * distance

    place, flash = in_shell(1, 2, count, COUNT), in_shell(0, 1, count)
    error = CLOCK * torch.randn(count, COUNT, generator=g, dtype=torch.float64)
    time = (place - flash.unsqueeze(1)).norm(dim=-1) + error
    events = torch.cat([time.unsqueeze(-1), place], -1)
    velocity = boosts(count * COUNT, (0.0, SPEED), g)[:, :, 0].view_as(events)
    flash_event = torch.cat([torch.zeros(count, 1, dtype=torch.float64), flash], -1)
    return torch.stack([events, velocity], 1), flash_event


def boosts(count: int, rapidity: float | tuple[float, float], generator: torch.Generator) -> Tensor:
    """Boosts (count, 4, 4) in random directions, by a rapidity or by random ones of a range."""
    limits = rapidity if isinstance(rapidity, tuple) else (rapidity, rapidity)
    return SPACETIME.random_orthogonal(
        "boost", batch=count, rapidity=limits, generator=generator, dtype=torch.float64
    )


class Points(nn.Module):
    """cs_pointnet: the mean of what the satellites guess, (batch, 2, COUNT, 4) -> (batch, 4)."""

    def __init__(self, params: int):
        super().__init__()
        near = Neighbourhood(radius=2.0, neighbours=COUNT)
        channel = FieldType.full(SPACETIME, 1)
        options = fit_budget(
            "cs_pointnet", channel, channel, params, near, blocks=2, kernel=Complete(hidden_dim=8)
        )
        self.net = point_network(SPACETIME, 1, 1, near, **options)

    def forward(self, satellites: Tensor) -> Tensor:
        events, velocity = satellites.unbind(1)
        number = torch.arange(len(events)).repeat_interleave(COUNT)
        edges = all_pairs(events.flatten(0, 1), batch=number)
        x = SPACETIME.embed(velocity.flatten(0, 1), 1).unsqueeze(1)
        x = x + SPACETIME.embed(torch.ones_like(x[..., :1]), 0)
        towards = SPACETIME.grade(self.net(x, edges), 1).view_as(events)
        return (events + towards).mean(1)


class MLP(nn.Module):
    """A network on coordinates, (batch, 2, COUNT, 4) -> (batch, 4). Translations are built in."""

    def __init__(self, params: int):
        super().__init__()
        inputs = 8 * COUNT
        b = inputs + 6  # params = h² + b h + 4
        hidden = round((-b + math.sqrt(b**2 + 4 * (params - 4))) / 2)
        self.net = nn.Sequential(
            nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
            nn.Linear(hidden, 4),
        )  # fmt: skip

    def forward(self, satellites: Tensor) -> Tensor:
        order = satellites[:, :1, :, :1].argsort(2).expand_as(satellites)
        events, velocity = satellites.gather(2, order).unbind(1)
        centre = events.mean(1)
        x = torch.stack([events - centre.unsqueeze(1), velocity], 1)
        return centre + self.net(x.flatten(1))


def least_squares(satellites: Tensor) -> Tensor:
    """X from the linear equations 2 x_i·X - X·X = x_i·x_i, relative to the mean event."""
    events = satellites[:, 0].double()
    centre = events.mean(1, keepdim=True)
    x = events - centre
    matrix = torch.cat([2 * x * METRIC, -torch.ones_like(x[..., :1])], -1)
    squares = (x.square() * METRIC).sum(-1, keepdim=True)
    solution = torch.linalg.lstsq(matrix, squares).solution.squeeze(-1)
    return solution[:, :4] + centre.squeeze(1)


class Delay:
    """Goes back from the mean event along the mean velocity, by as much as is best in the mean."""

    def __init__(self, satellites: Tensor, flash: Tensor):
        centre, mean = satellites.mean(2).unbind(1)
        self.time = ((flash - centre) * mean).sum() / mean.square().sum()

    def __call__(self, satellites: Tensor) -> Tensor:
        centre, mean = satellites.mean(2).unbind(1)
        return centre + self.time.to(centre) * mean


@dataclass(frozen=True)
class Plan:
    """How a network learns: steps, batch, largest rate, and rapidity of boosts of the data."""

    steps: int
    batch: int
    rate: float
    rapidity: float = 0.0


def train(name: str, model: nn.Module, data: tuple[Tensor, Tensor], plan: Plan) -> nn.Module:
    """Fit flashes to satellites; boosted at random by up to a rapidity."""
    g = torch.Generator().manual_seed(0)

    def loss() -> Tensor:
        chosen = torch.randint(len(data[0]), (plan.batch,), generator=g)
        satellites, flash = data[0][chosen], data[1][chosen]
        if plan.rapidity:
            boost = boosts(plan.batch, (0.0, plan.rapidity), g)
            satellites = satellites @ boost.mT.unsqueeze(1)
            flash = (boost @ flash.unsqueeze(-1)).squeeze(-1)
        return (model(satellites.float()) - flash.float()).square().sum(-1).mean()

    fit(name, model, loss, plan.steps, plan.rate)
    return model.eval()


@torch.no_grad()
def errors(guess: Callable[[Tensor], Tensor], data: tuple[Tensor, Tensor]) -> list[float]:
    """Median distances of guesses to flashes, in the original frame, for each rapidity."""
    result = []
    for rapidity in RAPIDITIES:
        g = torch.Generator().manual_seed(7)
        boost = boosts(len(data[0]), rapidity, g)
        moved = (data[0] @ boost.mT.unsqueeze(1)).float()
        seen = torch.cat([guess(part) for part in moved.split(100)]).double()
        back = torch.linalg.solve(boost, seen.unsqueeze(-1)).squeeze(-1)
        result.append(float((back - data[1]).norm(dim=-1).median()))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--params", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, default=Path("lorentz_events.png"))
    parser.add_argument("--quick", action="store_true", help="a run of seconds")
    args = parser.parse_args()
    steps, many, tests = args.steps, 10 * args.steps, 1000
    if args.quick:
        steps, many, tests = 2, 2, 20
    data, test = flashes(32768, seed=1), flashes(tests, seed=2)
    torch.manual_seed(args.seed)
    print(f"Flashes seen by {COUNT} satellites with clocks of error {CLOCK}: median error of the")
    print("flash's place and time, for observers who move past at some rapidity.\n")
    print(f"| {'':<26} | parameters |" + "".join(f" {r:>6} |" for r in RAPIDITIES))
    print(f"|{'-' * 28}|{'-' * 11}:|" + f"{'-' * 7}:|" * len(RAPIDITIES))
    results = {}

    def report(name: str, guess: Callable[[Tensor], Tensor], size: str) -> None:
        results[name] = errors(guess, test)
        numbers = "".join(f" {e:>6.3f} |" for e in results[name])
        print(f"| {name:<26} | {size:>10} |{numbers}", flush=True)

    report("a fixed delay", Delay(*data), "1")
    report("least squares", least_squares, "0")
    for name, network, plan in (
        ("MLP", MLP, Plan(many, 128, 2e-3)),
        ("MLP, boosted training data", MLP, Plan(many, 128, 2e-3, rapidity=1.0)),
        ("cs_pointnet", Points, Plan(steps, 32, 1e-2)),
    ):
        model = train(name, network(args.params), data, plan)
        report(name, model, f"{count_parameters(model):,}")
    draw(results, args.figure)


def draw(results: dict[str, list[float]], path: Path) -> None:
    """Errors over rapidities."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3.6))
    for name, row in results.items():
        known = name in ("least squares", "a fixed delay")
        axis.semilogy(RAPIDITIES, row, "--" if known else "-", marker=".", label=name)
    axis.set_xlabel("rapidity of the observer (trained at 0)")
    axis.set_title("Median error of the flash", fontsize=10)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=100, metadata={"Software": None})
    print(f"\nFigure: {path}")


if __name__ == "__main__":
    main()
