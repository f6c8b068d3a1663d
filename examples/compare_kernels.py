"""Which kernel learns fastest? The measurement behind the default of `CompleteKernel`.

Task: a compressible fluid in a periodic box, pressure p (scalar) and velocity v (vector),

    dv/dt = -∇p - (v·∇)v + ν ∇²v,      dp/dt = -∇·v - v·∇p + ν ∇²p

a system that commutes with all of E(2). A small residual network predicts the state some time later
from the state now. Same data, architecture and optimiser for all; only the kernels differ.

    python examples/compare_kernels.py                   # about ten minutes on two cores
    python examples/compare_kernels.py --steps 60 --seeds 1      # a quick look
"""

import argparse
import math
import time
from itertools import pairwise

import torch
from torch import Tensor, nn

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.kernels import Complete, Implicit, KernelChoice
from cscnn.networks import count_parameters
from cscnn.nn import MVGELU

VARIANTS = {
    "complete, network": Complete(radial="network"),
    "complete, free values": Complete(radial="free"),
    "complete, rings": Complete(radial="rings"),
    "implicit, unit variance": Implicit(),
    "implicit, published": Implicit(unit_variance=False),
}


def simulate(count: int, size: int, seed: int, duration: float = 0.6, nu: float = 0.02) -> Tensor:
    """States before and after: (2, count, size, size, 4), by a spectral method in float64."""
    generator = torch.Generator().manual_seed(seed)
    k = 2 * math.pi * torch.fft.fftfreq(size, 1 / size, dtype=torch.float64) / (2 * math.pi)
    kx, ky = torch.meshgrid(k, k, indexing="ij")
    square = kx**2 + ky**2
    spectrum = torch.exp(-square / 8)
    noise = torch.randn(count, 3, size, size, generator=generator, dtype=torch.float64)
    state = torch.fft.fft2(noise) * spectrum
    real = torch.fft.ifft2(state).real
    state = state / real.std((-3, -2, -1), keepdim=True) * 0.4
    keep = (kx.abs() < size / 3) & (ky.abs() < size / 3)  # against aliasing of the products

    def derivative(s: Tensor) -> Tensor:
        fields = torch.fft.ifft2(s).real
        gradients = torch.fft.ifft2(torch.stack([1j * kx * s, 1j * ky * s], 2)).real
        vx, vy = fields[:, 1:2], fields[:, 2:3]
        advection = torch.fft.fft2(vx * gradients[:, :, 0] + vy * gradients[:, :, 1]) * keep
        p, u, v = s.unbind(1)
        pressure = torch.stack([1j * kx * u + 1j * ky * v, 1j * kx * p, 1j * ky * p], 1)
        return -advection - pressure - nu * square * s

    steps = 60
    dt = duration / steps
    before = torch.fft.ifft2(state).real
    for _ in range(steps):
        a = derivative(state)
        b = derivative(state + dt / 2 * a)
        c = derivative(state + dt / 2 * b)
        d = derivative(state + dt * c)
        state = state + dt / 6 * (a + 2 * b + 2 * c + d)
    pair = torch.stack([before, torch.fft.ifft2(state).real]).movedim(2, -1)
    return nn.functional.pad(pair, (0, 1)).float()  # 1, e1, e2 and an empty e12


class Net(nn.Module):
    """Three convolutions with gates, added to the input."""

    def __init__(self, algebra: CliffordAlgebra, channels: int, kernel: KernelChoice):
        super().__init__()
        widths = [1, channels, channels, 1]
        self.convs = nn.ModuleList(
            CliffordSteerableConv(algebra, a, b, 5, kernel=kernel, padding_mode="circular")
            for a, b in pairwise(widths)
        )
        self.gate = MVGELU(algebra)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for i, conv in enumerate(self.convs):
            y = conv(y)
            if i < len(self.convs) - 1:
                y = self.gate(y)
        return x + y


def train(
    name: str, seed: int, steps: int, channels: int, data: Tensor, test: Tensor
) -> tuple[float, int, float]:
    """Test error (mean square over that of the persistence forecast), parameters, seconds."""
    torch.manual_seed(seed)
    net = Net(CliffordAlgebra((1, 1)), channels, VARIANTS[name])
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    start = time.perf_counter()
    for _ in range(steps):
        chosen = torch.randint(data.shape[1], (8,))
        x, y = data[:, chosen]
        loss = (net(x[:, None])[:, 0, ..., :3] - y[..., :3]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    seconds = time.perf_counter() - start
    with torch.no_grad():
        x, y = test
        error = (net.eval()(x[:, None])[:, 0, ..., :3] - y[..., :3]).square().mean()
    scale = (x - y).square()[..., :3].mean()
    return (error / scale).item(), count_parameters(net), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--size", type=int, default=32, help="grid points per axis")
    args = parser.parse_args()
    data = simulate(64, args.size, seed=0)
    test = simulate(32, args.size, seed=1)
    print(f"{'kernel':<26}{'parameters':>11}{'s / 100 steps':>15}   test error, {args.seeds} seeds")
    for name in VARIANTS:
        runs = [train(name, s, args.steps, args.channels, data, test) for s in range(args.seeds)]
        errors = "  ".join(f"{error:.4f}" for error, _, _ in runs)
        pace = sum(seconds for _, _, seconds in runs) / len(runs) / args.steps * 100
        print(f"{name:<26}{runs[0][1]:>11,}{pace:>15.1f}   {errors}", flush=True)


if __name__ == "__main__":
    main()
