"""One training, which goes on where it was interrupted."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import cscnn
from cscnn._util.files import replacing
from cscnn._util.machine import machine
from cscnn._util.progress import Bar
from cscnn.geometry import Edges
from cscnn.networks import calibrate_
from experiments.nbody.network import ParticleNet, all_pairs
from experiments.nbody.presets import Trial
from experiments.nbody.records import Record, Results
from experiments.nbody.simulate import Particles, Samples, open_data

#: Simulations that are evaluated together.
MANY = 500
#: Share of the calibrated output with which trainings begin: x + v is a good forecast.
FIRST_OUTPUT = 0.1


@dataclass
class Best:
    """The weights with the lowest error of the validation split, and when there were which."""

    weights: dict[str, Tensor]
    valid: float = math.inf
    step: int = 0


class Training:
    """A network that learns, and what is needed to go on with it.

    Args:
        trial: what is trained.
        data: its splits, in single precision.
    """

    def __init__(self, trial: Trial, data: dict[str, Samples]):
        self.trial, self.data = trial, data
        self.setting = trial.setting
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(trial.seed)
            self.network = trial.contender.build()
            calibrate(self.network, data["train"].select(slice(0, self.setting.batch)))
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=trial.contender.rate,
            weight_decay=self.setting.weight_decay,
        )  # fmt: skip
        self.step, self.seconds = 0, 0.0
        self.best = Best(_copy(self.network.state_dict()))

    @property
    def done(self) -> float:
        """Part of the training that is over."""
        if self.setting.minutes:
            return min(1.0, self.seconds / (60 * self.setting.minutes))
        return self.step / self.setting.steps

    def run(self, file: Path, quiet: bool = False) -> None:
        """Train to the end.

        Args:
            file: where the state is kept between; what is there is gone on with.
            quiet: show no progress.
        """
        self._load(file)
        bar = Bar("seconds" if self.setting.minutes else "steps", quiet=quiet)
        total = round(60 * self.setting.minutes) or self.setting.steps
        while self.done < 1:
            next_check = (math.floor(self.done * self.setting.checks) + 1) / self.setting.checks
            while self.done < next_check:
                self._timed(self.learn)
                bar(self.trial.name, min(total, round(self.done * total)), total)
            self._timed(self.check)
            self._save(file)

    def _timed(self, work: Any) -> None:
        start = time.monotonic()
        work()
        self.seconds += time.monotonic() - start

    def learn(self) -> None:
        """One step."""
        setting = self.setting
        samples = self._batch()
        for group in self.optimizer.param_groups:
            group["lr"] = self.trial.contender.rate * schedule(self.done, setting.warmup)
        loss = (self.network(samples.start) - samples.end).square().mean()
        if not loss.isfinite():
            raise FloatingPointError(f"the loss is {loss.item()} at step {self.step}")
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), setting.clip)
        self.optimizer.step()
        self.step += 1

    def _batch(self) -> Samples:
        """Of a step: of each epoch a permutation, without what is left of the last."""
        count = len(self.data["train"])
        epoch, place = divmod(self.step, max(1, count // self.setting.batch))
        generator = torch.Generator().manual_seed(1_000_003 * self.trial.seed + epoch)
        order = torch.randperm(count, generator=generator)
        signs = 1 - 2 * torch.randint(2, (count, 1), generator=generator)
        logarithms = self.setting.scale * torch.randn(count, generator=generator)
        rows = slice(place * self.setting.batch, (place + 1) * self.setting.batch)
        samples = self.data["train"].select(order[rows])
        if self.setting.flip:
            charges = samples.start.charges * signs[rows]
            samples = Samples(samples.start._replace(charges=charges), samples.end)
        return scaled(samples, logarithms[rows].exp()) if self.setting.scale else samples

    def check(self) -> None:
        """Keep the weights if they are the best ones so far."""
        valid = mean_square(self.network, self.data["valid"])
        if valid < self.best.valid:
            self.best = Best(_copy(self.network.state_dict()), valid, self.step)

    def _save(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        state = {
            "plan": self.trial.plan(),
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "best": vars(self.best),
        }
        with replacing(file) as temporary:
            torch.save(state, temporary)

    def _load(self, file: Path) -> None:
        if not file.is_file():
            return
        state = torch.load(file, weights_only=True)
        if state["plan"] != self.trial.plan():
            return
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]
        self.best = Best(**state["best"])


def scaled(samples: Samples, factors: Tensor) -> Samples:
    """The same motion at other sizes: forces q q' / r² are as many times larger as lengths are.

    Args:
        samples: some simulations.
        factors: (sets,), of lengths and velocities.
    """
    x, v, charges = samples.start
    each = factors[:, None, None]
    start = Particles(each * x, each * v, factors[:, None] ** 1.5 * charges)
    return Samples(start, each * samples.end)


def schedule(done: float, warmup: float) -> float:
    """Learning rate after a part of a training, of the highest: a short rise, then a cosine."""
    rise = min(1.0, 0.01 + done / warmup) if warmup else 1.0
    return rise * (1 + math.cos(math.pi * done)) / 2


def calibrate(network: ParticleNet, samples: Samples) -> None:
    """Set initial scales, for noise where the features of these samples are not zero."""
    features = network.features(samples.start).flatten(0, 1)
    noise = torch.randn_like(features) * (features.abs().amax(0) > 0)
    pairs = all_pairs(*samples.start.charges.shape)
    points = samples.start.positions.flatten(0, 1)
    calibrate_(network.net, noise, Edges.from_edge_index(pairs, points))
    with torch.no_grad():
        for parameter in network.net.last().parameters():
            parameter.mul_(FIRST_OUTPUT)


@torch.no_grad()
def mean_square(network: ParticleNet, samples: Samples) -> float:
    """Mean squared error, of all coordinates of all particles."""
    total = 0.0
    for first in range(0, len(samples), MANY):
        some = samples.select(slice(first, first + MANY))
        total += float((network(some.start) - some.end).double().square().sum())
    return total / samples.end.numel()


def straight_on(data: dict[str, Samples]) -> float:
    """Error of x + t v for the test split, with t fitted to the training split."""
    train, test = data["train"], data["test"]
    moved = train.end - train.start.positions
    t = (moved * train.start.velocities).sum() / train.start.velocities.square().sum()
    error = test.end - test.start.positions - t * test.start.velocities
    return float(error.square().mean())


def run_trial(trial: Trial, results: Results, *, quiet: bool = False) -> Record:
    """Train or go on, measure, and keep the record. Training that diverges is a result too."""
    splits = open_data(results.out / "data.npz", trial.setting.sizes, quiet=True)
    data = {split: samples.float() for split, samples in splits.items()}
    training = Training(trial, data)
    file = results.out / "runs" / f"{trial.name}.pt"
    record = Record(
        trial.name, trial.key, trial.seed, trial.plan(),
        machine={**machine(), "cscnn": cscnn.__version__},
        parameters=sum(p.numel() for p in training.network.parameters()),
        straight=straight_on(data),
    )  # fmt: skip
    try:
        training.run(file, quiet)
    except FloatingPointError:
        pass
    else:
        training.network.load_state_dict(training.best.weights)
        test = mean_square(training.network, data["test"])
        record = replace(record, valid=training.best.valid, test=test, best=training.best.step)
    record = replace(record, steps=training.step, seconds=training.seconds)
    results.store.keep(record)
    file.unlink(missing_ok=True)  # the record has all that is wanted
    return record


def _copy(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in weights.items()}
