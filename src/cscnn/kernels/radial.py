"""Radial functions of a complete kernel: one value per orbit, basis kernel and channel pair.

Three choices, all linear in their last layer:

- `FreeValues`: one weight per orbit of a fixed grid. None of them is redundant.
- `RadialNetwork`: a small network on invariants. Works at any points and resolution.
- `GaussianRings`: a linear combination of fixed Gaussian rings, as escnn does.

Each maps invariants of M orbits to (c_out, c_in, elements, M). A `RadialNetwork` may also see
invariants of multivectors that belong to a sample: then there is a batch in front.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from cscnn._util.torch_private import tracing
from cscnn.algebra import CliffordAlgebra
from cscnn.kernels.orbits import Invariants, Orbits

SAME_ORBIT = 1e-4  #: of the largest η; values of η that differ by less are of one orbit

#: c_out, c_in, number of basis kernels
Shape = tuple[int, int, int]


def default_std(shape: Shape, features: float) -> float:
    """Standard deviation of the weights of a plain layer, by default: 1 / √(3 inputs).

    What size kernels are is up to their constants. Optimisers like Adam change all weights by the
    same amount in a step, so that weights of one size learn at the same learning rate.
    """
    _, c_in, elements = shape
    return 1 / math.sqrt(3 * c_in * elements * features)


class FreeValues(nn.Module):
    """One weight per live (orbit, basis kernel) of a fixed set of orbits.

    Args:
        shape: (c_out, c_in, elements).
        orbits: where the values live.
        live: (elements, orbits), which of them can be non-zero.
    """

    eta: Tensor
    label: Tensor
    live: Tensor

    def __init__(self, shape: Shape, orbits: Orbits, live: Tensor):
        super().__init__()
        self.shape = shape
        invariants = orbits.invariants
        # In the state_dict: the weights mean nothing without their orbits.
        self.register_buffer("eta", invariants.eta)
        self.register_buffer("label", _label(invariants))
        self.register_buffer("live", live.flatten().nonzero().squeeze(-1))
        self.weight = nn.Parameter(torch.empty(*shape[:2], int(live.sum())))
        self.std: float = default_std(shape, max(1, int(live.sum())) / len(live))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal, as small as those of plain layers."""
        nn.init.normal_(self.weight, std=self.std)

    def forward(self, orbits: Invariants) -> Tensor:
        c_out, c_in, elements = self.shape
        table = self.weight.new_zeros(c_out, c_in, elements * len(self.eta))
        table = table.index_copy(-1, self.live, self.weight).unflatten(-1, (elements, -1))
        eta = self.eta.to(orbits.eta)
        distance = (orbits.eta[:, None] - eta).abs()
        distance = distance.where(_label(orbits)[:, None] == self.label.to(orbits.eta), math.inf)
        nearest, index = distance.min(-1)
        if not tracing():
            missing = nearest > SAME_ORBIT * eta.abs().max().clamp(min=1e-30)
            if missing.any():
                raise ValueError(
                    f"free values exist only on the {len(eta)} orbits of their grid; "
                    f"η = {orbits.eta[missing][0].item():g} is none of them. Use "
                    "radial='network' or radial='rings' for arbitrary points."
                )
        return table.index_select(-1, index)

    def belongs_to(self, orbits: Invariants) -> bool:
        """Whether there is a value for each of these orbits, in their order, and for no other."""
        eta, label = self.eta.to(orbits.eta), self.label.to(orbits.eta)
        if eta.shape != orbits.eta.shape or not torch.equal(label, _label(orbits)):
            return False
        return bool(((eta - orbits.eta).abs() <= SAME_ORBIT * eta.abs().max()).all())

    def extra_repr(self) -> str:
        return f"orbits={len(self.eta)}"


def _label(orbits: Invariants) -> Tensor:
    """Tells apart orbits of equal η."""
    return orbits.side + 3 * orbits.origin


class GaussianRings(nn.Module):
    """Linear combinations of Gaussians in the signed interval u = sgn(η) |η|^(1/2).

    Rings sit at multiples of ``spacing`` up to ``extent`` on either side of the light cone that the
    signature has. Groups that know past from future get rings of their own for each.

    Args:
        algebra: the Clifford algebra.
        shape: (c_out, c_in, elements).
        spacing: distance of neighbouring rings, in units of the points' coordinates.
        sides: whether the group distinguishes past and future.
    """

    def __init__(self, algebra: CliffordAlgebra, shape: Shape, spacing: float, sides: bool):
        super().__init__()
        self.shape, self.spacing, self.sides = shape, spacing, sides
        p, q = algebra.signature
        below, above = (math.ceil(math.sqrt(n) / spacing - 1e-9) for n in (q, p))
        self.multiples: tuple[int, int] = (-below, above + 1)
        self.mixed: bool = p > 0 and q > 0
        self.n_features: int = (below + above + 1) * (2 if sides else 1) + self.mixed
        self.weight = nn.Parameter(torch.empty(*shape, self.n_features))
        self.std: float = default_std(shape, self.n_features)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal, as small as those of plain layers."""
        nn.init.normal_(self.weight, std=self.std)

    def features(self, orbits: Invariants) -> Tensor:
        """The rings, (n_features, M)."""
        u = orbits.eta.sign() * (orbits.eta.abs() + 1e-12).sqrt()
        centres = torch.arange(*self.multiples, dtype=u.dtype, device=u.device)[:, None]
        values = torch.exp(-((u / self.spacing - centres) ** 2) / (2 * 0.6**2))
        parts = [values]
        if self.sides:
            parts.append(values * orbits.side)
        if self.mixed:
            parts.append(orbits.origin[None])
        return torch.cat(parts)

    def forward(self, orbits: Invariants) -> Tensor:
        return self.weight @ self.features(orbits)

    def extra_repr(self) -> str:
        return f"features={self.n_features}, spacing={self.spacing:g}"


class RadialNetwork(nn.Module):
    """Two hidden layers on Gaussian rings, then one linear map to all basis kernels and channels.

    Args:
        hidden_dim: width.
        given: number of invariants of each sample that are seen beside the rings.
        The others as for `GaussianRings`.
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        shape: Shape,
        spacing: float,
        sides: bool,
        hidden_dim: int,
        given: int = 0,
    ):
        super().__init__()
        self.shape = shape
        self.embedding = GaussianRings(algebra, (1, 1, hidden_dim), spacing, sides)
        self.hidden = nn.Linear(hidden_dim, hidden_dim)
        self.weight = nn.Parameter(torch.empty(*shape, hidden_dim))
        self.given: nn.Linear | None = nn.Linear(given, hidden_dim, bias=False) if given else None
        self.std: float = default_std(shape, hidden_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Unit variance through the hidden layers, then as small as in plain layers."""
        nn.init.normal_(self.embedding.weight)
        nn.init.normal_(self.hidden.weight, std=math.sqrt(2 / self.hidden.in_features))
        nn.init.zeros_(self.hidden.bias)
        nn.init.normal_(self.weight, std=self.std)
        if self.given is not None:
            nn.init.normal_(self.given.weight, std=1 / math.sqrt(self.given.in_features))

    def features(self, orbits: Invariants) -> Tensor:
        """What the last layer sees, (hidden_dim, M), behind the batch if there is one."""
        gelu = nn.functional.gelu
        seen = self.embedding(orbits)[0, 0].T
        if self.given is not None:
            seen = seen + self.given(orbits.given).unsqueeze(-2)
        features: Tensor = gelu(self.hidden(gelu(seen)))
        return features.mT

    def forward(self, orbits: Invariants) -> Tensor:
        return (self.weight.flatten(0, 2) @ self.features(orbits)).unflatten(-2, self.shape)
