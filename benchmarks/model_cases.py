"""Training steps of networks: beside a ResNet, beside their convolutions alone, and compiled."""

from __future__ import annotations

import copy
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn

from benchmarks import work
from benchmarks.registry import Case, Work, benchmark
from benchmarks.tasks import simulator_task
from benchmarks.work import forward_backward
from cscnn import CliffordAlgebra
from cscnn.kernels import Complete
from cscnn.networks import CSResNet, build, compile_blocks, load, save

# (task, batch, channels, grid, largest time relative to the ResNet's)
SETUPS = (
    ("navier_stokes", 2, 16, (64, 64), 1.15),
    ("maxwell3d", 1, 6, (32, 32, 32), 0.6),
)
#: Networks of 8 blocks and 5 taps: label, metric, batch, channels, grid.
BLOCKS, TAPS = 8, 5
POINTWISE = (
    ("R(2,0) 4x10x32^2", (1, 1), 4, 10, (32, 32)),
    ("R(2,0) 4x16x64^2", (1, 1), 4, 16, (64, 64)),
    ("R(1,2) 1x8x16x32^2", (1, -1, -1), 1, 8, (16, 32, 32)),
)
FULL, PLAIN, ALONE = "norms and product gates", "norms and plain gates", "convolutions alone"
COMPILED, EAGER = "compiled", "eager"


@benchmark(
    "start",
    "What has to be waited for before anything is computed",
    "Commands include the start of Python, and loading does not repeat the passes over noise by "
    "which a new network is calibrated.",
)
def start() -> Iterator[Case]:
    task = simulator_task("navier_stokes")
    signature = (task.input_type, task.output_type, task.grid)
    commands = {"cscnn --help": ("-m", "cscnn.cli", "--help"), "python": ("-c", "pass")}
    works = {name: partial(_run, *arguments) for name, arguments in commands.items()}
    yield Case("command", works, "python", seconds=0.3)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "network.safetensors"
        save(path, build("cs_resnet", *signature, width=48))
        works = {
            "load": partial(_no_tensors, partial(load, path)),
            "build": partial(_no_tensors, partial(build, "cs_resnet", *signature, width=48)),
        }
        label = "cs_resnet of 7M parameters"
        yield Case(label, works, "build", seconds=1.0, judged=tuple(works))


def _run(*arguments: str) -> list[Tensor]:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return []


def _no_tensors(make: Callable[[], object]) -> list[Tensor]:
    make()
    return []


def training_step(network: nn.Module, x: Tensor) -> Work:
    """Forward and backward, with gradients of the parameters."""
    return forward_backward(lambda *_: network(x), list(network.parameters()))


@benchmark(
    "model",
    "Training step of the 8-block CS-ResNet beside a ResNet of c·2^d channels",
    "Ratios are relative to a ResNet as wide as our flattened multivectors, not of equal size.",
)
def steps() -> Iterator[Case]:
    for name, batch, channels, grid, time_ratio in SETUPS:
        task = simulator_task(name)
        signature = (task.input_type, task.output_type, task.grid)
        blades = task.algebra.n_blades
        steerable = build("cs_resnet", *signature, width=channels)
        ordinary = build("resnet", *signature, width=channels * blades)
        x = torch.randn(batch, task.input_type.channels, blades, *grid).movedim(2, -1)
        yield Case(
            label=f"{name} {batch}x{channels}x{grid[0]}^{len(grid)}",
            variants={
                "cs_resnet": training_step(steerable, x),
                "resnet": training_step(ordinary, x),
            },
            reference="resnet",
            speedup=1 / time_ratio,
        )


def resnet(
    metric: tuple[int, ...], channels: int, activation: str = "product", norm: bool = True
) -> CSResNet:
    """A network of `POINTWISE`; without activation, blocks are convolutions alone."""
    torch.manual_seed(0)
    network = CSResNet(
        CliffordAlgebra(metric),
        channels,
        channels,
        channels,
        BLOCKS,
        kernel_size=TAPS,
        kernel=Complete(hidden_dim=4),
        activation=activation or "gate",
        norm=norm,
    )
    if not activation:
        for block in network.blocks:
            assert isinstance(block.acts, nn.ModuleList)
            block.acts = nn.ModuleList(nn.Identity() for _ in block.acts)
    return network.to(work.device)


def field(metric: tuple[int, ...], batch: int, channels: int, grid: tuple[int, ...]) -> Tensor:
    """Noise, as convolutions leave it in memory."""
    return torch.randn(batch, channels, 2 ** len(metric), *grid).movedim(2, -1).to(work.device)


@benchmark(
    "pointwise",
    "Training step of 8-block CS-ResNets beside that of their convolutions",
    "The ratio is what norms, gates and products add.",
)
def pointwise() -> Iterator[Case]:
    for label, metric, batch, channels, grid in POINTWISE:
        x = field(metric, batch, channels, grid)
        variants = {
            FULL: resnet(metric, channels),
            PLAIN: resnet(metric, channels, "gate"),
            ALONE: resnet(metric, channels, "", norm=False),
        }
        yield Case(
            label,
            {name: training_step(network, x) for name, network in variants.items()},
            ALONE,
            compare=(),
            speedup=1 / 1.25,
        )


@benchmark(
    "compiled",
    "Training step of 8-block CS-ResNets, compiled block by block and not",
    "First steps include compilation, without the compiler's cache on disk.",
)
def compiled() -> Iterator[Case]:
    for label, metric, batch, channels, grid in POINTWISE[:2]:
        x, network = field(metric, batch, channels, grid), resnet(metric, channels)
        yield Case(
            f"{label}, first step",
            {COMPILED: tuple, EAGER: tuple},
            EAGER,
            timed=partial(_first_steps, network, x),
            seconds=60.0,
        )
        fast = copy.deepcopy(network)
        compile_blocks(fast)
        variants = {COMPILED: training_step(fast, x), EAGER: training_step(network, x)}
        yield Case(label, variants, EAGER, compare=(), speedup=1 / 0.77)


def _first_steps(network: nn.Module, x: Tensor, _: int) -> Mapping[str, Sequence[float]]:
    """Seconds of one first step each; compilation is never repeated."""
    torch.compiler.reset()
    fresh = copy.deepcopy(network)
    seconds = {}
    before = torch.compiler.config.force_disable_caches
    torch.compiler.config.force_disable_caches = True
    try:
        for name in (EAGER, COMPILED):
            if name == COMPILED:
                compile_blocks(fresh)
            start = time.perf_counter()
            training_step(fresh, x)()
            seconds[name] = [time.perf_counter() - start]
    finally:
        torch.compiler.config.force_disable_caches = before
    return seconds
