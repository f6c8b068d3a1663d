"""`CompleteKernel`: every steerable kernel there is, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from cscnn._util.checks import check_choice, check_int, check_type
from cscnn._util.torch_private import tracing
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.group import GROUPS, check_group
from cscnn.kernels.base import KernelChoice, SteerableKernel
from cscnn.kernels.basis import LARGEST_TABLE, SteerableBasis
from cscnn.kernels.conditions import count_invariants
from cscnn.kernels.orbits import Invariants, Orbits, check_points, find_orbits
from cscnn.kernels.radial import FreeValues, GaussianRings, RadialNetwork

RADIAL = ("network", "free", "rings")
#: Of points that are no grid.
RING_SPACING = 1 / 3


@dataclass(frozen=True)
class Complete(KernelChoice):
    """All steerable kernels of a group, in closed form: `CompleteKernel`.

    Args:
        group: ``"O"``, ``"SO"``, and in spacetimes with one time axis their orthochronous parts
            ``"O+"`` and ``"SO+"``, for which past and future are different.
        radial: what the functions are made of: ``"network"`` (a small network, for any points),
            ``"free"`` (one weight per orbit of the given points) or ``"rings"`` (fixed Gaussian
            rings).
        causal: vanish outside the past light cone of the receiver (v is the sender as seen from
            the receiver). Needs ``"O+"`` or ``"SO+"``.
        hidden_dim: width of the network.
        condition: number of multivectors, mixes of the mean of the field over the grid, whose
            invariants the network sees: each sample then has kernels of its own. 0 for none.

    Example:
        >>> Complete(group="O+", causal=True).to_dict()
        {'name': 'complete', 'group': 'O+', 'radial': 'network', 'causal': True, 'hidden_dim': 16}
    """

    name: ClassVar[str] = "complete"

    group: str = "O"
    radial: str = "network"
    causal: bool = False
    hidden_dim: int = 16
    condition: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("group", self.group, GROUPS)
        check_choice("radial", self.radial, RADIAL)
        if self.causal and not self.group.endswith("+"):
            raise ValueError(f"causal kernels need group 'O+' or 'SO+', got {self.group!r}")
        check_int("hidden_dim", self.hidden_dim, low=1)
        if check_int("condition", self.condition, low=0) and self.radial != "network":
            raise ValueError(
                f"condition={self.condition} needs radial='network', which can see the field; the "
                f"radial functions of radial={self.radial!r} are the same for all"
            )
        if self.condition and self.causal:
            raise ValueError(
                f"condition={self.condition} shows the future to a causal kernel: means are over "
                "all times"
            )

    def build(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        points: Tensor,
        kernel_size: tuple[int, ...] | None = None,
    ) -> CompleteKernel:
        spacing = RING_SPACING
        if kernel_size is not None:  # a ring for every point of a half-axis
            spacing = 1 / max(*(size // 2 for size in kernel_size), 1)
        return CompleteKernel(algebra, c_in, c_out, self, points=points, ring_spacing=spacing)


class CompleteKernel(SteerableKernel):
    """All steerable kernels of a group, with independent radial functions per channel pair.

    ::

        K(v) = sum_k  α_k P_k + β_k v∧(v⌟P_k) + γ_k v∧P_k + δ_k v⌟P_k

    with 4d functions of the orbit for O(p, q), 8d for SO(p, q) (see `cscnn.kernels.basis`). That
    is all of them, but for R^{1,1}: there null vectors, and for ``"O+"`` space-like ones, have
    smaller stabilisers than elsewhere and would admit more. It contains every `ImplicitKernel`, and
    what that one lacks: the β terms, and radial functions that differ from grade to grade.

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        choice: its options.
        points: (N, dim) sampling points with coordinates in [-1, 1]. Constants are chosen such that
            variance is preserved on them at first; ``radial="free"`` needs them.
        ring_spacing: distance of neighbouring rings.

    Example:
        >>> import torch
        >>> kernel = CompleteKernel(CliffordAlgebra((1, -1)), 2, 3, Complete(group="O+"))
        >>> kernel(torch.randn(5, 2)).shape        # (points, c_out, blades, c_in, blades)
        torch.Size([5, 3, 4, 2, 4])
    """

    element_scale: Tensor
    free_table: Tensor | None

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        choice: Complete = Complete(),
        *,
        points: Tensor | None = None,
        ring_spacing: float = RING_SPACING,
    ):
        choice = check_type("choice", choice, Complete)
        group = check_group(algebra, choice.group)
        basis = SteerableBasis(algebra, special=group.startswith("SO"))
        super().__init__(algebra, c_in, c_out, basis, group, choice.condition)
        if not ring_spacing > 0:
            raise ValueError(f"ring_spacing must be positive, got {ring_spacing}")
        self.causal: bool = choice.causal
        shape, sides = (c_out, c_in, len(basis)), group.endswith("+")
        self.radial: FreeValues | GaussianRings | RadialNetwork
        if choice.radial == "free":
            if points is None:
                raise ValueError("radial='free' needs the sampling points: pass points=(N, dim)")
            orbits = find_orbits(points, algebra, group)
            at_origin = torch.tensor(basis.degrees, device=points.device)[:, None] == 0
            live = (orbits.invariants.origin == 0) | at_origin
            if self.causal:
                live = live & self._past(orbits.invariants)
            self.radial = FreeValues(shape, orbits, live)
        elif choice.radial == "rings":
            self.radial = GaussianRings(algebra, shape, ring_spacing, sides)
        else:
            given = count_invariants(choice.condition, algebra, group) if choice.condition else 0
            self.radial = RadialNetwork(
                algebra, shape, ring_spacing, sides, choice.hidden_dim, given
            )
        self.register_buffer("element_scale", torch.ones(len(basis)))
        if points is not None:
            check_points(points, algebra)
        self.init_points = points
        self._free = self._free_table()
        self.register_buffer("free_table", self._free, persistent=False)
        self._apply(lambda tensor: tensor)
        self.register_load_state_dict_post_hook(_renew_table)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights; unit noise in gives unit noise out on the given points."""
        self.radial.reset_parameters()
        if self.mix is not None:
            self.mix.reset_parameters()
        self.element_scale.fill_(1 / self.radial.std)
        if self.init_points is not None:
            self._balance(self.init_points)
            self.unit_variance_(self.init_points)

    def _free_table(self) -> Tensor | None:
        """Kernels of each free weight at the given points: (weights, blades * blades * N).

        In float64 on the CPU, as not all devices have it; None if there are none, or if it were
        too large.
        """
        if not isinstance(self.radial, FreeValues):
            return None
        assert self.init_points is not None
        points, live = self.init_points.cpu(), self.radial.live.cpu()
        blades, count = self.algebra.n_blades, len(self.basis)
        if len(live) * blades**2 * len(points) > LARGEST_TABLE:
            return None
        orbits = find_orbits(points, self.algebra, self.group)
        one_by_one = torch.eye(count * len(orbits), dtype=torch.float64, device="cpu")[live]
        values = one_by_one.unflatten(-1, (count, len(orbits))) @ orbits.members.double()
        return self.basis.assemble(values.unsqueeze(1), points.double()).flatten(1)

    def _own_orbits(self) -> bool:
        """Whether the orbits of the free values are those of the given points.

        They are not after ``load_state_dict`` of a kernel of another grid.
        """
        assert isinstance(self.radial, FreeValues)
        assert self.init_points is not None
        orbits = find_orbits(self.init_points.cpu(), self.algebra, self.group)
        return self.radial.belongs_to(orbits.invariants)

    def _apply(self, fn: Any, recurse: bool = True) -> CompleteKernel:
        """Moves and casts like any module, with the table derived anew from float64."""
        super()._apply(fn, recurse)
        self.free_table = self._cast_table()
        return self

    def _cast_table(self) -> Tensor | None:
        return None if self._free is None else self._free.to(self.radial.weight)

    def orbits_of_grid(self, points: Tensor) -> Orbits:
        if isinstance(self.radial, FreeValues):
            return find_orbits(points, self.algebra, self.group)
        return super().orbits_of_grid(points)

    def expand(
        self, points: Tensor, orbits: Orbits | None = None, extra: Tensor | None = None
    ) -> Tensor:
        """As in the base class; on the grid of free values by one matrix product."""
        table, given = self.free_table, self.init_points
        if (
            table is None
            or given is None
            or orbits is None
            or extra is not None
            or tracing()
            or points.shape != given.shape
            or not torch.equal(points, given.to(points))
        ):
            return super().expand(points, orbits, extra)
        assert isinstance(self.radial, FreeValues)
        weight = self.radial.weight
        scale = self.element_scale[self.radial.live // len(self.radial.eta)]
        kernels = (weight * scale) @ table
        blades = self.algebra.n_blades
        return kernels.unflatten(-1, (blades, blades, -1)).permute(0, 2, 1, 3, 4)

    def _balance(self, points: Tensor) -> None:
        """Give every basis kernel the same size on the points: v∧ and v∧v⌟ are small near 0."""
        count = len(self.basis)
        one_by_one = torch.eye(count, dtype=points.dtype, device=points.device)
        values = one_by_one[:, None, :, None].expand(count, 1, count, len(points))
        size = self.basis.assemble(values, points).square().sum((1, 2, 3, 4))
        self.element_scale.copy_(torch.where(size > 0, size.where(size > 0, 1.0).rsqrt(), 1.0))

    @staticmethod
    def _past(orbits: Invariants) -> Tensor:
        return (orbits.side < 0) | (orbits.origin > 0)

    def factors(self, orbits: Invariants) -> tuple[Tensor, Tensor] | None:
        if isinstance(self.radial, FreeValues):
            return None
        features = self.radial.features(orbits)
        if self.causal:
            features = features * self._past(orbits).to(features.dtype)
        return self.radial.weight * self.element_scale[:, None], features

    def coefficients(self, orbits: Invariants) -> Tensor:
        values = self.radial(orbits) * self.element_scale[:, None]
        if self.causal:
            values = values * self._past(orbits).to(values.dtype)
        return values

    def extra_repr(self) -> str:
        return super().extra_repr() + (", causal=True" if self.causal else "")

    def scale_output_(self, factors: Tensor) -> None:
        """As in the base class, but by constants: weights of one size learn at one rate."""
        by_element = factors[list(self.basis.output_grades)]
        self.element_scale.mul_(by_element.to(self.element_scale))


def _renew_table(kernel: CompleteKernel, _: Any) -> None:
    """After new weights: a table for them, or none if they are those of another grid."""
    if isinstance(kernel.radial, FreeValues) and not kernel.radial.eta.is_meta:
        kernel._free = kernel._free_table() if kernel._own_orbits() else None
        kernel.free_table = kernel._cast_table()
