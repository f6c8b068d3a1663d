"""The suite of networks on grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from cscnn.algebra import CliffordAlgebra
from cscnn.testing.conformance.modules import DTYPES, ModuleSuite, check_same, optional_tests
from cscnn.testing.conformance.suite import (
    METRICS,
    Leaky,
    Metric,
    Setting,
    check,
    check_close,
    check_control,
    first_setting,
    noise,
    settings,
    specialise,
    symmetries,
)
from cscnn.testing.grids import grid_equivariance_errors


class NetworkSuite(ModuleSuite):
    """Tests of a network (batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades)."""

    build: Callable[[CliffordAlgebra, int, int], nn.Module]
    c_in: int
    c_out: int
    size: int | None
    multiple: int
    tol: float
    translations: bool
    point_group: bool

    def make(self, algebra: CliffordAlgebra, **choice: Any) -> nn.Module:
        return self.build(algebra, self.c_in, self.c_out)

    def grid(self, algebra: CliffordAlgebra) -> tuple[int, ...]:
        """As many points along every axis, so that all symmetries exist."""
        size = self.size or (6 if algebra.dim < 3 else 4)
        return (max(2, -(-size // self.multiple)) * self.multiple,) * algebra.dim

    def oblong(self, algebra: CliffordAlgebra) -> tuple[int, ...]:
        """Different numbers of points along the axes."""
        return tuple(n + axis * self.multiple for axis, n in enumerate(self.grid(algebra)))

    def inputs(self, algebra: CliffordAlgebra, dtype: torch.dtype) -> tuple[Any, ...]:
        return (noise(2, self.c_in, *self.oblong(algebra), algebra.n_blades).to(dtype),)

    def empty_inputs(self, algebra: CliffordAlgebra) -> tuple[tuple[Any, ...], int]:
        (x,) = self.inputs(algebra, torch.float64)
        return (x[:0],), 0

    def errors(self, net: nn.Module, setting: Setting) -> dict[str, float]:
        """Violations of the symmetries that are claimed."""
        algebra = setting.algebra
        shape = (1, self.c_in, *self.grid(algebra))
        group = setting.group if self.point_group else "SO"
        errors = grid_equivariance_errors(net, algebra, shape, group=group, step=self.multiple)
        claims = {"translation": self.translations, "point group": self.point_group}
        return {name: error for name, error in errors.items() if claims[name]}

    def test_symmetries_of_the_grid(self, setting: Setting) -> None:
        """Translations, and all flips and permutations of axes that keep metric and group."""
        for name, error in self.errors(self.module(setting.algebra), setting).items():
            check(
                error <= self.tol,
                f"it does not commute with the {name} of a grid in {setting}: the relative error "
                f"is {error:.1e}, allowed are {self.tol:.1e}. Translations need circular padding, "
                "and multiples of the coarsest spacing inside",
            )

    def test_control(self, setting: Setting) -> None:
        """A copy that leaks between blades, and more so along an axis, has no symmetry."""
        algebra = setting.algebra
        size = self.grid(algebra)[0]
        slope = torch.linspace(1, 2, size, dtype=torch.float64)
        factor = slope.reshape(size, *(1,) * algebra.dim)
        check_control(self.errors(Leaky(self.module(algebra), factor), setting), self.tol)

    def test_keeps_any_grid(self, setting: Setting) -> None:
        """The output has c_out channels on the grid of the input, with sides of any length."""
        algebra = setting.algebra
        net = self.module(algebra)
        for grid in (self.grid(algebra), self.oblong(algebra)):
            x = noise(1, self.c_in, *grid, algebra.n_blades)
            shape, expected = tuple(net(x).shape), (1, self.c_out, *grid, algebra.n_blades)
            check(shape == expected, f"the output for {tuple(x.shape)} is {shape}, not {expected}")

    def test_batch(self) -> None:
        """Elements of a batch do not see each other, in eval mode."""
        net = self.module(self.algebra)
        (x,) = self.inputs(self.algebra, torch.float64)
        alone = torch.cat([net(part) for part in x.split(1)])
        check_close(net(x), alone, 1e-9, "an element of a batch depends on the others")

    def test_memory_order(self) -> None:
        """Blades innermost, or next to the channels: the same numbers."""
        net = self.module(self.algebra)
        (x,) = self.inputs(self.algebra, torch.float64)
        beside_channels = x.movedim(-1, 2).contiguous().movedim(2, -1)
        check_same(net(beside_channels), net(x), "with another memory order of the input it")


def network(
    build: Callable[[CliffordAlgebra, int, int], nn.Module],
    *,
    c_in: int = 2,
    c_out: int = 3,
    metrics: Sequence[Metric | CliffordAlgebra] = METRICS,
    group: str | None = "O",
    translations: bool = True,
    multiple: int = 1,
    size: int | None = None,
    tol: float = 1e-9,
    compiles: bool = True,
    jitter: float = 0.1,
    idle: Sequence[str] = (),
) -> type[NetworkSuite]:
    """The tests of a network on grids, as a class for pytest.

    Symmetries of the grid, a control, oblong grids, gradients that reach every parameter, dtypes,
    autocast, memory order, batches, empty ones, ``torch.compile``, copies, pickles and files.

    Args:
        build: called as ``build(algebra, c_in, c_out)``; with circular padding, see below.
        c_in, c_out: channels.
        metrics: or algebras, to test with. What does not depend on the metric takes the first of
            several axes.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``; None if translations are all.
        translations: whether it commutes with cyclic shifts, i.e. has circular padding.
        multiple: sides of grids, and translations, are multiples of it: 2^levels of a U-Net.
        size: points along an axis; by default about 6, in more than two dimensions 4.
        tol: largest relative error of a symmetry, in float64.
        compiles: test ``torch.compile(fullgraph=True)``.
        jitter: standard deviation of noise on the parameters.
        idle: parameters that may have no effect, e.g. ``"*.mask_width"``.

    Example:
        >>> from cscnn import CliffordSteerableConv
        >>> from cscnn.testing import conformance
        >>> TestConv = conformance.network(
        ...     lambda *args: CliffordSteerableConv(*args, 3, padding_mode="circular"),
        ...     metrics=[(1, -1)],
        ... )
        >>> conformance.failures(TestConv, "symmetries")
        {}
    """
    if group is None and not translations:
        raise ValueError("a network with group=None and translations=False has nothing to test")
    cases = symmetries(metrics, None, (group or "O",))
    return specialise(
        NetworkSuite, build=build, c_in=c_in, c_out=c_out, size=size, multiple=multiple, tol=tol,
        translations=translations, point_group=group is not None, jitter=jitter, idle=tuple(idle),
        without=optional_tests(compiles),
        algebra=first_setting(cases).algebra,
        cases={"setting": settings(cases), "dtype": DTYPES},
    )  # fmt: skip
