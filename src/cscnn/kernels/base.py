"""What every steerable kernel shares: radial functions in, matrices out, a choice of options."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.kernels.basis import SteerableBasis
from cscnn.kernels.conditions import multivector_invariants
from cscnn.kernels.orbits import Invariants, Orbits, find_orbits, invariants
from cscnn.nn import MVLinear

#: Profile and basis kernel of each term of a kernel, see `SteerableKernel.profiles`.
Terms = tuple[tuple[int, int], ...]


class SteerableKernel(nn.Module):
    """K: R^{p,q} -> Hom(Cl^c_in, Cl^c_out) with K(gv) = ρ(g) K(v) ρ(g)^-1 for g in its group.

    Subclasses say what the radial functions are (`coefficients`) and of which basis kernels.

    A kernel may be given multivectors c beside the points, one set for all samples or one for each:
    K(gv | ρ(g) c) = ρ(g) K(v | c) ρ(g)^-1. A conditional kernel is given mixes of the mean of the
    field that it convolves.

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        basis: the basis kernels.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``.
        condition: number of multivectors that a conditional kernel makes of the field.

    Attributes:
        causal: whether it vanishes outside the past light cone of the receiver.
        extra_channels: number of multivectors that it is given beside the points. The last
            ``condition`` of them are made of the field.
    """

    causal: bool = False
    extra_channels: int = 0

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        basis: SteerableBasis,
        group: str,
        condition: int = 0,
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.c_in: int = check_int("c_in", c_in, low=1)
        self.c_out: int = check_int("c_out", c_out, low=1)
        self.basis = basis
        self.group = group
        self.condition = condition
        self.extra_channels += condition
        self.mix: MVLinear | None = (
            MVLinear(algebra, self.c_in, condition, bias=False, group=group) if condition else None
        )

    @property
    def parity(self) -> bool:
        """Whether K(-v)[C, B] = (-1)^(|C| + |B|) K(v)[C, B], with all that is given unchanged.

        It follows if v -> -v is in the group, for kernels that are steerable in v alone.
        """
        return self.group == "O" or (self.group == "SO" and self.algebra.dim % 2 == 0)

    def coefficients(self, orbits: Invariants) -> Tensor:
        """Radial functions on M orbits: (c_out, c_in, basis elements, M)."""
        raise NotImplementedError

    def factors(self, orbits: Invariants) -> tuple[Tensor, Tensor] | None:
        """`coefficients` as weights (c_out, c_in, basis elements, F) times features (F, M).

        None for kernels whose radial functions are not linear in a few features. Sums over many
        edges are cheaper through the features, which do not know channels.
        """
        return None

    def profiles(self, orbits: Invariants) -> tuple[Tensor, Tensor | None, Terms]:
        """`coefficients` by profiles that several basis kernels share.

        Returns:
            values (c_out, c_in, profiles, M), constant factors (c_out, c_in, terms) or None for
            ones, and the profile and the basis element of each term.
        """
        return self.coefficients(orbits), None, tuple((j, j) for j in range(len(self.basis)))

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        raise NotImplementedError

    def scale_output_(self, factors: Tensor) -> None:
        """Multiply what K is made of so that its rows of output grade k grow by factors[k]."""
        raise NotImplementedError

    def given(self, pooled: Tensor, extra: Tensor | None = None) -> Tensor:
        """The multivectors of a conditional kernel for each sample.

        Args:
            pooled: (batch, c_in, blades), means of the field over all its points.
            extra: known multivectors, if the kernel takes any beside those, with or without batch.

        Returns:
            (batch, extra_channels, blades)
        """
        assert self.mix is not None
        made: Tensor = self.mix(pooled)
        known = self.extra_channels - self.condition
        self._check_extra(extra, known)
        if extra is None:
            return made
        return torch.cat([extra.to(made).expand(len(made), known, -1), made], 1)

    def zero_extra(self) -> Tensor | None:
        """Zeros for the multivectors that it is given; None if it is given none."""
        if not self.extra_channels:
            return None
        like = next(self.parameters())
        return like.new_zeros(self.extra_channels, self.algebra.n_blades)

    def _check_extra(self, extra: Tensor | None, count: int) -> None:
        expected = (count, self.algebra.n_blades)
        got = None if extra is None else tuple(extra.shape)
        if (count > 0) != (got is not None) or (got and (got[-2:] != expected or len(got) > 3)):
            made = self.condition if count == self.extra_channels else 0
            sizes = f"{count}, {self.algebra.n_blades}"
            raise ValueError(
                f"this {type(self).__name__} takes {count} extra multivectors, i.e. a tensor "
                f"{f'({sizes}) or (batch, {sizes})' if count else None}; got {got}"
                + (f". Its method given makes the last {made} of them, of a field" if made else "")
            )

    def expand(
        self, points: Tensor, orbits: Orbits | None = None, extra: Tensor | None = None
    ) -> Tensor:
        """K at the points (N, dim), in the layout of convolution weights.

        Args:
            points: (N, dim).
            orbits: from `find_orbits`, so that each orbit is evaluated once; without it every
                point is evaluated by itself, differentiably in the points.
            extra: multivectors (extra_channels, blades), or (batch, extra_channels, blades) for a
                kernel for each sample; for kernels that are given any.

        Returns:
            (c_out, blades, c_in, blades, N), behind the batch if there is one
        """
        self._check_extra(extra, self.extra_channels)
        at = invariants(points, self.algebra, self.group) if orbits is None else orbits.invariants
        if extra is not None:
            seen = multivector_invariants(extra.to(at.eta), self.algebra, self.group)
            at = dataclasses.replace(at, given=seen)
        values = self.coefficients(at)
        if orbits is not None and orbits.table is not None:
            return self.basis.assemble_by_table(values, orbits.table)
        values = values if orbits is None else orbits.spread(values)
        if values.dim() == 4:
            return self.basis.assemble(values, points)
        kernels = self.basis.assemble(values.flatten(0, 1), points)  # as more output channels
        return kernels.unflatten(0, values.shape[:2])

    def orbits_of_grid(self, points: Tensor) -> Orbits:
        """The orbits of points (N, dim) that stay, with what `expand` can use of them."""
        orbits = find_orbits(points, self.algebra, self.group)
        table = self.basis.table(points, orbits.members, self.c_in * self.c_out)
        return dataclasses.replace(orbits, table=table)

    def forward(
        self, points: Tensor, orbits: Orbits | None = None, extra: Tensor | None = None
    ) -> Tensor:
        """K at points (N, dim): (N, c_out, blades, c_in, blades), from input to output.

        A view of `expand`, with the same arguments.
        """
        return self.expand(points, orbits, extra).movedim(-1, -5)

    def law(self, points: Tensor, extra: Tensor | None = None) -> Tensor:
        """The function of a vector that satisfies the constraint: by default K itself.

        Args:
            points: (N, dim).
            extra: as above.

        Returns:
            (N, c_out, blades, c_in, blades)
        """
        value = self(points, extra=extra)
        assert isinstance(value, Tensor)
        return value

    def unit_variance_(self, points: Tensor) -> None:
        """Rescale so that convolving unit white noise over the points gives unit variance.

        The mean over channels and blades of sum K^2 becomes 1 for every output grade. The scale is
        computed from the weights as drawn, so it holds for every signature, size and width. Extra
        multivectors count as zero.
        """
        with torch.no_grad():
            like = next(self.parameters())
            orbits = find_orbits(points, self.algebra, self.group).to(like)
            kernel = self.expand(points.to(like), orbits, self.zero_extra())
            gains = kernel.square().sum((2, 3, 4)).mean(0)  # per output blade
            by_grade = torch.stack([g.mean() for g in gains.split(self.algebra.grade_sizes)])
            alive = by_grade > 0
            self.scale_output_(torch.where(alive, by_grade.where(alive, 1.0).rsqrt(), 1.0))

    def extra_repr(self) -> str:
        return f"{self.algebra}, {self.c_in}, {self.c_out}, group={self.group!r}"


@dataclasses.dataclass(frozen=True)
class KernelChoice:
    """Which kernel a convolution has, and with which options; the convolution builds it.

    A kernel has a choice of its own: a frozen dataclass of this type with a ``name``, whose fields
    are booleans, integers and strings, so that it can be compared, hashed and written as JSON.

    Attributes:
        name: what it is called on the command line and in files.
    """

    name: ClassVar[str]

    @property
    def group(self) -> str:
        """The group of its kernels: O for choices that have no such option."""
        return "O"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, expected = getattr(self, field.name), type(field.default)
            if expected in (bool, int, str) and type(value) is not expected:
                raise TypeError(
                    f"{field.name} of the {self.name} kernel must be of type "
                    f"{expected.__name__}, got {value!r}"
                )

    def build(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        points: Tensor,
        kernel_size: tuple[int, ...] | None = None,
    ) -> SteerableKernel:
        """The kernel, with random weights.

        Args:
            algebra: the Clifford algebra.
            c_in, c_out: channels.
            points: (N, dim) sampling points with coordinates in [-1, 1].
            kernel_size: points along each axis if they are a grid; None if they only stand for
                others, as in clouds.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The name and all options, ready for JSON; `kernel_choice` is the inverse.

        A condition of 0 is left out: files of kernels without it are as before there was any.
        """
        options = dataclasses.asdict(self)
        if not options.get("condition"):
            options.pop("condition", None)
        return {"name": self.name, **options}
