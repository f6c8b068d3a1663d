"""The suite of steerable kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.kernels import SteerableKernel, find_orbits
from cscnn.testing.conformance.modules import DTYPES, ModuleSuite, optional_tests
from cscnn.testing.conformance.suite import (
    Metric,
    Setting,
    Symmetry,
    check,
    check_close,
    check_control,
    first_setting,
    leaked,
    noise,
    settings,
    specialise,
    symmetries,
)
from cscnn.testing.errors import demand
from cscnn.testing.steerability import steerability_errors

#: One metric for each signature of up to three dimensions.
SIGNATURES: tuple[Metric, ...] = tuple(
    (1,) * p + (-1,) * (d - p) for d in (1, 2, 3) for p in range(d, -1, -1)
)
CHANNELS = (2, 3)


class KernelSuite(ModuleSuite):
    """Tests of a `SteerableKernel`: points (N, dim) -> (N, c_out, blades, c_in, blades)."""

    build: Callable[..., SteerableKernel]
    group: str
    points: Callable[[CliffordAlgebra], Tensor] | None
    tol: float
    rapidity: float

    def make(self, algebra: CliffordAlgebra, **choice: Any) -> nn.Module:
        choice = {"group": self.group, **choice}
        if "group" not in inspect.signature(self.build).parameters:
            choice.pop("group")
        kernel = self.build(algebra, *CHANNELS, **choice)
        check(isinstance(kernel, SteerableKernel), f"expected a SteerableKernel, got {kernel!r}")
        return kernel

    def kernel(self, algebra: CliffordAlgebra, group: str) -> SteerableKernel:
        """A kernel in float64 with parameters away from special values."""
        kernel = self.module(algebra, group=group)
        assert isinstance(kernel, SteerableKernel)
        return kernel

    def sampling(self, algebra: CliffordAlgebra) -> Tensor:
        """Points (N, dim) with coordinates in [-1, 1], in float64."""
        if self.points is not None:
            return self.points(algebra).double()
        axis = torch.linspace(-1, 1, 3, dtype=torch.float64)
        return torch.cartesian_prod(*[axis] * algebra.dim).reshape(-1, algebra.dim)

    def extra(self, kernel: SteerableKernel) -> Tensor | None:
        """Known multivectors for kernels that take any."""
        count = kernel.extra_channels
        return noise(count, kernel.algebra.n_blades, seed=4) if count else None

    def inputs(self, algebra: CliffordAlgebra, dtype: torch.dtype) -> tuple[Any, ...]:
        extra = self.extra(self.kernel(algebra, self.group))
        return self.sampling(algebra).to(dtype), None, None if extra is None else extra.to(dtype)

    def empty_inputs(self, algebra: CliffordAlgebra) -> tuple[tuple[Any, ...], int]:
        points, orbits, extra = self.inputs(algebra, torch.float64)
        return (points[:0], orbits, extra), 0

    def errors(self, kernel: SteerableKernel, group: str, **options: Any) -> dict[str, float]:
        """See `steerability_errors`."""
        points = None if self.points is None else self.sampling(kernel.algebra)
        return steerability_errors(
            kernel, points=points, extra=self.extra(kernel), group=group, **options
        )

    def test_steerable(self, symmetry: Symmetry) -> None:
        """K(gv) = ρ(g) K(v) ρ(g)^-1, at random points, on the light cone and at the origin."""
        kernel = self.kernel(symmetry.algebra, symmetry.group)
        errors = self.errors(
            kernel, symmetry.group, kinds=symmetry.kind, samples=2, rapidity=self.rapidity
        )
        demand(errors, self.tol, f"{type(kernel).__name__} is not steerable under", kernel.algebra)

    def test_control(self, setting: Setting) -> None:
        """A copy that leaks between blades is not steerable."""
        kernel = _LeakyKernel(self.kernel(*setting))
        kinds = [s.kind for s in self.cases["symmetry"] if s[::2] == setting]
        errors = self.errors(kernel, setting.group, kinds=kinds, rapidity=(0.5, 1.0), samples=4)
        check_control(errors, self.tol)

    def test_shape(self, setting: Setting) -> None:
        """(N, c_out, blades, c_in, blades), and `expand` in the layout of weights."""
        kernel = self.kernel(*setting)
        points, extra = self.sampling(kernel.algebra), self.extra(kernel)
        c_in, c_out, blades = *CHANNELS, kernel.algebra.n_blades
        expected = (len(points), c_out, blades, c_in, blades)
        value = kernel(points, extra=extra)
        check(value.shape == expected, f"K has shape {tuple(value.shape)}, not {expected}")
        layout = kernel.expand(points, extra=extra).movedim(-1, 0)
        check_close(layout, value, self.tol, "expand differs from forward")

    def test_orbits(self, setting: Setting) -> None:
        """Evaluated once for each orbit it is the same as point by point."""
        kernel = self.kernel(*setting)
        points, extra = self.sampling(kernel.algebra), self.extra(kernel)
        orbits = find_orbits(points, kernel.algebra, kernel.group)
        by_orbits = kernel(points, orbits, extra)
        check_close(by_orbits, kernel(points, extra=extra), self.tol, "by orbits K differs")

    def test_parity(self, setting: Setting) -> None:
        """K(-v)[C, B] = (-1)^(|C| + |B|) K(v)[C, B], if v -> -v is in the group."""
        kernel = self.kernel(*setting)
        if not kernel.parity:
            return
        points, extra = self.sampling(kernel.algebra), self.extra(kernel)
        signs = kernel.algebra.grade_involution(torch.ones(kernel.algebra.n_blades).double())
        expected = kernel(points, extra=extra) * signs[:, None, None] * signs
        found = kernel(-points, extra=extra)
        check_close(found, expected, self.tol, "K(-v) is not what parity demands")

    def test_unit_variance(self, setting: Setting) -> None:
        """After `unit_variance_`, noise convolved over the points keeps its variance."""
        kernel = self.kernel(*setting)
        points = self.sampling(kernel.algebra)
        kernel.unit_variance_(points)
        value = kernel.expand(points, extra=kernel.zero_extra())
        by_blade = value.detach().square().sum((2, 3, 4)).mean(0)
        for grade, part in enumerate(by_blade.split(kernel.algebra.grade_sizes)):
            variance = part.mean().item()
            fine = variance == 0 or abs(variance - 1) < 1e-4
            check(fine, f"noise of variance 1 has variance {variance:.4g} in grade {grade}")

    def test_gradcheck(self) -> None:
        """K is differentiable in the points; only with ``gradcheck=True``."""
        kernel = self.module(self.algebra)
        points, _, extra = self.inputs(self.algebra, torch.float64)
        points = 0.7 * points[:3] + 0.1
        torch.autograd.gradcheck(lambda v: kernel(v, extra=extra), points.requires_grad_())


class _LeakyKernel(SteerableKernel):
    def __init__(self, kernel: SteerableKernel):
        super().__init__(kernel.algebra, kernel.c_in, kernel.c_out, kernel.basis, kernel.group)
        self.kernel, self.extra_channels = kernel, kernel.extra_channels

    def law(self, points: Tensor, extra: Tensor | None = None) -> Tensor:
        return leaked(self.kernel.law(points, extra))


def kernel(
    build: Callable[..., SteerableKernel],
    *,
    groups: Sequence[str] = ("O",),
    metrics: Sequence[Metric | CliffordAlgebra] = SIGNATURES,
    kinds: Sequence[str] | None = None,
    points: Callable[[CliffordAlgebra], Tensor] | None = None,
    tol: float = 1e-10,
    rapidity: float = 2.0,
    compiles: bool = True,
    gradcheck: bool = False,
    jitter: float = 0.1,
    idle: Sequence[str] = (),
) -> type[KernelSuite]:
    """The tests of a steerable kernel, as a class for pytest.

    K(gv) = ρ(g) K(v) ρ(g)^-1 for each kind of g, a control, shapes, orbits, parity, unit variance,
    gradients, dtypes, no points, ``torch.compile``, copies, pickles and files.

    Args:
        build: called as ``build(algebra, c_in, c_out)``, or with ``group=`` if it has a parameter
            of that name.
        groups: to test steerability under; those without a time axis are left out where there is
            none.
        metrics: or algebras, by default one for each signature of up to three dimensions.
        kinds: of transformations; by default all that exist.
        points: for an algebra the points (N, dim) where the kernel is defined; by default anywhere.
        tol: largest relative error, in float64.
        rapidity: largest of boosts.
        compiles: test ``torch.compile(fullgraph=True)``.
        gradcheck: compare derivatives by the points with finite differences.
        jitter: standard deviation of noise on the parameters.
        idle: parameters that may have no effect, e.g. ``"*.mask_width"``.

    Example:
        >>> from cscnn.kernels import Complete, CompleteKernel
        >>> from cscnn.testing import conformance
        >>> def build(algebra, c_in, c_out, group):
        ...     return CompleteKernel(algebra, c_in, c_out, Complete(group=group))
        >>> TestComplete = conformance.kernel(build, groups=("O", "SO+"))
        >>> conformance.failures(TestComplete, "test_parity")
        {}
    """
    cases = symmetries(metrics, kinds, groups)
    return specialise(
        KernelSuite,
        without=optional_tests(compiles, gradcheck),
        build=build,
        group=first_setting(cases).group,
        points=points,
        tol=tol,
        rapidity=rapidity,
        jitter=jitter,
        idle=tuple(idle),
        algebra=first_setting(cases).algebra,
        cases={"symmetry": cases, "setting": settings(cases), "dtype": DTYPES},
    )
