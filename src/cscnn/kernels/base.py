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
from cscnn.kernels.orbits import Invariants, Orbits, find_orbits, invariants


class SteerableKernel(nn.Module):
    """K: R^{p,q} -> Hom(Cl^c_in, Cl^c_out) with K(gv) = ρ(g) K(v) ρ(g)^-1 for g in its group.

    Subclasses say what the radial functions are (`coefficients`) and of which basis kernels.

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        basis: the basis kernels.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``.

    Attributes:
        causal: whether it vanishes outside the past light cone of the receiver.
        factored: whether it is made of `coefficients`, as convolutions along edges need it.
        extra_channels: number of known multivectors that it takes beside the points.
    """

    causal: bool = False
    factored: bool = True
    extra_channels: int = 0

    def __init__(
        self, algebra: CliffordAlgebra, c_in: int, c_out: int, basis: SteerableBasis, group: str
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.c_in: int = check_int("c_in", c_in, low=1)
        self.c_out: int = check_int("c_out", c_out, low=1)
        self.basis = basis
        self.group = group

    @property
    def parity(self) -> bool:
        """Whether v -> -v is in the group: K(-v)[C, B] = (-1)^(|C| + |B|) K(v)[C, B]."""
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

    def profiles(self, orbits: Invariants) -> tuple[Tensor, Tensor | None, tuple[int, ...]]:
        """`coefficients` by profiles that several basis kernels share.

        Returns:
            values (c_out, c_in, profiles, M), constant factors (c_out, c_in, basis elements) or
            None for ones, and the profile of each basis element.
        """
        return self.coefficients(orbits), None, tuple(range(len(self.basis)))

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        raise NotImplementedError

    def scale_output_(self, factors: Tensor) -> None:
        """Multiply what K is made of so that its rows of output grade k grow by factors[k]."""
        raise NotImplementedError

    def expand(
        self, points: Tensor, orbits: Orbits | None = None, extra: Tensor | None = None
    ) -> Tensor:
        """K at the points (N, dim), in the layout of convolution weights.

        Args:
            points: (N, dim).
            orbits: from `find_orbits`, so that each orbit is evaluated once; without it every
                point is evaluated by itself, differentiably in the points.
            extra: known multivectors (extra_channels, blades), for kernels that take any.

        Returns:
            (c_out, blades, c_in, blades, N)
        """
        if extra is not None:
            raise ValueError(
                f"{type(self).__name__} without extra channels got extra multivectors of shape "
                f"{tuple(extra.shape)}"
            )
        if orbits is None:
            values = self.coefficients(invariants(points, self.algebra, self.group))
        else:
            values = orbits.spread(self.coefficients(orbits.invariants))
        return self.basis.assemble(values, points)

    def forward(
        self, points: Tensor, orbits: Orbits | None = None, extra: Tensor | None = None
    ) -> Tensor:
        """K at points (N, dim): (N, c_out, blades, c_in, blades), from input to output.

        A view of `expand`, with the same arguments.
        """
        return self.expand(points, orbits, extra).movedim(-1, 0)

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
            blades = self.algebra.n_blades
            extra = like.new_zeros(self.extra_channels, blades) if self.extra_channels else None
            kernel = self.expand(points.to(like), orbits, extra)
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
        """The name and all options, ready for JSON; `kernel_choice` is the inverse."""
        return {"name": self.name, **dataclasses.asdict(self)}
