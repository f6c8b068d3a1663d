"""`CliffordSteerableConv`: equivariant convolution of multivector fields on grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn._util.torch_private import (
    dispatch_mode_active,
    exporting,
    forward_derivatives_active,
    known_to_the_compiler,
    tracing,
    transforming,
)
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.group import time_axis
from cscnn.conv.cache import KernelCache, ModuleState, SharedKernel
from cscnn.conv.choice import choose_derivatives, choose_tiles
from cscnn.conv.derivatives.operator import derivative_conv
from cscnn.conv.direct import conv_nd, conv_per_sample
from cscnn.conv.export import export_conv
from cscnn.conv.memory import not_stored
from cscnn.conv.options import check_causal_padding, check_options, grid_points
from cscnn.conv.padding import check_grid, pad
from cscnn.conv.precision import autocasted, full_precision
from cscnn.conv.spectral.cost import TYPICAL_SIZES
from cscnn.conv.spectral.engine import convolve
from cscnn.conv.spectral.operator import spectral_conv
from cscnn.conv.spectral.overlap import Borders, borders_for, make_tiling
from cscnn.kernels import Implicit, KernelChoice, SteerableKernel
from cscnn.kernels.choices import build_kernel
from cscnn.kernels.differential import DifferentialKernel
from cscnn.kernels.orbits import Invariants, Orbits
from cscnn.nn.functional import check_field
from cscnn.nn.linear import bias_shape, constants

MAX_DIM = 4


class CliffordSteerableConv(nn.Module):
    """Convolution with a steerable kernel: exactly E(p,q)-equivariant up to the grid (paper, §3).

    ``y(x) = sum_v K(v) f(x + v)`` over the kernel's grid of offsets v, plus a bias on scalars. With
    ``[(t, g).f](x) = ρ(g) f(g^-1 (x - t))`` it commutes with translations of the grid (circular
    padding), with all axis permutations and flips that preserve metric, grid and the options given
    per axis, and, up to the resolution of the fields, with every rotation and boost. With a stride
    s, translations are by multiples of s, and flips need (size + 2 padding - kernel_size) to be a
    multiple of s; the spacing of the output is s times that of the input.

    Args:
        algebra: the Clifford algebra; axis i of the grid carries basis vector e_{i+1}. One to four
            dimensions.
        c_in, c_out: channels.
        kernel_size: odd, one for all axes or one per axis.
        kernel: a choice with its options, `Implicit` (the paper's), `Complete` (all steerable
            kernels) or `Differential` (all steerable differential operators); the name of a choice,
            for its default options; or a `SteerableKernel` of your own.
        stride: one for all axes or one per axis.
        padding: points added on both sides, one for all axes or one per axis; by default
            (``None`` or ``"same"``) kernel_size // 2, which keeps the size of the grid.
        padding_mode: ``"zeros"``, ``"circular"``, ``"reflect"``, ``"replicate"``, ``"symmetric"``,
            ``"extrapolate"`` (one-sided differences), ``"wall"`` or ``"conductor"`` (mirrors of
            multivectors, see `cscnn.conv.padding`), one for all axes or one per axis.
        spacing: distance of neighbouring grid points, one for all axes or one per axis, in units
            in which the metric is ±1 (for spacetime c Δt and Δx). Only ratios matter.
        bias: add a learnt constant to the scalars; ``(0, 2**dim - 1)``, for kernels of SO or SO+,
            to the pseudoscalars too.

    Attributes:
        backend: how it is computed, ``"auto"`` unless `use_backend` says otherwise.

    Shape:
        (batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades)

    Example:
        >>> import torch
        >>> alg = CliffordAlgebra((1, -1, -1))
        >>> conv = CliffordSteerableConv(alg, c_in=2, c_out=3, kernel_size=5)
        >>> conv(torch.randn(1, 2, 8, 16, 16, 8)).shape
        torch.Size([1, 3, 8, 16, 16, 8])
    """

    points: Tensor
    orbit_members: Tensor
    orbit_eta: Tensor
    orbit_origin: Tensor
    orbit_side: Tensor
    orbit_table: Tensor | None

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        kernel_size: int | Sequence[int],
        *,
        kernel: str | KernelChoice | SteerableKernel = Implicit(),
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str | None = None,
        padding_mode: str | Sequence[str] = "zeros",
        spacing: float | Sequence[float] = 1.0,
        bias: bool | Sequence[int] = True,
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        if algebra.dim > MAX_DIM:
            raise ValueError(
                f"grids have at most {MAX_DIM} dimensions, {algebra} has {algebra.dim}"
            )
        self.c_in: int = check_int("c_in", c_in, low=1)
        self.c_out: int = check_int("c_out", c_out, low=1)
        options = check_options(algebra.dim, kernel_size, stride, padding, padding_mode, spacing)
        self.kernel_size, self.stride, self.padding, self.padding_mode, self.spacing = options
        self.backend = "auto"

        self._points = grid_points(self.kernel_size, self.spacing)  # float64, the source of buffers
        self.kernel: SteerableKernel = build_kernel(
            kernel, algebra, self.c_in, self.c_out, self._points, self.kernel_size
        )
        if self.kernel.causal:
            check_causal_padding(time_axis(algebra), self.padding, self.padding_mode)
        self._orbits = self.kernel.orbits_of_grid(self._points)
        like = self._like()
        shape = bias_shape(bias, self.c_out, algebra, self.kernel.group)
        self.bias: nn.Parameter | None = (
            None if shape is None else nn.Parameter(like.new_zeros(shape))
        )
        for name, value in self._buffers_from_grid(like).items():
            self.register_buffer(name, value, persistent=False)
        self._cache: KernelCache | None = None
        self._shared: SharedKernel | None = None

    # --- the sampling grid, exact in every dtype ----------------------------------------------

    def _like(self) -> Tensor:
        """A tensor whose dtype and device the grid has to have: the kernel's weights."""
        return next(self.kernel.parameters(), torch.empty(()))

    def reset_parameters(self) -> None:
        """Draw the kernel's weights anew, and set the bias to zero."""
        self.kernel.reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def _buffers_from_grid(self, like: Tensor) -> dict[str, Tensor | None]:
        orbits = self._orbits.to(like)
        return {
            "points": self._points.to(like),
            "orbit_members": orbits.members,
            "orbit_eta": orbits.invariants.eta,
            "orbit_origin": orbits.invariants.origin,
            "orbit_side": orbits.invariants.side,
            "orbit_table": orbits.table,
        }

    def _apply(self, fn: Any, recurse: bool = True) -> CliffordSteerableConv:
        """Moves and casts like any module, with the grid derived anew from float64."""
        super()._apply(fn, recurse)
        for name, value in self._buffers_from_grid(self._like()).items():
            setattr(self, name, value)
        self._cache = None
        return self

    # --- the expanded kernel, cached while nothing can change it ------------------------------

    def expanded_kernel(self, extra: Tensor | None = None) -> Tensor:
        """K on the kernel grid as weights of a plain convolution: (c_out·n, c_in·n, *kernel_size).

        Args:
            extra: multivectors (extra_channels, n), if the kernel is given any; with a batch in
                front there is a kernel for each sample, (batch, c_out·n, c_in·n, *kernel_size).
        """
        self._check_kernel()
        of_orbits = Invariants(self.orbit_eta, self.orbit_origin, self.orbit_side)
        orbits = Orbits(of_orbits, self.orbit_members, self.orbit_table)
        with full_precision(self.points.device.type):
            kernel = self.kernel(self.points, orbits, extra).movedim(-5, -1)
        n, batch = self.algebra.n_blades, kernel.shape[:-5]
        return kernel.reshape(*batch, self.c_out * n, self.c_in * n, *self.kernel_size)

    def _check_kernel(self) -> None:
        like = self._like()
        if like.dtype != self.points.dtype or like.device != self.points.device:
            raise ValueError(
                f"the kernel is {like.dtype} on {like.device}, its convolution {self.points.dtype} "
                f"on {self.points.device}: a shared kernel was cast or moved without it"
            )

    def _cached(self) -> KernelCache | None:
        """The expanded kernel, computed once while in eval mode without gradients; else None.

        It is computed again when a bit of a parameter or buffer changes, and after `train` or
        ``eval``: call one of these after changing an attribute that is no tensor. Kernels with
        hooks or parametrisations are never kept.
        """
        if self.training or torch.is_grad_enabled() or self._recording():
            return None
        cache = self._cache
        if cache is None or not cache.state.unchanged():
            self._cache = cache = None
            state = ModuleState(self)
            if state.watchable:
                cache = KernelCache(state, self.expanded_kernel(), self.flat_bias())
                self._cache = cache
        return cache

    def _recording(self) -> bool:
        """Whether operations are recorded, to be run again with other weights."""
        if tracing() or dispatch_mode_active():
            return True
        return self.points.is_cuda and torch.cuda.is_current_stream_capturing()

    def train(self, mode: bool = True) -> CliffordSteerableConv:
        """Switch mode; forgets the cached kernel."""
        self._cache = None
        return super().train(mode)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": None, "_shared": None}

    def _replicate_for_data_parallel(self) -> CliffordSteerableConv:
        replica = super()._replicate_for_data_parallel()
        replica._cache = replica._shared = None
        assert isinstance(replica, CliffordSteerableConv)
        return replica

    # --- convolution --------------------------------------------------------------------------

    def forward(self, x: Tensor, extra: Tensor | None = None) -> Tensor:
        self.algebra.check(x)
        if x.dim() != self.algebra.dim + 3:
            hint = ": is the channel axis missing? x.unsqueeze(1)"
            raise ValueError(
                f"a field on a {self.algebra.dim}-dimensional grid has shape (batch, {self.c_in}, "
                f"{'*, ' * self.algebra.dim}{self.algebra.n_blades}), got {tuple(x.shape)}"
                f"{hint if x.dim() == self.algebra.dim + 2 else ''}"
            )
        check_field(x, self.algebra, self.c_in, self.points)
        if extra is not None and extra.dim() == 3 and len(extra) != len(x):
            raise ValueError(
                f"extra multivectors have no batch or that of the field, {len(x)}, got {len(extra)}"
            )
        flat = x.movedim(-1, 2).flatten(1, 2)
        check_grid(flat.shape[2:], self.kernel_size, self.padding, self.padding_mode)
        if self.kernel.condition:
            with full_precision(x.device.type):
                axes = tuple(range(2, x.dim() - 1))
                extra = self.kernel.given(x.mean(axes, dtype=self.points.dtype), extra)
        y = self._convolve(flat, extra)
        return y.unflatten(1, (self.c_out, self.algebra.n_blades)).movedim(2, -1)

    def _convolve(self, x: Tensor, extra: Tensor | None) -> Tensor:
        """Convolution of a flattened field (batch, c_in·n, *grid) by the backend of choice."""
        parity = self.kernel.parity
        borders = borders_for(self.kernel_size, self.padding, self.padding_mode)
        grid = tuple(n + 2 * p for n, p in zip(x.shape[2:], borders.outside, strict=True))
        kernel = self.kernel
        if (
            isinstance(kernel, DifferentialKernel)
            and extra is None
            and self._by_derivatives(kernel, x, grid, borders)
        ):
            self._check_kernel()
            bias, modes = self.flat_bias(), self.padding_mode
            return derivative_conv(autocasted(x), kernel, bias, self.padding, modes)
        cached = self._cached() if extra is None else None
        if cached is not None:
            weight, bias = cached.kernel, cached.bias
        elif self._shared is not None and extra is None and torch.is_grad_enabled():
            weight, bias = self._shared.kernel, self.flat_bias()
        else:
            weight, bias = self.expanded_kernel(extra), self.flat_bias()
        per_sample = extra is not None and extra.dim() == 3
        counts = self._tile_counts(x[:1] if per_sample else x, grid, borders, parity)
        if counts is None:
            amounts = self.padding
            if any(mode != "zeros" for mode in self.padding_mode):
                x = pad(x, amounts, self.padding_mode, self.algebra.n_blades)
                amounts = (0,) * len(amounts)
            convolve_directly = conv_per_sample if per_sample else conv_nd
            return convolve_directly(x, weight, bias, self.stride, amounts)
        x = pad(autocasted(x), borders.outside, self.padding_mode, self.algebra.n_blades)
        shift, circular, grades = borders.shift, borders.circular, self.algebra.runs
        options = (bias, shift, circular, counts, grades, parity)
        if per_sample:
            pairs = zip(x.split(1), weight, strict=True)
            return torch.cat([spectral_conv(part, own, *options) for part, own in pairs])
        if cached is None:
            again = None if extra is not None or self._shared else self.expanded_kernel
            with not_stored(weight, x, self.kernel, again):
                return spectral_conv(x, weight, *options)
        tiling = make_tiling(grid, self.kernel_size, shift, circular, counts, grades, parity)
        return convolve(x, cached.matrices(tiling), bias, tiling)

    def _direct_only(self, x: Tensor) -> bool:
        """Whether no other backend can do it."""
        return (
            self.backend == "direct"
            or any(s != 1 for s in self.stride)
            or exporting()
            or transforming()
            or forward_derivatives_active()
            or x.numel() == 0
        )

    def _by_derivatives(
        self, kernel: DifferentialKernel, x: Tensor, grid: tuple[int, ...], borders: Borders
    ) -> bool:
        """Whether to differentiate the field instead of expanding the kernel."""
        if self._direct_only(x) or self.backend == "spectral" or kernel.order == 0:
            return False
        if kernel.kernel_size != self.kernel_size:  # somebody's own kernel, an error later
            return False
        if self.backend == "derivatives":
            return True
        sizes = (x.shape[0], *grid)
        if not all(known_to_the_compiler(size) for size in sizes):
            return False  # a graph for all sizes
        operators = (self.algebra.metric, self.algebra.symmetric, kernel.group, kernel.order)
        return choose_derivatives(self._sizes(x, sizes, borders, kernel.parity), operators)

    def _tile_counts(
        self, x: Tensor, grid: tuple[int, ...], borders: Borders, parity: bool
    ) -> tuple[int, ...] | None:
        """Number of tiles per axis for spectral convolution, or None for direct convolution.

        Empty if it can be planned only when it runs, see `spectral_conv`.
        """
        one_tap = self.backend != "spectral" and max(self.kernel_size) == 1
        if self._direct_only(x) or one_tap:
            return None
        sizes = (x.shape[0], *grid)
        # A graph for all sizes is planned for typical ones, and cut into tiles when it runs.
        symbolic = not all(known_to_the_compiler(size) for size in sizes)
        sizes = TYPICAL_SIZES[len(grid)] if symbolic else sizes
        counts = choose_tiles(self._sizes(x, sizes, borders, parity), self.backend)
        return () if symbolic and counts is not None else counts

    def _sizes(
        self, x: Tensor, sizes: tuple[int, ...], borders: Borders, parity: bool
    ) -> dict[str, Any]:
        """The fields of `ConvSizes` for a field of sizes (batch, *grid)."""
        # `len(range(size))` is how the compiler accepts that a size is a number.
        batch, *grid = (len(range(size)) for size in sizes)
        return {
            "grid": tuple(grid),
            "kernel": self.kernel_size,
            "shift": borders.shift,
            "circular": borders.circular,
            "batch": batch,
            "c_in": self.c_in * self.algebra.n_blades,
            "c_out": self.c_out * self.algebra.n_blades,
            "parity": parity,
            "itemsize": 8 if x.dtype == torch.float64 else 4,
            "device": x.device.type,
        }

    def flat_bias(self) -> Tensor | None:
        """The bias for flattened channels and blades: (c_out·n,), zero but for its blades."""
        return None if self.bias is None else constants(self.bias, self.algebra).flatten()

    def export(self, extra: Tensor | None = None) -> nn.Module:
        """The same map as a plain convolution of flattened fields (batch, c_in·n, *grid).

        An ``nn.Conv1d``, ``Conv2d`` or ``Conv3d`` with the expanded kernel; behind a padding layer
        where torch's convolutions do not know the padding mode.

        Example:
            >>> import torch
            >>> conv = CliffordSteerableConv(CliffordAlgebra((1, 1)), 2, 3, kernel_size=5)
            >>> x = torch.randn(1, 2, 8, 8, 4)
            >>> y = conv.export()(x.movedim(-1, 2).flatten(1, 2))
            >>> torch.allclose(y.unflatten(1, (3, 4)).movedim(2, -1), conv(x), atol=1e-5)
            True
        """
        with torch.no_grad():
            return export_conv(
                self.expanded_kernel(extra),
                self.flat_bias(),
                stride=self.stride,
                padding=self.padding,
                padding_mode=self.padding_mode,
                blades=self.algebra.n_blades,
            )

    def extra_repr(self) -> str:
        parts = [f"{self.algebra}, {self.c_in}, {self.c_out}, kernel_size={self.kernel_size}"]
        if any(s != 1 for s in self.stride):
            parts.append(f"stride={self.stride}")
        if set(self.padding_mode) != {"zeros"}:
            parts.append(f"padding_mode={self.padding_mode}")
        if len(set(self.spacing)) > 1:
            parts.append(f"spacing={self.spacing}")
        return ", ".join(parts)
