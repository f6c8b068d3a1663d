"""`DifferentialKernel`: steerable differential operators, as kernels of a few taps.

A kernel that is constant along hyperbolas leaves every box of taps, and where the box cuts it off
boosts fail. No finite window is invariant, except for a single point. What lives at a point are
differential operators. Those that commute with O(p, q) are, for every signature, exactly

    L = sum_k  a_k(□) P_k  +  b_k(□) ∇∧(∇⌟P_k)  +  c_k(□) ∇∧P_k  +  d_k(□) ∇⌟P_k

with ∇ = sum_i η_i e_i ∂_i, □ = ∇∇ = sum_i η_i ∂_i² and polynomials a, b, c, d: the symbol of L is a
polynomial in the vector that stands for ∇, and satisfies the constraint of steerable kernels, so it
is one of the complete kernels (see `cscnn.kernels.basis`) with polynomial radial functions. On a
grid each ∂_i becomes a finite difference. That is the only approximation: nothing is cut off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_choice, check_type
from cscnn._util.torch_private import tracing
from cscnn.algebra import CliffordAlgebra
from cscnn.kernels.base import KernelChoice, SteerableKernel
from cscnn.kernels.basis import SteerableBasis, monomials_up_to
from cscnn.kernels.orbits import Invariants, Orbits, check_points, find_orbits
from cscnn.kernels.radial import default_std
from cscnn.kernels.stencils import central_weights, radius_for

GROUPS = ("O", "SO")  #: polynomials do not tell the future from the past

NEEDS_GRID = (
    "differential kernels need a grid, whose differences approximate derivatives: on point sets "
    "use Complete() or Implicit()"
)

Exponents = tuple[int, ...]  #: of a derivative: how often along each axis
Polynomial = Mapping[Exponents, int]  #: in the derivatives ∂_i


@dataclass(frozen=True)
class Differential(KernelChoice):
    """Steerable differential operators, for boosts that hold on grids: `DifferentialKernel`.

    Args:
        order: largest total order of derivatives. A kernel of one tap has none.
        accuracy: the least that the differences must have, even: their error falls like
            h^accuracy. It decides which kernel sizes are large enough: 5 taps per axis for
            ``order=4`` and ``accuracy=2``, 3 for ``order=2``.
        group: ``"O"``, or ``"SO"`` to include compositions with the pseudoscalar.

    Example:
        >>> Differential(order=2).to_dict()
        {'name': 'differential', 'order': 2, 'accuracy': 2, 'group': 'O'}
    """

    name: ClassVar[str] = "differential"

    order: int = 4
    accuracy: int = 2
    group: str = "O"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("group", self.group, GROUPS)
        radius_for(self.order, self.accuracy)

    def build(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        points: Tensor,
        kernel_size: tuple[int, ...] | None = None,
    ) -> DifferentialKernel:
        if kernel_size is None:
            raise ValueError(NEEDS_GRID)
        return DifferentialKernel(algebra, c_in, c_out, points, kernel_size, self)


class Derivative(NamedTuple):
    """∂^exponents □^boxes: what operators are made of, with exponents of total order two or less.

    With tensors up to four. Fewer than the derivatives along axes that they consist of: 21 instead
    of 34 in three dimensions up to order four.
    """

    exponents: Exponents
    boxes: int

    @property
    def order(self) -> int:
        """Total order."""
        return sum(self.exponents) + 2 * self.boxes

    def along_axes(self, metric: tuple[int, ...]) -> Polynomial:
        """The derivative multiplied out, □ being sum_i η_i ∂_i²."""
        result: Polynomial = {self.exponents: 1}
        d = len(metric)
        box = {tuple(2 * int(i == axis) for i in range(d)): metric[axis] for axis in range(d)}
        for _ in range(self.boxes):
            result = _multiply(result, box)
        return result


class DifferentialKernel(SteerableKernel):
    """All steerable differential operators up to an order, with constant coefficients.

    Convolving with it applies L = sum_j w_j E_j(∇) □^m by finite differences. Its symbol, a
    polynomial in the vector v that stands for ∇, satisfies L(gv) = ρ(g) L(v) ρ(g)^-1 exactly. Under
    rotations and boosts of fields the error is that of the differences: O(h^accuracy).

    Every basis operator has unit norm on the taps. Coefficients are drawn such that unit noise in
    gives unit noise out.

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        points: (N, dim) the grid of taps, equidistant along each axis with its centre at zero.
        kernel_size: taps along each axis. Differences use all of them.
        choice: the options.

    Attributes:
        operators: (basis kernel, power of □) for each coefficient.
        derivatives: ∂^e □^m that occur.
        steps: distance of neighbouring taps along each axis.
        points: (N, dim) where the taps are, in float64 on the CPU.
    """

    element_scale: Tensor
    norms: Tensor
    table: Tensor
    stencils: Tensor

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        points: Tensor,
        kernel_size: Sequence[int],
        choice: Differential = Differential(),
    ):
        group = check_type("choice", choice, Differential).group
        basis = SteerableBasis(algebra, special=group == "SO")
        super().__init__(algebra, c_in, c_out, basis, group)
        self.kernel_size: tuple[int, ...] = tuple(kernel_size)
        self.order: int = 0 if max(self.kernel_size) == 1 else choice.order
        _check_size(self.kernel_size, self.order, choice.accuracy)
        check_points(points, algebra)
        self.points: Tensor = points.to("cpu", torch.float64)
        self.steps: tuple[float, ...] = tuple(
            float(self.points[:, axis].max()) / (size // 2) if size > 1 else 1.0
            for axis, size in enumerate(self.kernel_size)
        )
        self.operators, self.derivatives, table = operators_up_to(algebra, group, self.order)
        self._stencils = tap_stencils(
            self.derivatives, algebra.metric, self.kernel_size, self.steps
        )
        self._table = table.clone()  # what is cached stays as it is
        self._norms = _tap_norms(table, self._stencils)
        self.weight = nn.Parameter(torch.empty(self.c_out, self.c_in, len(self.operators)))
        self.register_buffer("element_scale", torch.ones(len(self.operators)))
        for name, value in self._constants(self.weight).items():
            self.register_buffer(name, value, persistent=False)
        self.reset_parameters()

    def _constants(self, like: Tensor) -> dict[str, Tensor]:
        return {
            "norms": self._norms.to(like),
            "table": self._table.to(like),
            "stencils": self._stencils.to(like),
        }

    def _apply(self, fn: Any, recurse: bool = True) -> DifferentialKernel:
        """Moves and casts like any module, with the constants derived anew from float64."""
        super()._apply(fn, recurse)
        for name, value in self._constants(self.weight).items():
            setattr(self, name, value)
        return self

    def coefficients(self, orbits: Invariants) -> Tensor:
        """None: convolutions along edges ask for them."""
        raise ValueError(NEEDS_GRID)

    def reset_parameters(self) -> None:
        """Draw the coefficients; unit noise in gives unit noise out."""
        std = default_std((self.c_out, self.c_in, len(self.operators)), 1)
        nn.init.normal_(self.weight, std=std)
        self.element_scale.fill_(1 / std)
        self.unit_variance_(self.points)

    def scale_output_(self, factors: Tensor) -> None:
        """As in the base class, but by constants: weights of one size learn at one rate."""
        grades = [self.basis.output_grades[element] for element, _ in self.operators]
        self.element_scale.mul_(factors[grades].to(self.element_scale))

    def operator_weights(self) -> Tensor:
        """What multiplies each operator E_j(∇) □^m of the field: (c_out, c_in, operators)."""
        return self.weight * (self.element_scale / self.norms)

    def matrices(self) -> Tensor:
        """What multiplies each derivative of the field: (c_out, blades, c_in, blades, derivatives).

        Derivatives are those of `derivatives`, in the units of the taps' coordinates.
        """
        n = self.algebra.n_blades
        flat = self.operator_weights() @ self.table.flatten(1)
        matrices = flat.unflatten(-1, (len(self.derivatives), n, n))
        return matrices.permute(0, 3, 1, 4, 2)

    def symbol(self, points: Tensor) -> Tensor:
        """L with a vector in place of ∇: points (N, dim) -> (N, c_out, blades, c_in, blades)."""
        check_points(points, self.algebra)
        signs = points.new_tensor(self.algebra.metric)
        exponents = torch.tensor([e for e, _ in self.derivatives], device=points.device)
        boxes = torch.tensor([m for _, m in self.derivatives], device=points.device)
        powers = (points * signs)[:, None].pow(exponents).prod(-1)  # ∂_i = η_i v_i
        squares = (points.square() @ signs)[:, None].pow(boxes)
        return (self.matrices() @ (powers * squares).T).movedim(-1, 0)

    def law(self, points: Tensor, extra: Tensor | None = None) -> Tensor:
        """What satisfies the constraint: the symbol."""
        return self.symbol(points)

    def orbits_of_grid(self, points: Tensor) -> Orbits:
        return find_orbits(points, self.algebra, self.group)

    def expand(
        self, points: Tensor, orbits: Orbits | None = None, extra: Tensor | None = None
    ) -> Tensor:
        """K at taps of the grid; see the base class. With ``orbits``, at all of them in order."""
        if extra is not None:
            raise ValueError(f"a differential kernel has no extra multivectors, got {extra.shape}")
        taps = self.matrices() @ self.stencils
        return taps if orbits is not None else taps.index_select(-1, self._find(points))

    def _find(self, points: Tensor) -> Tensor:
        """Numbers of the taps at these points."""
        check_points(points, self.algebra)
        distance, index = torch.cdist(points.double().cpu(), self.points).min(-1)
        if not tracing() and len(points) and float(distance.max()) > 1e-5:
            at = points[int(distance.argmax())].tolist()
            raise ValueError(
                f"a differential kernel lives on its grid of {self.kernel_size} taps, "
                f"{at} is none of them; `symbol` is defined at any vector"
            )
        return index.to(points.device)

    def extra_repr(self) -> str:
        return super().extra_repr() + f", kernel_size={self.kernel_size}, order={self.order}"


def tap_stencils(
    derivatives: Sequence[Derivative],
    metric: tuple[int, ...],
    kernel_size: Sequence[int],
    steps: Sequence[float],
) -> Tensor:
    """Each derivative as weights of taps in float64, (derivatives, N).

    Derivatives along several axes are outer products of central differences.

    Args:
        derivatives: ∂^e □^m.
        metric: signs η_i of the axes.
        kernel_size: taps along each axis.
        steps: their distance.
    """
    rows = []
    for derivative in derivatives:
        total = torch.zeros(math.prod(kernel_size), dtype=torch.float64, device="cpu")
        for exponents, factor in derivative.along_axes(metric).items():
            weights = torch.ones((), dtype=torch.float64, device="cpu")
            for order, size, step in zip(exponents, kernel_size, steps, strict=True):
                weights = weights[..., None] * axis_weights(order, size // 2, step)
            total += factor * weights.flatten()
        rows.append(total)
    return torch.stack(rows)


def axis_weights(order: int, radius: int, step: float) -> Tensor:
    """The central difference of an order along one axis: (2 radius + 1,) in float64."""
    weights = torch.tensor(central_weights(order, radius), dtype=torch.float64, device="cpu")
    return weights / step**order


def _check_size(kernel_size: tuple[int, ...], order: int, accuracy: int) -> None:
    taps = 2 * radius_for(order, accuracy) + 1
    if min(kernel_size) < taps:
        raise ValueError(
            f"differences up to order {order} of accuracy {accuracy} need {taps} taps per axis, "
            f"got kernel_size {kernel_size}: take a larger kernel_size or a smaller order"
        )


def _tap_norms(table: Tensor, stencils: Tensor) -> Tensor:
    """Norms of the operators' taps."""
    gram = stencils @ stencils.T
    return torch.einsum("jexy,ef,jfxy->j", table, gram, table).sqrt()


@cache
def operators_up_to(
    algebra: CliffordAlgebra, group: str, order: int
) -> tuple[tuple[tuple[int, int], ...], tuple[Derivative, ...], Tensor]:
    """Operators E_j(∇) □^m up to an order, the derivatives in them, and their coefficients.

    Returns:
        (element, power of □) of each operator; the derivatives; and what multiplies each
        derivative in each operator, (operators, derivatives, blades, blades) in float64.
    """
    d, n = algebra.dim, algebra.n_blades
    basis = SteerableBasis(algebra, special=group == "SO")
    operators = tuple(
        (element, power)
        for element, degree in enumerate(basis.degrees)
        for power in range((order - degree) // 2 + 1)
    )
    monomials = [
        tuple(axes.count(axis) for axis in range(d)) for axes in monomials_up_to(d, basis.degree)
    ]
    entries: dict[tuple[int, Derivative, int], float] = {}
    for entry, terms in enumerate(basis.terms()):
        for element, monomial, sign in terms:
            exponents = monomials[monomial]
            lowered = sign * math.prod(s**e for s, e in zip(algebra.metric, exponents, strict=True))
            for number, (own, power) in enumerate(operators):
                if own == element:
                    entries[number, Derivative(exponents, power), entry] = lowered
    derivatives = tuple(sorted({e for _, e, _ in entries}, key=lambda e: (e.order, e)))
    index = {derivative: i for i, derivative in enumerate(derivatives)}
    table = torch.zeros(len(operators), len(derivatives), n * n, dtype=torch.float64)
    for (number, derivative, entry), value in entries.items():
        table[number, index[derivative], entry] = value
    return operators, derivatives, table.unflatten(-1, (n, n))


def _add(a: Exponents, b: Exponents) -> Exponents:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _multiply(p: Polynomial, q: Polynomial) -> dict[Exponents, int]:
    result: dict[Exponents, int] = {}
    for a, x in p.items():
        for b, y in q.items():
            result[_add(a, b)] = result.get(_add(a, b), 0) + x * y
    return result
