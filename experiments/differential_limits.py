"""The command ``python -m experiments.differential_limits``: where differential kernels lose.

A field moves by a distance r in all directions at once: the target is its mean over the circle of
radius r about each point. That commutes with O(2), so steerable kernels may try. The best kernel of
each family on the same 5 x 5 taps is found by least squares on random fields, without training, and
tested on other fields. All targets are known exactly. Smooth fields are sums of waves, which the
mean multiplies by J_0(k r). Of a disc it is an angle.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn._util.command import run_command
from cscnn.kernels import Complete, Differential, KernelChoice

PROGRAM = "python -m experiments.differential_limits"
TAPS, POINTS, FIELDS, RADIUS = 5, 64, 8, 10.0
WAVELENGTHS = (16, 8, 4)  #: shortest ones of smooth fields, in points
DISTANCES = (0.5, 1.0, 2.0)  #: of the displacement, in points
KERNELS: dict[str, KernelChoice] = {
    "differential, order 2": Differential(order=2),
    "differential, order 4": Differential(order=4),
    "complete": Complete(radial="free"),
}

Pair = tuple[Tensor, Tensor]  #: fields and targets, (FIELDS, POINTS, POINTS)


def tap_basis(choice: KernelChoice) -> Tensor:
    """An orthonormal basis of the kernels between scalars: (taps, dimension).

    From what each parameter adds to the taps: kernels of this study are linear in them.
    """
    plane = CliffordAlgebra((1, 1))
    conv = CliffordSteerableConv(plane, 1, 1, TAPS, kernel=choice, bias=False).double()
    parameters = list(conv.kernel.parameters())
    rows = []
    for tap in conv.expanded_kernel()[0, 0].flatten():
        gradients = torch.autograd.grad(tap, parameters, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([g.flatten() for g in gradients]))
    vectors, values, _ = torch.linalg.svd(torch.stack(rows), full_matrices=False)
    return vectors[:, values > 1e-9 * values[0]]


def smooth_fields(wavelength: float, distance: float, seed: int) -> Pair:
    """Periodic noise of all waves that are at least so long."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(FIELDS, POINTS, POINTS, generator=generator, dtype=torch.float64)
    k = 2 * math.pi * torch.fft.fftfreq(POINTS, dtype=torch.float64)
    size = torch.hypot(k[:, None], k[None])
    spectrum = torch.fft.fft2(noise) * (size <= 2 * math.pi / wavelength + 1e-9)
    moved = spectrum * torch.special.bessel_j0(size * distance)
    return torch.fft.ifft2(spectrum).real, torch.fft.ifft2(moved).real


def discs(distance: float, seed: int) -> Pair:
    """One inside a disc and zero outside: a jump."""
    generator = torch.Generator().manual_seed(seed)
    centres = POINTS / 2 + torch.rand(FIELDS, 2, 1, 1, generator=generator, dtype=torch.float64)
    at = torch.arange(POINTS, dtype=torch.float64)
    from_centre = torch.hypot(at[:, None] - centres[:, 0], at - centres[:, 1])
    cosine = (from_centre**2 + distance**2 - RADIUS**2) / (2 * from_centre * distance)
    return (from_centre < RADIUS).double(), cosine.clamp(-1, 1).arccos() / math.pi


def shifted(fields: Tensor) -> Tensor:
    """The values that each point sees through the taps: (all points, taps)."""
    reach = range(-(TAPS // 2), TAPS // 2 + 1)
    copies = [fields.roll((-i, -j), (1, 2)) for i in reach for j in reach]
    return torch.stack(copies, -1).flatten(0, -2)


def best_error(choice: KernelChoice, known: Pair, new: Pair) -> float:
    """Relative error on new fields of the kernel that is best on the known ones."""
    basis = tap_basis(choice)
    seen, target = shifted(known[0]) @ basis, known[1].flatten()
    weights = torch.linalg.lstsq(seen, target[:, None]).solution[:, 0]
    predicted = shifted(new[0]) @ basis @ weights
    return float((predicted - new[1].flatten()).norm() / new[1].norm())


def errors(choice: KernelChoice, distance: float) -> list[float]:
    """By the shortest wavelength, and of discs."""
    pairs = [
        [smooth_fields(wavelength, distance, seed) for seed in (0, 1)] for wavelength in WAVELENGTHS
    ]
    pairs.append([discs(distance, seed) for seed in (0, 1)])
    return [best_error(choice, known, new) for known, new in pairs]


def table() -> str:
    """The errors as Markdown."""
    heads = [*(f"waves ≥ {n} points" for n in WAVELENGTHS), "discs"]
    lines = [
        f"| displacement | kernel | {' | '.join(heads)} |",
        "|---|---|" + "---:|" * len(heads),
    ]
    for distance in DISTANCES:
        for name, choice in KERNELS.items():
            cells = " | ".join(f"{error:.2g}" for error in errors(choice, distance))
            lines.append(f"| {distance:g} points | {name} | {cells} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Relative errors of the best kernel of each family that moves a field in all "
        "directions at once.",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    args = parser.parse_args(argv)
    return run_command(PROGRAM, _print, debug=args.debug)


def _print() -> int:
    print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
