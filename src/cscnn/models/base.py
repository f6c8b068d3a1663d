"""What all models share: multivectors in, multivectors out, on grids or on sets of points."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.blades import check_int
from cscnn.algebra.clifford import check_algebra
from cscnn.conv.export import PLAIN, PadGrid
from cscnn.geometry.edges import Edges
from cscnn.models.tasks import Task


class Model(nn.Module):
    """What the registry knows: a model of multivectors.

    Attributes:
        algebra: the Clifford algebra.
        config: name and options, from which `cscnn.models.load` builds it again.
        on_meta: whether it can be built on the device "meta", to count parameters without them.
    """

    on_meta: ClassVar[bool] = False
    algebra: CliffordAlgebra
    config: dict[str, Any]

    @classmethod
    def quick(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Options of as many parameters, without what only makes them take longer to draw."""
        return options

    def n_parameters(self) -> int:
        """Number of trainable numbers; complex ones count once."""
        return sum(p.numel() for p in self.parameters())


class FieldModel(Model):
    """A map (batch, in_channels, *grid, blades) -> (batch, out_channels, *grid, blades).

    Subclasses implement `compute`, which also gets the backgrounds as further channels.

    Attributes:
        task: what it was built for.
    """

    background: Tensor

    def __init__(self, task: Task):
        super().__init__()
        self.task = task
        self.algebra = task.algebra
        self.n_inputs = task.in_channels + len(task.backgrounds)
        self.register_buffer(
            "background", task.background(torch.empty(0, dtype=torch.float32)), persistent=False
        )

    def compute(self, x: Tensor) -> Tensor:
        """The network itself: (batch, n_inputs, *grid, blades) -> (batch, out_channels, ...)."""
        raise NotImplementedError

    def forward(self, x: Tensor, background: Tensor | None = None) -> Tensor:
        """Predict.

        Args:
            x: (batch, in_channels, *grid, blades).
            background: (backgrounds, blades) or (batch, backgrounds, blades), as `Windows` gives
                them; by default those of the task. Transform them with the field to test
                equivariance.
        """
        expected = f"(batch, {self.task.in_channels}, {'*, ' * self.task.dim}{2**self.task.dim})"
        if x.dim() != self.task.dim + 3 or x.shape[1] != self.task.in_channels:
            raise ValueError(
                f"task {self.task.name} takes fields of shape {expected}, got {tuple(x.shape)}"
            )
        self.algebra.check(x)
        if self.task.backgrounds:
            known = self.background if background is None else background
            count = len(self.task.backgrounds)
            if tuple(known.shape[-2:]) != (count, self.algebra.n_blades) or known.dim() > 3:
                raise ValueError(
                    f"task {self.task.name} has {count} backgrounds, i.e. a tensor "
                    f"({count}, {self.algebra.n_blades}), got {tuple(known.shape)}"
                )
            known = known.to(x).expand(x.shape[0], count, self.algebra.n_blades)
            known = known.reshape(*known.shape[:2], *(1,) * self.task.dim, -1)
            x = torch.cat([x, known.expand(*known.shape[:2], *x.shape[2:])], 1)
        elif background is not None and background.shape[-2:-1] != (0,):
            raise ValueError(
                f"task {self.task.name} has no backgrounds, got {tuple(background.shape)}"
            )
        return self.compute(x)

    def _apply(self, fn: Any, recurse: bool = True) -> FieldModel:
        """Casts complex parameters to the complex number of the wanted precision."""

        def both(tensor: Tensor) -> Tensor:
            if not tensor.is_complex():
                return cast(Tensor, fn(tensor))
            return torch.view_as_complex(fn(torch.view_as_real(tensor)))

        return super()._apply(both, recurse)


class PointModel(Model):
    """A map (points, c_in, blades) -> (points, c_out, blades) along edges, in flat or curved space.

    Subclasses implement `compute`.
    """

    def __init__(self, algebra: CliffordAlgebra, c_in: int, c_out: int):
        super().__init__()
        self.algebra = check_algebra(algebra)
        self.c_in = check_int("c_in", c_in, low=1)
        self.c_out = check_int("c_out", c_out, low=1)

    def compute(self, x: Tensor, edges: Edges) -> Tensor:
        """The network itself, on checked input."""
        raise NotImplementedError

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """Predict.

        Args:
            x: (points, c_in, blades), in the frames that the edges know. A batch of sets of points
                is one set without edges between them, see `Edges.cat`.
            edges: among these points, from `cscnn.geometry`.
        """
        if edges.n_senders != edges.n_receivers:
            raise ValueError(f"the edges must join the points of one set, got {edges}")
        expected = (edges.n_senders, self.c_in, self.algebra.n_blades)
        if tuple(x.shape) != expected or edges.dim != self.algebra.dim:
            raise ValueError(
                f"expected features {expected} for {edges}, got {tuple(x.shape)} in {self.algebra}"
            )
        return self.compute(x, edges)


class ComponentModel(FieldModel):
    """A model of components: takes those that carry data out, and puts its results back.

    Subclasses implement `compute_components`.
    """

    def __init__(self, task: Task):
        super().__init__(task)
        self.blades_in = sorted(
            {*task.blades, *(i for b in task.backgrounds for i in self._blades(b.grade))}
        )
        self.blades_out = list(task.blades)
        self.components_in = self.n_inputs * len(self.blades_in)
        self.components_out = task.out_channels * len(self.blades_out)

    def _blades(self, grade: int) -> range:
        return range(self.algebra.n_blades)[self.algebra.grade_slice(grade)]

    def compute_components(self, x: Tensor) -> Tensor:
        """(batch, components_in, *grid) -> (batch, components_out, *grid)"""
        raise NotImplementedError

    def compute(self, x: Tensor) -> Tensor:
        y = self.compute_components(x[..., self.blades_in].movedim(-1, 2).flatten(1, 2))
        y = y.unflatten(1, (self.task.out_channels, -1)).movedim(2, -1)
        full = y.new_zeros(*y.shape[:-1], self.algebra.n_blades)
        full[..., self.blades_out] = y
        return full


class PaddedConv(nn.Module):
    """A plain convolution that keeps the grid, in any padding mode, in 1 to 3 dimensions."""

    def __init__(self, dim: int, c_in: int, c_out: int, kernel_size: int, modes: tuple[str, ...]):
        super().__init__()
        own, other = kernel_size // 2, 0  # torch pads with zeros by itself, and faster
        if set(modes) != {"zeros"}:
            own, other = other, own
        self.pad = PadGrid((other,) * dim, modes)
        self.conv = PLAIN[dim](c_in, c_out, kernel_size, padding=own)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(self.pad(x))
        assert isinstance(y, Tensor)
        return y


def at_most_3d(name: str, task: Task) -> None:
    """Raise for a baseline on a four-dimensional grid."""
    if task.dim > 3:
        raise ValueError(
            f"{name} is made of torch's convolutions or transforms of 1 to 3 dimensions; task "
            f"{task.name} has {task.dim}"
        )


def require(package: str, what: str, extra: str) -> None:
    """Raise with the extra to install unless a package is there."""
    if find_spec(package) is None:
        raise ImportError(
            f"{what} needs the package {package}: pip install 'cscnn[{extra}]'", name=package
        )
