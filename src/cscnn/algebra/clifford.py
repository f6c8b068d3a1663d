"""`CliffordAlgebra`: arithmetic of multivectors stored as plain tensors, blades last."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cscnn._util.checks import check_int
from cscnn.algebra import functions, group, tensors
from cscnn.algebra.bilinear import bilinear
from cscnn.algebra.blades import blade_name, check_metric, ordered_blades
from cscnn.algebra.checks import check_dtype, same_device
from cscnn.algebra.constants import constant
from cscnn.algebra.tables import (
    PRODUCTS,
    grades_of,
    paths,
    product_table,
    runs,
    sign_vectors,
)

#: Of `CliffordAlgebra.grade` and `embed`: a symmetric tensor with its trace, as a matrix.
SYMMETRIC = "symmetric"


class CliffordAlgebra:
    """The Clifford algebra Cl(p, q) of a non-degenerate metric, up to six dimensions.

    A multivector is the last axis of a tensor: ``n_blades`` coefficients, one for each of 2^dim
    blades, ordered by grade and then lexicographically (1, e1, e2, e12 in two dimensions). All
    methods broadcast over the other axes, are differentiable, and run in all real dtypes on any
    device. The object holds no tensors of its own; it is hashable, picklable and equal to every
    algebra of the same options.

    Args:
        metric: one sign per axis, +1 or -1: ``(1, 1, 1)`` is Euclidean space, ``(1, -1, -1)`` or
            ``"+--"`` is spacetime with two space axes and time first.
        symmetric: add symmetric traceless tensors (stress, strain), as one more grade ``dim + 1``
            behind the blades; see `cscnn.algebra.tensors`. ``geometric_product`` then goes on with
            all equivariant products of tensors and blades, and is no longer associative.

    Attributes:
        multivectors: the algebra without tensors.
        paths: grade triples (left, out, right) that the geometric product reaches.
        runs: numbers of components that are even, odd, even, ... under x -> -x, in order.

    Example:
        >>> alg = CliffordAlgebra((1, -1, -1))
        >>> alg.blade_names
        ('1', 'e1', 'e2', 'e3', 'e12', 'e13', 'e23', 'e123')
        >>> v = alg.embed(torch.tensor([2.0, 1.0, 0.0]), grade=1)
        >>> alg.geometric_product(v, v)[0]          # v v = eta(v, v) = 2^2 - 1^2
        tensor(3.)
    """

    def __init__(self, metric: Sequence[int] | str, symmetric: bool = False):
        self.metric: tuple[int, ...] = check_metric(metric)
        self.symmetric: bool = tensors.check(symmetric, self.metric)
        self._key = (self.metric, self.symmetric)
        self.dim: int = len(self.metric)
        self.signature: tuple[int, int] = (self.metric.count(1), self.metric.count(-1))
        self.blades: tuple[tuple[int, ...], ...] = ordered_blades(self.dim)
        names = tuple(blade_name(axes) for axes in self.blades)
        self.blade_names: tuple[str, ...] = names + (tensors.names(self.dim) if symmetric else ())
        self.grades: tuple[int, ...] = grades_of(self.dim, symmetric)
        self.n_blades: int = len(self.grades)
        self.n_grades: int = self.grades[-1] + 1
        self.grade_sizes: tuple[int, ...] = tuple(map(self.grades.count, range(self.n_grades)))
        self.runs: tuple[int, ...] = runs(self.grade_sizes, self.dim)
        self.paths: tuple[tuple[int, int, int], ...] = paths(self.metric, symmetric)
        products = PRODUCTS if symmetric else PRODUCTS[:-1]
        self.tables = {name: product_table(self.metric, symmetric, name) for name in products}
        self._signs = sign_vectors(self.metric, symmetric)
        self.form: tuple[int, ...] = self._signs["form"]  # η_A = <e_A, e_A> for each blade A

    @property
    def multivectors(self) -> CliffordAlgebra:
        """The algebra without tensors."""
        return CliffordAlgebra(self.metric) if self.symmetric else self

    @classmethod
    def from_signature(cls, p: int, q: int) -> CliffordAlgebra:
        """Cl(p, q) with the p axes that square to +1 first.

        >>> CliffordAlgebra.from_signature(1, 2) == CliffordAlgebra((1, -1, -1))
        True
        """
        p, q = check_int("p", p, low=0), check_int("q", q, low=0)
        return cls((1,) * p + (-1,) * q)

    def __repr__(self) -> str:
        return f"CliffordAlgebra({self.metric}{', symmetric=True' if self.symmetric else ''})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CliffordAlgebra) and self._key == other._key

    def __hash__(self) -> int:
        return hash((CliffordAlgebra, self._key))

    def __reduce__(self) -> tuple[type, tuple[tuple[int, ...], bool]]:
        return CliffordAlgebra, self._key

    def grade_slice(self, k: int | str) -> slice:
        """Where the components of grade ``k`` sit on the last axis."""
        if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < self.n_grades:
            hint = "" if k != SYMMETRIC else f"; make {self} with symmetric=True"
            raise ValueError(
                f"grade must be an integer from 0 to {self.n_grades - 1}, got {k!r}{hint}"
            )
        start = sum(self.grade_sizes[:k])
        return slice(start, start + self.grade_sizes[k])

    def size(self, grade: int | str) -> int:
        """Number of components of a grade; dim² for ``"symmetric"``, a matrix with its trace."""
        if grade == SYMMETRIC and self.symmetric:
            return self.dim**2
        span = self.grade_slice(grade)
        return int(span.stop - span.start)

    def grade(self, x: Tensor, k: int | str) -> Tensor:
        """Components of grade ``k``: (..., n_blades) -> (..., C(dim, k)), a view.

        ``"symmetric"`` makes matrices of scalar and tensor, (..., dim²), see `embed`.
        """
        self.check(x)
        if k == SYMMETRIC and self.symmetric:
            return tensors.to_matrix(x, self.metric)
        return x[..., self.grade_slice(k)]

    def embed(self, components: Tensor, grade: int | str) -> Tensor:
        """Multivector with the given components of one grade and zeros elsewhere.

        A symmetric tensor is given by all T^ij, row by row. Its trace, divided by √dim, becomes the
        scalar, and its traceless part the components of grade ``dim + 1``: lengths stay the same.

        Args:
            components: (..., C(dim, grade)), e.g. (..., dim) for a vector; (..., dim²) for
                ``"symmetric"``.
            grade: which grade they are, or ``"symmetric"``.

        Returns:
            (..., n_blades)
        """
        size = self.size(grade)
        check_dtype(components, "components")
        if components.dim() == 0 or components.shape[-1] != size:
            hint = "; a scalar field needs x.unsqueeze(-1)" if size == 1 else ""
            hint += tensors.size_hint(grade, self.dim)
            raise ValueError(
                f"the last axis must hold the {size} component(s) of grade {grade} of {self}, "
                f"got a tensor of shape {tuple(components.shape)}{hint}"
            )
        if isinstance(grade, str):
            return tensors.from_matrix(components, self.metric)
        span = self.grade_slice(grade)
        return torch.nn.functional.pad(components, (span.start, self.n_blades - span.stop))

    # --- products ---------------------------------------------------------------------------------

    def geometric_product(self, x: Tensor, y: Tensor) -> Tensor:
        """x y, the associative product with v v = eta(v, v). (..., n_blades) each, broadcasting."""
        return self._product("geometric", x, y)

    def wedge(self, x: Tensor, y: Tensor) -> Tensor:
        """x ∧ y, the grade-raising part |x| + |y| of the geometric product."""
        return self._product("wedge", x, y)

    def left_contraction(self, x: Tensor, y: Tensor) -> Tensor:
        """x ⌟ y, the grade-lowering part |y| - |x| of the geometric product."""
        return self._product("left_contraction", x, y)

    def symmetric_product(self, x: Tensor, y: Tensor) -> Tensor:
        """The tensor of x and y, for vectors the traceless part of (x⊗y + y⊗x)/2."""
        if not self.symmetric:
            raise ValueError(f"{self} has no tensors: make it with symmetric=True")
        return self._product("symmetric", x, y)

    def right_contraction(self, x: Tensor, y: Tensor) -> Tensor:
        """x ⌞ y, the grade-lowering part |x| - |y| of the geometric product."""
        return self._product("right_contraction", x, y)

    def regressive(self, x: Tensor, y: Tensor) -> Tensor:
        """x ∨ y with dual(x ∨ y) = dual(x) ∧ dual(y): what subspaces have in common (meet).

        Commutes with ρ(g) up to the sign of det g, as the dual does.
        """
        return self.undual(self.wedge(self.dual(x), self.dual(y)))

    def _product(self, product: str, x: Tensor, y: Tensor) -> Tensor:
        self.check(x)
        self.check(y, "y")
        return bilinear(x, y, self.tables[product])

    def left_matrix(self, x: Tensor) -> Tensor:
        """L(x) with L(x) y = x y for all y: (..., n_blades) -> (..., n_blades, n_blades)."""
        self.check(x)
        eye = torch.eye(self.n_blades, dtype=x.dtype, device=x.device)
        return self.geometric_product(x.unsqueeze(-2), eye).mT

    # --- involutions, duals, inverse, exponential -------------------------------------------------

    def reverse(self, x: Tensor) -> Tensor:
        """Reverses the order of factors: grade k times (-1)^(k(k-1)/2)."""
        return self._scale(x, "reverse")

    def grade_involution(self, x: Tensor) -> Tensor:
        """Negates every vector factor: grade k times (-1)^k."""
        return self._scale(x, "grade_involution")

    def clifford_conjugation(self, x: Tensor) -> Tensor:
        """`reverse` and `grade_involution` together: grade k times (-1)^(k(k+1)/2)."""
        return self._scale(x, "clifford_conjugation")

    def pseudoscalar(
        self, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Tensor:
        """I = e12...d, shape (n_blades,)."""
        return self.embed(torch.ones(1, dtype=dtype, device=device), self.dim)

    def dual(self, x: Tensor) -> Tensor:
        """x I^-1: grade k -> dim - k. Tensors become tensors if dim is 2, else zero."""
        return self.undual(x) * self.blade_square(len(self.blades) - 1)

    def undual(self, x: Tensor) -> Tensor:
        """x I, the inverse of `dual`."""
        self.check(x)
        return self._scale(functions.reversed_parts(self, x), "undual")

    def blade_square(self, blade: int) -> int:
        """e_A e_A for the blade of that index, +1 or -1."""
        return self.form[blade] * self._signs["reverse"][blade]

    def versor_inverse(self, v: Tensor) -> Tensor:
        """v^-1 = reverse(v) / (v reverse(v)) for versors, i.e. products of non-null vectors.

        Raises:
            ValueError: if some ``v`` is not an invertible versor.
        """
        functions.only_multivectors(self, "versor_inverse")
        return functions.versor_inverse(self, v)

    def inverse(self, x: Tensor) -> Tensor:
        """x^-1 of any invertible multivector, by solving x y = 1; see `versor_inverse`.

        Raises:
            ValueError: if some ``x`` divides zero, up to rounding.
        """
        functions.only_multivectors(self, "inverse")
        return functions.inverse(self, x)

    def exp(self, x: Tensor) -> Tensor:
        """Exponential series of x, for bivectors a rotor: exp(B) acts on fields as `sandwich`."""
        functions.only_multivectors(self, "exp")
        return functions.exp(self, x)

    def log(self, x: Tensor) -> Tensor:
        """The principal logarithm, for rotors a bivector: the inverse of `exp`.

        Bivectors come back whose rotations are by less than 2π. Compiled and exported graphs do not
        check the result.

        Raises:
            ValueError: if some ``x`` has none, such as -1 or an odd versor.

        Example:
            >>> alg = CliffordAlgebra((1, -1))
            >>> boost = alg.exp(alg.embed(torch.tensor([0.25]), grade=2))
            >>> alg.grade(alg.log(boost), 2)
            tensor([0.2500])
        """
        functions.only_multivectors(self, "log")
        return functions.log(self, x)

    # --- forms ------------------------------------------------------------------------------------

    def inner(self, x: Tensor, y: Tensor) -> Tensor:
        """<x, y> = sum_A eta_A x_A y_A, invariant under O(p, q): (..., n_blades) -> (...)."""
        self.check(y, "y")
        same_device(x, y, "x", "y")
        return (self._scale(x, "form") * y).sum(-1)

    def norm_squared(self, x: Tensor) -> Tensor:
        """q(x) = <x, x>, of either sign in mixed signature: (..., n_blades) -> (...)."""
        return self.inner(x, x)

    def norm_squared_by_grade(self, x: Tensor) -> Tensor:
        """q_k(x) = <x_k, x_k> for each grade k: (..., n_blades) -> (..., n_grades)."""
        terms = self._scale(x, "form") * x
        sums = torch.stack([part.sum(-1) for part in terms.split(self.grade_sizes, -1)])
        return sums.movedim(0, -1)

    def _scale(self, x: Tensor, signs: str) -> Tensor:
        self.check(x)
        return x * constant(self._signs[signs], x.dtype, x.device)

    # --- the group O(p, q) ------------------------------------------------------------------------

    def random_orthogonal(
        self,
        kind: str = "any",
        *,
        batch: int | Sequence[int] = (),
        rapidity: float | tuple[float, float] = 1.0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> Tensor:
        """Random elements of O(p, q) as matrices (*batch, dim, dim).

        Args:
            kind: ``"rotation"`` (of SO(p) x SO(q)), ``"boost"`` (in one random plane),
                ``"reflection"`` (along one random non-null vector), or ``"any"`` (all composed).
            batch: leading shape.
            rapidity: largest rapidity, or the range (smallest, largest).
            generator: makes the draw reproducible.
        """
        return group.random_orthogonal(self.metric, kind, batch, rapidity, generator, dtype, device)

    def kinds(self) -> tuple[str, ...]:
        """The kinds of `random_orthogonal` that are not trivial in this signature."""
        return group.kinds(self.metric)

    def is_orthogonal(self, g: Tensor, tol: float | None = None) -> Tensor:
        """Whether g^T Δ g = Δ, for each matrix of (..., dim, dim), as a boolean tensor (...).

        ``tol`` is relative to |g|^2, by default a hundred rounding errors.
        """
        return group.is_orthogonal(self.metric, g, tol)

    def action(self, g: Tensor, grade: int | str | None = None) -> Tensor:
        """ρ(g): how a transformation acts on multivectors, grade k by the k-th compound matrix.

        Tensors become g T gᵀ. Block diagonal over grades, an algebra automorphism for g in O(p, q),
        and ρ(gh) = ρ(g)ρ(h).

        Args:
            g: (..., dim, dim).
            grade: take the block of one grade, or for ``"symmetric"`` the action on matrices.

        Returns:
            (..., n_blades, n_blades), or (..., size, size) for a grade; apply it as
            ``torch.einsum("...ij,...j->...i", rho, x)`` or with `transform`.
        """
        if grade == SYMMETRIC and self.symmetric:
            return tensors.action_on_matrices(self.metric, g)
        rho = group.action(self.metric, g)
        if self.symmetric:
            rho = tensors.append_action(self.metric, g, rho)
        if grade is None:
            return rho
        span = self.grade_slice(grade)
        return rho[..., span, span]

    def transform(self, g: Tensor, x: Tensor) -> Tensor:
        """ρ(g) x for one element g (dim, dim) and any field x (..., n_blades)."""
        self.check(x)
        if g.dim() != 2:
            raise ValueError(f"g must be one {self.dim} x {self.dim} matrix, got {tuple(g.shape)}")
        same_device(x, g, "x", "g")
        return x @ self.action(g).to(x.dtype).mT

    def versor(self, g: Tensor) -> Tensor:
        """An element of the Pin group over g: `sandwich` with it is ρ(g). Unique up to sign.

        Args:
            g: (..., dim, dim) in O(p, q).

        Returns:
            (..., n_blades), a product of unit vectors.
        """
        functions.only_multivectors(self, "versor")
        return group.versor(self, g)

    def sandwich(self, v: Tensor, x: Tensor) -> Tensor:
        """Twisted adjoint action of a versor: v x v^-1, with x grade-involuted if v is odd."""
        functions.only_multivectors(self, "sandwich")
        return group.sandwich(self, v, x)

    # --- checks -----------------------------------------------------------------------------------

    def check(self, x: Tensor, name: str = "x") -> None:
        """Raise unless ``x`` is a real floating tensor with this algebra's blades last."""
        check_dtype(x, name)
        if x.dim() == 0 or x.shape[-1] != self.n_blades:
            raise ValueError(
                f"the last axis of {name} must hold the {self.n_blades} blades of {self}, "
                f"got shape {tuple(x.shape)}"
            )


def check_algebra(algebra: object) -> CliffordAlgebra:
    """``algebra`` if it is one, else an error that says how to make it."""
    if not isinstance(algebra, CliffordAlgebra):
        raise TypeError(
            f"expected a CliffordAlgebra, e.g. CliffordAlgebra((1, 1)), got {algebra!r}"
        )
    return algebra
