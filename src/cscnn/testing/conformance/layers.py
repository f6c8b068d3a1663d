"""The suite of pointwise layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.testing.conformance.modules import DTYPES, ModuleSuite, optional_tests
from cscnn.testing.conformance.suite import (
    METRICS,
    Leaky,
    Metric,
    Setting,
    Symmetry,
    check,
    check_close,
    check_control,
    first_setting,
    noise,
    settings,
    specialise,
    symmetries,
)
from cscnn.testing.values import assert_equivariant, equivariance_errors

#: No space axes, one, two, three.
SPACES = ((), (5,), (4, 3), (2, 3, 2))


class LayerSuite(ModuleSuite):
    """Tests of a layer (batch, channels, *space, blades) -> (batch, c_out, *space, blades)."""

    build: Callable[[CliffordAlgebra], nn.Module]
    channels: int
    tol: float
    rapidity: float
    keeps_memory_order: bool

    def make(self, algebra: CliffordAlgebra, **choice: Any) -> nn.Module:
        return self.build(algebra)

    def inputs(self, algebra: CliffordAlgebra, dtype: torch.dtype) -> tuple[Any, ...]:
        return (noise(3, self.channels, *self.cases["space"][-1], algebra.n_blades).to(dtype),)

    def empty_inputs(self, algebra: CliffordAlgebra) -> tuple[tuple[Any, ...], int]:
        (x,) = self.inputs(algebra, torch.float64)
        return (x[:0],), 0

    def test_equivariant(self, symmetry: Symmetry) -> None:
        """f(ρ(g) x) = ρ(g) f(x), and the gradients transform accordingly."""
        algebra = symmetry.algebra
        assert_equivariant(
            self.module(algebra), algebra, (4, self.channels), group=symmetry.group,
            kinds=symmetry.kind, samples=2, rapidity=self.rapidity, tol=self.tol,
        )  # fmt: skip

    def test_control(self, setting: Setting) -> None:
        """A copy that leaks between blades is not equivariant to any kind of transformation."""
        algebra = setting.algebra
        kinds = [s.kind for s in self.cases["symmetry"] if s.algebra == setting.algebra]
        errors = equivariance_errors(
            Leaky(self.module(algebra)), algebra, (4, self.channels), group=setting.group,
            kinds=kinds, rapidity=(0.5, 1.0), samples=1, gradients=False,
        )  # fmt: skip
        check_control(errors, self.tol)

    def test_pointwise(self, space: tuple[int, ...]) -> None:
        """Values at a point depend on that point alone, with any number of space axes."""
        blades = self.algebra.n_blades
        layer, x = self.module(self.algebra), noise(2, self.channels, *space, blades)
        y = layer(x)
        shape = (2, y.shape[1], *space, blades)
        check(y.shape == shape, f"space axes {space} are not kept: the output is {tuple(y.shape)}")
        fewest = (1,) * min(len(axes) for axes in self.cases["space"])
        points = x.reshape(2, self.channels, -1, blades).movedim(2, 1).flatten(0, 1)
        points = points.reshape(len(points), self.channels, *fewest, blades)
        alone = torch.cat([layer(point) for point in points.split(1)])
        expected = alone.reshape(2, -1, y.shape[1], blades).movedim(1, 2).reshape(shape)
        check_close(y, expected, 1e-12, f"points of a space {space} are not treated one by one")

    def test_memory_order(self, space: tuple[int, ...]) -> None:
        """Blades innermost, or next to the channels: the same numbers, in the same order."""
        layer = self.module(self.algebra)
        x = noise(2, self.channels, *space, self.algebra.n_blades)
        y, z = layer(x), layer(x.movedim(-1, 2).contiguous().movedim(2, -1))
        check_close(z, y, 1e-12, "with the blades next to the channels in memory values change")
        if self.keeps_memory_order:
            _check_order(y, "blades innermost")
            _check_order(z.movedim(-1, 2), "blades next to the channels")

    def test_double_backward(self) -> None:
        """Second derivatives in single precision are nearly those in double."""
        expected, actual = (
            _second_derivatives(
                self.module(self.algebra).to(dtype), *self.inputs(self.algebra, dtype)
            )
            for dtype in (torch.float64, torch.float32)
        )
        check(
            bool(actual.isfinite().all()),
            "second derivatives in float32 have NaN or infinities: does something overflow?",
        )
        check_close(actual.double(), expected, 1e-2, "second derivatives in float32 are wrong")

    def test_gradcheck(self) -> None:
        """Gradients are those of finite differences; only with ``gradcheck=True``."""
        layer = self.module(self.algebra)
        x = noise(2, self.channels, self.algebra.n_blades).requires_grad_()
        parameters = dict(layer.named_parameters())

        def call(x: Tensor, *values: Tensor) -> Tensor:
            state = dict(zip(parameters, values, strict=True))
            y: Tensor = torch.func.functional_call(layer, state, (x,))
            return y

        torch.autograd.gradcheck(call, (x, *parameters.values()))


def _second_derivatives(layer: nn.Module, x: Tensor) -> Tensor:
    """The gradient of |∇|y|²|²."""
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    return torch.autograd.grad(gradient.square().sum(), x)[0]


def _check_order(y: Tensor, order: str) -> None:
    check(
        y.is_contiguous(),
        f"a field with its {order} in memory comes back in another order: avoid .contiguous() and "
        "reshape, or say keeps_memory_order=False",
    )


def layer(
    build: Callable[[CliffordAlgebra], nn.Module],
    *,
    channels: int,
    metrics: Sequence[Metric | CliffordAlgebra] = METRICS,
    group: str = "O",
    kinds: Sequence[str] | None = None,
    tol: float = 1e-9,
    rapidity: float = 1.0,
    spaces: Sequence[tuple[int, ...]] = SPACES,
    keeps_memory_order: bool = True,
    compiles: bool = True,
    gradcheck: bool = False,
    jitter: float = 0.3,
    idle: Sequence[str] = (),
) -> type[LayerSuite]:
    """The tests of a pointwise layer, as a class for pytest.

    f(ρ(g) x) = ρ(g) f(x) with gradients, a control, dtypes, autocast, second derivatives, memory
    order, empty batches, ``torch.compile``, copies, pickles and files.

    Args:
        build: makes the layer for an algebra. Its classes must be at the top level of a module,
            else they cannot be pickled.
        channels: of its input.
        metrics: or algebras, to test equivariance with. The other tests take the first with
            several axes.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``. Metrics that do not have it are left out.
        kinds: of transformations, for layers that are not equivariant to all, see
            `CliffordAlgebra.random_orthogonal`.
        tol: largest relative error of equivariance, in float64.
        rapidity: largest of boosts. Rounding errors grow exponentially with it.
        spaces: shapes of space axes, for layers that do not take any number of them.
        keeps_memory_order: whether outputs are in the memory order of the inputs.
        compiles: test ``torch.compile(fullgraph=True)``.
        gradcheck: compare gradients with finite differences too.
        jitter: standard deviation of noise on the parameters.
        idle: parameters that may have no effect, e.g. ``"*.mask_width"``.

    Example:
        >>> from cscnn.nn import MVLinear
        >>> from cscnn.testing import conformance
        >>> TestLinear = conformance.layer(lambda algebra: MVLinear(algebra, 2, 3), channels=2)
        >>> conformance.failures(TestLinear, "dtype")
        {}
    """
    cases = symmetries(metrics, kinds, (group,))
    return specialise(
        LayerSuite, build=build, channels=channels, tol=tol, rapidity=rapidity,
        keeps_memory_order=keeps_memory_order, jitter=jitter, idle=tuple(idle),
        without=optional_tests(compiles, gradcheck),
        algebra=first_setting(cases).algebra,
        cases={
            "symmetry": cases,
            "setting": settings(cases),
            "dtype": DTYPES,
            "space": tuple(spaces),
        },
    )  # fmt: skip
