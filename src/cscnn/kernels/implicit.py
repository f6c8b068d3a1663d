"""`ImplicitKernel`: the paper's kernel, a Clifford network evaluated at the sampling points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int, check_type
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import BilinearTable, bilinear
from cscnn.algebra.constants import constant
from cscnn.algebra.tables import product_terms
from cscnn.kernels.base import KernelChoice, SteerableKernel, Terms
from cscnn.kernels.basis import SteerableBasis
from cscnn.kernels.collapse import LEAST_WIDTH, MIN_WIDTH_SQUARED, weights_of
from cscnn.kernels.orbits import Invariants, Orbits, check_points, invariants
from cscnn.kernels.passes import collapsed
from cscnn.kernels.span import span, times
from cscnn.nn import CGENN

#: Kinds of basis kernels that it spans, and those of algebras with symmetric tensors.
KINDS = ("project", "wedge", "contract")
TENSOR_KINDS = ("stretch", "contract contract", "make", "wedge make", "contract make")


def scalar_shell(eta: Tensor, sigma: Tensor) -> Tensor:
    """sgn(η) exp(-|η| / 2σ²), with sgn(0) = +1 (paper, Algorithm 3).

    For σ = 0 its limit, 1 at η = 0 and else 0, with finite gradients.
    """
    sign = torch.where(eta < 0, -1.0, 1.0).to(eta.dtype)
    return sign * torch.exp(-eta.abs() / (2 * sigma.square()).clamp(min=MIN_WIDTH_SQUARED))


@dataclass(frozen=True)
class Implicit(KernelChoice):
    """The paper's kernel, a Clifford network of the position: `ImplicitKernel`.

    Args:
        num_layers, hidden_dim: depth and width of the kernel network.
        mask: multiply by the learnt shells.
        learn_head: learn the weights w of the head; otherwise they are fixed to one.
        extra_channels: number of known multivectors (a wall normal, a background field) that the
            kernel network sees beside the position. They then have to be given at each call, and to
            be transformed together with the field.
        condition: number of further multivectors that it sees, mixes of the mean of the field over
            the grid: each sample then has a kernel of its own. 0 for none.
        unit_variance: choose constant factors such that unit noise in gives unit noise out at
            first; otherwise the kernel is initialised as published.

    Example:
        >>> Implicit(hidden_dim=8).to_dict()["hidden_dim"]
        8
    """

    name: ClassVar[str] = "implicit"

    num_layers: int = 4
    hidden_dim: int = 12
    mask: bool = True
    learn_head: bool = True
    extra_channels: int = 0
    unit_variance: bool = True
    condition: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("num_layers", self.num_layers, low=1)
        check_int("hidden_dim", self.hidden_dim, low=1)
        check_int("extra_channels", self.extra_channels, low=0)
        check_int("condition", self.condition, low=0)

    def build(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        points: Tensor,
        kernel_size: tuple[int, ...] | None = None,
    ) -> ImplicitKernel:
        scale = 1.0
        if kernel_size is not None:  # as published
            size = math.prod(kernel_size) ** (1 / len(kernel_size))
            scale = 20 / size ** (len(kernel_size) - 1)
        return ImplicitKernel(algebra, c_in, c_out, self, scale=scale, points=points)


class ImplicitKernel(SteerableKernel):
    """The implicit Clifford-steerable kernel (paper, Algorithms 1 and 2).

    A CGENN sees s(v) + v, where s is a scalar shell of learnt width; its c_out·c_in output
    multivectors k(v) are masked per grade by shells of learnt widths; a weighted geometric product
    with the input makes the matrix::

        K(v)[C, B] = sum_A k(v)_A Λ[A, C, B] w[path(|A|, |C|, |B|)]

    Steerable for O(p, q). Since k(v) = f0(η) + f1(η) v, with tensors + f2(η) (v⊗v)_0 (see
    `cscnn.kernels.collapse`), it is evaluated on two or three numbers per channel and once per
    orbit, and assembled like every steerable kernel; `expand_full` evaluates the network on full
    multivectors, with the same result.

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        choice: its options.
        scale: constant factor of the kernel. The published code takes 20 / kernel_size^(d-1).
        points: (N, dim) sampling points, on which unit noise in gives unit noise out at first if
            the choice says so; without them the kernel is initialised as published.

    Attributes:
        collapse: evaluate on two or three numbers per channel, unless there are extra channels.
    """

    head: Tensor
    gain: Tensor

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        choice: Implicit = Implicit(),
        *,
        scale: float = 1.0,
        points: Tensor | None = None,
    ):
        choice = check_type("choice", choice, Implicit)
        basis = _basis(algebra)
        super().__init__(algebra, c_in, c_out, basis, "O", choice.condition)
        self.extra_channels += choice.extra_channels
        self.scale = scale
        if points is not None:
            check_points(points, algebra)
        self.init_points: Tensor | None = points if choice.unit_variance else None
        self.collapse = not self.extra_channels
        self.paths: tuple[tuple[int, int, int], ...] = algebra.paths
        self.register_buffer("gain", torch.ones(len(self.paths)))  # for unit variance
        self.network = CGENN(
            algebra,
            1 + self.extra_channels,
            c_out * c_in,
            hidden_dim=choice.hidden_dim,
            num_layers=choice.num_layers,
        )
        self.position_width = nn.Parameter(torch.ones(1))  # an axis, for sharding to split
        widths = torch.empty(c_out, c_in, algebra.n_grades)
        self.mask_width: nn.Parameter | None = nn.Parameter(widths) if choice.mask else None
        head = torch.ones(c_out, c_in, len(self.paths))
        if choice.learn_head:
            self.head = nn.Parameter(head)
        else:
            self.register_buffer("head", head)
        self._head_table = _head_table(algebra)
        self._of_path = _of_path(algebra)
        self._span = span(algebra)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights with the published distributions; unit variance on given points."""
        self.network.reset_parameters()
        if self.mix is not None:
            self.mix.reset_parameters()
        nn.init.ones_(self.position_width)
        if self.mask_width is not None:
            nn.init.uniform_(self.mask_width, 0.0, 0.2)
        if isinstance(self.head, nn.Parameter):
            nn.init.normal_(self.head, std=1 / math.sqrt(self.c_in * self.algebra.n_grades))
        nn.init.ones_(self.gain)
        if self.init_points is not None:
            self.unit_variance_(self.init_points)

    @property
    def parity(self) -> bool:
        """As in the base class; what the network sees beside v need not be as v -> -v maps it."""
        return not self.extra_channels

    def coefficients(self, orbits: Invariants) -> Tensor:
        parts = self._parts(orbits)
        pairs, functions = (self.c_out, self.c_in), parts.shape[2]
        factors = self._factors(parts).reshape(math.prod(pairs), -1, functions)
        return torch.bmm(factors, parts.flatten(0, 1)).unflatten(0, pairs)

    def profiles(self, orbits: Invariants) -> tuple[Tensor, Tensor | None, Terms]:
        """The functions of k(v), and the head: f0 projects, f1 wedges; with tensors η f2 too."""
        parts = self._parts(orbits)
        terms = _terms(self.algebra)
        columns = [j * parts.shape[2] + part for part, j in terms]
        return parts, self._factors(parts)[:, :, columns], terms

    def _parts(self, orbits: Invariants) -> Tensor:
        """The functions f0, f1 and with tensors f2, η f2, masked: (c_out, c_in, 2 or 4, M)."""
        weights = weights_of(self.network)
        parts = collapsed(orbits.eta, self._span, self.position_width, self.mask_width, weights)
        parts = parts.reshape(self.c_out, self.c_in, *parts.shape[2:])
        if self.algebra.symmetric:
            parts = torch.cat([parts, orbits.eta * parts[:, :, 2:]], 2)
        return parts

    def _factors(self, like: Tensor) -> Tensor:
        """The head: constant factors of basis kernels, of each with each function.

        Functions are f0 and f1, with tensors also f2 and η f2.
        """
        # A product with zeros and ones selects faster than indices do, and so does its gradient.
        path = constant(self._of_path, like.dtype, like.device)
        return (self.head * (self.scale * self.gain)) @ path

    def expand(
        self, points: Tensor, orbits: Orbits | None = None, extra: Tensor | None = None
    ) -> Tensor:
        if self.collapse and extra is None:
            return super().expand(points, orbits)
        return self.expand_full(points, extra)

    def expand_full(self, points: Tensor, extra: Tensor | None = None) -> Tensor:
        """K by evaluating the network on full multivectors at every point: the reference."""
        check_points(points, self.algebra)
        self._check_extra(extra, self.extra_channels)
        n, n_points = self.algebra.n_blades, len(points)
        eta = invariants(points, self.algebra).eta
        x = self.algebra.embed(points, 1) + self.algebra.embed(
            scalar_shell(eta, self.position_width)[:, None], 0
        )
        x = x[:, None]
        batch: tuple[int, ...] = ()
        if extra is not None:
            batch = tuple(extra.shape[:-2])
            x = x.expand(*batch, *x.shape)
            known = extra.to(x).unsqueeze(-3).expand(*batch, n_points, -1, n)
            x = torch.cat([x, known], -2).flatten(0, -3)  # all samples at once
        k = self.network(x).reshape(*batch, n_points, self.c_out, self.c_in, n)
        if self.mask_width is not None:
            width = (self.mask_width + LEAST_WIDTH)[..., list(self.algebra.grades)]
            k = k * scalar_shell(eta[:, None, None, None], width)
        kernel = bilinear(self.scale * k, self.head * self.gain, self._head_table)
        return kernel.transpose(-3, -2).movedim(-5, -1)

    def scale_output_(self, factors: Tensor) -> None:
        """As in the base class, but by constants: the head keeps the size at which it learns.

        Of a head that is fixed to one, only the overall size can change.
        """
        if not isinstance(self.head, nn.Parameter):
            factors = factors.mean().expand_as(factors)
        self.gain.mul_(factors[[out for _, out, _ in self.paths]].to(self.gain))


@cache
def _head_table(algebra: CliffordAlgebra) -> BilinearTable:
    """Terms (A, path, entry (C, B), sign) of the head: K[C, B] += k_A w_path Λ[A, C, B]."""
    grades, n = algebra.grades, algebra.n_blades
    paths = algebra.paths
    terms = [
        (a, paths.index((grades[a], grades[c], grades[b])), c * n + b, sign)
        for a, b, c, sign in product_terms(algebra.metric, algebra.symmetric)
    ]
    sizes = (n, len(paths), n * n)
    return BilinearTable(terms, sizes, recipe=(_head_table, (algebra,)), matrix=n)


def _basis(algebra: CliffordAlgebra) -> SteerableBasis:
    return SteerableBasis(algebra, kinds=KINDS + TENSOR_KINDS * algebra.symmetric)


@cache
def _terms(algebra: CliffordAlgebra) -> Terms:
    """Function and basis kernel of each column of `_of_path` that is not zero."""
    functions = 4 if algebra.symmetric else 2
    columns = enumerate(zip(*_of_path(algebra), strict=True))
    return tuple((i % functions, i // functions) for i, column in columns if any(column))


@cache
def _of_path(algebra: CliffordAlgebra) -> tuple[tuple[float, ...], ...]:
    """Of which basis kernels the product with 1, v or (v⊗v)_0 consists: (paths, columns).

    There are columns for each basis kernel: one with each of the functions f0 and f1, with tensors
    also f2 and η f2.
    """
    basis = _basis(algebra)
    if not algebra.symmetric:
        columns = [
            (degree, out, k) if degree == (kind != "project") else None
            for (kind, k, _), out in zip(basis.elements, basis.output_grades, strict=True)
            for degree in (0, 1)
        ]
        return tuple(tuple(float(c == path) for c in columns) for path in algebra.paths)
    point = 1 / torch.arange(1, algebra.dim + 1, dtype=torch.float64)  # not null
    one_by_one = torch.eye(len(basis), dtype=torch.float64)[:, None, :, None]
    elements = basis.assemble(one_by_one, point[None])[:, :, 0, :, 0]  # (elements, blades, blades)
    eta = float(invariants(point[None], algebra).eta)
    vector = {1 + axis: float(x) for axis, x in enumerate(point)}
    tensor = times(algebra, vector, vector, algebra.dim + 1)
    parts = dict(zip(span(algebra).grades, ({0: 1.0}, vector, tensor), strict=True))
    table = torch.zeros(len(algebra.paths), len(basis), 4, dtype=torch.float64)
    for row, (left, out, right) in enumerate(algebra.paths):
        if left not in parts:
            continue
        degree = list(parts).index(left)
        product = torch.zeros(algebra.n_blades, algebra.n_blades, dtype=torch.float64)
        for a, b, c, factor in product_terms(algebra.metric, True):
            if a in parts[left] and (algebra.grades[c], algebra.grades[b]) == (out, right):
                product[c, b] += factor * parts[left][a]
        candidates = [
            j
            for j, ((_, source, _), target) in enumerate(
                zip(basis.elements, basis.output_grades, strict=True)
            )
            if (source, target) == (right, out) and basis.degrees[j] in (degree, degree - 2)
        ]
        matrix = elements[candidates].flatten(1).T
        solution = torch.linalg.lstsq(matrix, product.flatten()[:, None]).solution[:, 0]
        for j, factor in zip(candidates, solution, strict=True):
            lower = basis.degrees[j] < degree
            table[row, j, 3 if lower else degree] = factor / eta if lower else factor
    return tuple(map(tuple, table.where(table.abs() > 1e-12, 0.0).flatten(1).tolist()))
