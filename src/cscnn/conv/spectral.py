"""Spectral convolution of multivector fields: a product of real matrices at every frequency.

Tiles of the field (`cscnn.conv.tiling`) are Fourier transformed, their channels mixed frequency by
frequency, and transformed back. Two things make it fast:

* **Real mixing.** If the kernel commutes with v -> -v, its entry from grade b to grade c is even in
  v for even b + c and odd otherwise; the transform of an even function is real, that of an odd one
  imaginary. After multiplying the odd grades of input and output by i every entry is real: one real
  matrix serves the real and the imaginary part of the field. (Kernels without that symmetry get a
  second matrix, for the imaginary part.)
* **Nothing but matrix products.** A transform along one axis of a tile of some twenty points is a
  product with a small matrix, which also does, at no cost, whatever is linear: dropping the margin,
  the factor i, the sign and the normalisation. Axes are ordered so that each step finds its data
  where the last one left it::

      tiles [p1, .., pd, tiles, channels]  ->  [f1, .., fd, re/im, tiles, channels]

Even and odd grades are kept in two arrays throughout. Backward passes recompute the transforms:
only the field and the kernel are stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, wraps
from itertools import product
from typing import Any, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

from cscnn.conv.direct import conv_nd
from cscnn.conv.padding import pad
from cscnn.conv.tiling import Axis, cut

P = ParamSpec("P")
R = TypeVar("R")

#: Bytes of one array of tiles, by device: what a processor's cache holds, or enough for a GPU.
CHUNK_BYTES = {"cpu": 4 << 20}
CHUNK_BYTES_ELSEWHERE = 256 << 20

# Rows (real, imaginary) that a transform ends with, as combinations of real and imaginary part.
Rows = tuple[tuple[int, int], ...]
PLAIN: Rows = ((1, 0), (0, 1))
TIMES_I: Rows = ((0, -1), (1, 0))

#: Rows of the kernel's transform that make a matrix: (imaginary part?, parities of grades in, out).
KERNEL_ROWS: dict[tuple[bool, int, int], Rows] = {
    (False, 0, 0): ((1, 0),),
    (False, 1, 1): ((1, 0),),
    (False, 0, 1): ((0, -1),),
    (False, 1, 0): ((0, 1),),
    (True, 0, 0): ((0, 1),),
    (True, 1, 1): ((0, 1),),
    (True, 0, 1): ((1, 0),),
    (True, 1, 0): ((-1, 0),),
}
PARITIES = (0, 1)

#: Slices of the batch and of the tiles along the first axis.
Chunk = tuple[slice, slice]


class Geometry(NamedTuple):
    """What a spectral convolution has to know beside field and kernel.

    Attributes:
        axes: the tiling of each axis.
        grades: number of blades of each grade.
        parity: whether the kernel commutes with v -> -v.
    """

    axes: tuple[Axis, ...]
    grades: tuple[int, ...]
    parity: bool


class _Slot(NamedTuple):
    """Where the blades of one grade are among all of them and among those of the same parity."""

    parity: int
    blades: slice
    slots: slice


@cache
def _slots(grades: tuple[int, ...]) -> tuple[tuple[_Slot, ...], tuple[int, int]]:
    """A slot per grade, and the number of blades of each parity."""
    filled, blade, slots = [0, 0], 0, []
    for k, size in enumerate(grades):
        start = filled[k % 2]
        slots.append(_Slot(k % 2, slice(blade, blade + size), slice(start, start + size)))
        filled[k % 2] += size
        blade += size
    return tuple(slots), (filled[0], filled[1])


# --- transforms along the axes of a tile ----------------------------------------------------------


@lru_cache(maxsize=512)
def _matrix(
    tile: int, positions: range, half_spectrum: bool, rows: Rows, dtype: torch.dtype, device: str
) -> tuple[Tensor, Tensor]:
    """The transform of values at some positions of a tile, and its inverse on those positions.

    With ``half_spectrum`` the values are real and only non-negative frequencies are computed;
    otherwise they are complex. Shape (frequencies · rows, [re/im ·] positions).
    """
    f = torch.arange(tile // 2 + 1 if half_spectrum else tile, device="cpu")
    p = torch.tensor(positions, device="cpu")
    angle = torch.outer(f, p).remainder(tile).double() * (2 * math.pi / tile)
    cos, sin = angle.cos(), angle.sin()
    if half_spectrum:
        full = torch.stack([cos, -sin], 1)
        twice = 2.0 - ((f == 0) | (2 * f == tile)).double()  # f stands for -f too
    else:
        full = torch.stack([torch.cat([cos, sin], 1), torch.cat([-sin, cos], 1)], 1)
        twice = torch.ones_like(f, dtype=torch.float64)
    forward = torch.einsum("rs,fsp->frp", torch.tensor(rows, device="cpu").double(), full)
    inverse = forward * (twice / tile)[:, None, None]
    return tuple(  # type: ignore[return-value]
        m.flatten(0, 1).to(dtype).to(device).contiguous() for m in (forward, inverse)
    )


class _Transform:
    """Discrete Fourier transform of values at some positions of tiles, on all axes.

    Args:
        axes: the tiling.
        positions: for each axis, the positions that hold values.
        rows: what to make of real and imaginary part in the end.
        like: a tensor of the wanted dtype and device.
    """

    def __init__(self, axes: Sequence[Axis], positions: Sequence[range], rows: Rows, like: Tensor):
        last = len(axes) - 1
        device = str(like.device)
        self.matrices, self.leads = [], [1]
        for i, (axis, places) in enumerate(zip(axes, positions, strict=True)):
            end = rows if i == last else PLAIN
            self.matrices.append(_matrix(axis.tile, places, i == 0, end, like.dtype, device))
            self.leads.append(self.leads[-1] * (axis.frequencies if i == 0 else axis.tile))
        self.n_positions = math.prod(len(places) for places in positions)

    def __call__(self, x: Tensor) -> Tensor:
        """[p1, .., pd, N] -> [frequencies, rows · N]"""
        for (matrix, _), lead in zip(self.matrices, self.leads, strict=False):
            x = _along(matrix, x, lead)
        return x.view(self.leads[-1], -1)

    def inverse(self, x: Tensor) -> Tensor:
        """[frequencies, rows · N] -> [p1 · .. · pd, N]. The adjoint, but for its normalisation."""
        for (_, matrix), lead in zip(self.matrices[::-1], self.leads[-2::-1], strict=True):
            x = _along(matrix.T, x, lead)
        return x.view(self.n_positions, -1)


def _along(matrix: Tensor, x: Tensor, lead: int) -> Tensor:
    """Apply a matrix to the second of three axes of x, of which the first has size ``lead``."""
    x = x.view(lead, matrix.shape[1], -1)
    return matrix.mm(x[0])[None] if lead == 1 else torch.bmm(matrix.expand(lead, -1, -1), x)


# --- the kernel -----------------------------------------------------------------------------------

#: (imaginary part?, parity of the grades in, of the grades out) -> matrices [f, c_in, c_out].
Matrices = dict[tuple[bool, int, int], Tensor]


class _KernelTransform:
    """Between the weights of a convolution (c_out·n, c_in·n, *kernel) and its matrices."""

    def __init__(self, geometry: Geometry, like: Tensor):
        self.like = like
        self.slots, self.sizes = _slots(geometry.grades)
        self.n = sum(self.sizes)
        positions = [range(a.half, -a.half - 1, -1) for a in geometry.axes]  # exp(+iωv)
        self.transforms = {
            key: _Transform(geometry.axes, positions, rows, like)
            for key, rows in KERNEL_ROWS.items()
            if not (geometry.parity and key[0])
        }

    def _split(self, weight: Tensor) -> Tensor:
        """(c_out·n, c_in·n, *kernel) -> (points, c_in, n, c_out, n), a view."""
        w = weight.flatten(2).unflatten(1, (-1, self.n)).unflatten(0, (-1, self.n))
        return w.permute(4, 2, 3, 0, 1)

    def _pairs(self, p: int, q: int) -> Iterator[tuple[_Slot, _Slot]]:
        """Slots of the grades in and out of one block."""
        for i in self.slots:
            for o in self.slots:
                if (i.parity, o.parity) == (p, q):
                    yield i, o

    def __call__(self, weight: Tensor, *, transpose: bool = False) -> Matrices:
        """The matrices; transposed: [f, c_out, c_in]."""
        w = self._split(weight)
        points, c_in, _, c_out, _ = w.shape
        matrices: Matrices = {}
        for p, q in product(PARITIES, PARITIES):
            shape = (c_in, self.sizes[p], c_out, self.sizes[q])
            order = (0, 3, 4, 1, 2) if transpose else (0, 1, 2, 3, 4)
            block = self.like.new_empty([(points, *shape)[i] for i in order])
            view = block.permute(order)  # the order is its own inverse
            for i, o in self._pairs(p, q):
                view[:, :, i.slots, :, o.slots] = w[:, :, i.blades, :, o.blades]
            for key, transform in self.transforms.items():
                if key[1:] == (p, q):
                    rows = block.shape[1] * block.shape[2]
                    matrices[key] = transform(block).unflatten(1, (rows, -1))
        return matrices

    def adjoint(self, gradients: Matrices, weight: Tensor) -> Tensor:
        """Gradient of the weights, without the components that the kernel's symmetry excludes.

        Consumes the gradients of the matrices, to free their memory one by one.
        """
        total = torch.zeros_like(weight, memory_format=torch.contiguous_format)
        w = self._split(total)
        points, c_in, _, c_out, _ = w.shape
        for key, transform in self.transforms.items():
            _, p, q = key
            block = transform.inverse(gradients.pop(key).flatten(1))
            block = block.view(points, c_in, self.sizes[p], c_out, self.sizes[q])
            for i, o in self._pairs(p, q):
                w[:, :, i.blades, :, o.blades] += block[:, :, i.slots, :, o.slots]
        return total


# --- fields as tiles ------------------------------------------------------------------------------


class _Tiles:
    """Fields as two arrays of tiles [p1, .., pd, tiles, channels], for even and for odd grades."""

    def __init__(self, geometry: Geometry, batch: int, like: Tensor):
        self.axes, self.batch, self.like = geometry.axes, batch, like
        self.slots, self.sizes = _slots(geometry.grades)
        self.n = sum(self.sizes)

    def chunks(self, channels: int) -> Iterator[Chunk]:
        """Slices of the batch and of the tiles along the first axis, of bounded size."""
        limit = CHUNK_BYTES.get(self.like.device.type, CHUNK_BYTES_ELSEWHERE)
        row = math.prod(a.count for a in self.axes[1:]) * math.prod(a.tile for a in self.axes)
        row *= channels * max(self.sizes) * self.like.element_size()
        first = self.axes[0].count
        rows = max(1, min(limit // row, self.batch * first))
        if rows < first:
            rows = math.ceil(first / math.ceil(first / rows))  # even pieces
            for b in range(self.batch):
                for start in range(0, first, rows):
                    yield slice(b, b + 1), slice(start, min(start + rows, first))
        else:
            samples = math.ceil(self.batch / math.ceil(self.batch / (rows // first)))
            for start in range(0, self.batch, samples):
                yield slice(start, min(start + samples, self.batch)), slice(0, first)

    def spread(self, x: Tensor, *, overlapping: bool) -> list[Tensor]:
        """Field (batch, c·n, *grid) -> [batch, *line, c·blades] per parity, ready to cut.

        Overlapping lines hold what the tiles see, padded as the axis asks; the others hold what the
        tiles keep of a field on the output grid, zeros behind.
        """
        field = x.unflatten(1, (-1, self.n))
        channels, grid = field.shape[1], field.shape[3:]
        if overlapping:
            lengths, starts = [a.length for a in self.axes], [-a.start for a in self.axes]
        else:
            lengths, starts = [a.count * a.step for a in self.axes], [0] * len(grid)
        new = self.like.new_empty if lengths == list(grid) else self.like.new_zeros
        arrays = [new(self.batch, *lengths, channels, size) for size in self.sizes]
        inside = (slice(None), *(slice(s, s + n) for s, n in zip(starts, grid, strict=True)))
        order = (0, *range(3, field.dim()), 1, 2)
        for slot in self.slots:
            target = arrays[slot.parity][inside][..., slot.slots]
            target.copy_(field[:, :, slot.blades].permute(order))
        if overlapping:
            for array in arrays:
                for i, axis in enumerate(self.axes):
                    if axis.circular:
                        _wrap(array, i + 1, starts[i], axis.size)
        return [a.flatten(-2) for a in arrays]

    def cut(self, array: Tensor, chunk: Chunk, *, overlapping: bool) -> Tensor:
        """One chunk of tiles out of a spread array: [p1, .., pd, tiles, channels]."""
        d = len(self.axes)
        strides = array.stride()
        steps = [a.step * s for a, s in zip(self.axes, strides[1:], strict=False)]
        widths = [a.tile if overlapping else a.step for a in self.axes]
        counts = [a.count for a in self.axes]
        view = array.as_strided(
            (self.batch, *counts, *widths, array.shape[-1]),
            (strides[0], *steps, *strides[1 : 1 + d], 1),
        )[chunk]
        order = (*range(1 + d, 1 + 2 * d), *range(1 + d), 1 + 2 * d)
        return view.permute(order).contiguous()

    def keep(self, array: Tensor, chunk: Chunk, tiles: Tensor) -> None:
        """Put the outputs of a chunk, [p1 · .. · pd, tiles · channels], where they belong."""
        d = len(self.axes)
        split = [n for a in self.axes for n in (a.count, a.step)]
        target = array.view(self.batch, *split, -1)
        # (batch, count1, step1, ..) -> (step1, .., stepd, batch, count1, .., countd, channels)
        order = (*range(2, 2 + 2 * d, 2), 0, *range(1, 1 + 2 * d, 2), 1 + 2 * d)
        part = target[chunk].permute(order)
        part.copy_(tiles.view(part.shape))

    def kept(self, channels: int) -> list[Tensor]:
        """Arrays for `keep`: [batch, *line, c·blades] per parity."""
        lengths = [a.count * a.step for a in self.axes]
        return [self.like.new_empty(self.batch, *lengths, channels * size) for size in self.sizes]

    def gather(self, arrays: Sequence[Tensor], bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        """The field (batch, c·n, *grid) on the output grid from arrays filled by `keep`."""
        grid = [a.out for a in self.axes]
        d, channels = len(grid), arrays[0].shape[-1] // self.sizes[0]
        wide = dtype if bias is None else arrays[0].dtype  # add before rounding
        field = arrays[0].new_empty(self.batch, channels, self.n, *grid, dtype=wide)
        inside = (slice(None), *(slice(n) for n in grid))
        for slot in self.slots:
            source = arrays[slot.parity][inside].unflatten(-1, (channels, -1))[..., slot.slots]
            field[:, :, slot.blades].copy_(source.permute(0, 1 + d, 2 + d, *range(1, 1 + d)))
        field = field.flatten(1, 2)
        if bias is not None:
            field.add_(bias.to(field.dtype).reshape(-1, *(1,) * d))
        return field.to(dtype)


def _wrap(array: Tensor, axis: int, start: int, size: int) -> None:
    """Continue ``size`` points from ``start`` on periodically over the whole axis, in place."""
    if start:
        array.narrow(axis, 0, start).copy_(array.narrow(axis, size, start))
    done, length = start + size, array.shape[axis]
    while done < length:
        piece = min(size, length - done)
        array.narrow(axis, done, piece).copy_(array.narrow(axis, done - size, piece))
        done += piece


# --- convolution ----------------------------------------------------------------------------------


class _Engine:
    """The transforms of one convolution, whichever way it runs."""

    def __init__(self, geometry: Geometry, batch: int, like: Tensor):
        axes = geometry.axes
        self.geometry = geometry
        self.tiles = _Tiles(geometry, batch, like)
        self.kernel = _KernelTransform(geometry, like)
        seen = [range(a.tile) for a in axes]
        kept = [range(a.first, a.first + a.step) for a in axes]
        self.seen = [_Transform(axes, seen, rows, like) for rows in (PLAIN, TIMES_I)]
        self.kept = [_Transform(axes, kept, rows, like) for rows in (PLAIN, TIMES_I)]

    def analyse(self, arrays: Sequence[Tensor], chunk: Chunk, *, overlapping: bool) -> list[Tensor]:
        """Spectra [f, re/im · tiles, channels] of one chunk of tiles, per parity."""
        spectra = []
        for parity, array in enumerate(arrays):
            tiles = self.tiles.cut(array, chunk, overlapping=overlapping)
            transform = (self.seen if overlapping else self.kept)[parity]
            spectra.append(transform(tiles).unflatten(1, (-1, array.shape[-1])))
        return spectra

    def mix(self, spectra: Sequence[Tensor], matrices: Matrices, *, adjoint: bool) -> list[Tensor]:
        """Mixed channels of both parities."""
        turned = None if self.geometry.parity else [_times_i(s, adjoint) for s in spectra]
        results = []
        for to in PARITIES:
            result: Tensor | None = None
            for of in PARITIES:
                p, q = (to, of) if adjoint else (of, to)
                for imaginary, source in ((False, spectra), (True, turned)):
                    if source is None:
                        continue
                    matrix = matrices[imaginary, p, q]
                    if result is None:
                        result = torch.bmm(source[of], matrix)
                    else:
                        result.baddbmm_(source[of], matrix)
            assert result is not None
            results.append(result)
        return results

    def keep(self, arrays: Sequence[Tensor], chunk: Chunk, spectra: Sequence[Tensor]) -> None:
        """Transform back and store what the tiles keep."""
        for parity, (array, spectrum) in enumerate(zip(arrays, spectra, strict=True)):
            self.tiles.keep(array, chunk, self.kept[parity].inverse(spectrum.flatten(1)))

    def accumulate(
        self, gradients: Matrices, inputs: Sequence[Tensor], spectra: Sequence[Tensor]
    ) -> None:
        """Add a chunk's gradient of the matrices."""
        for imaginary, p, q in self.kernel.transforms:
            left = (_times_i(inputs[p]) if imaginary else inputs[p]).transpose(1, 2)
            if (imaginary, p, q) in gradients:
                gradients[imaginary, p, q].baddbmm_(left, spectra[q])
            else:
                gradients[imaginary, p, q] = torch.bmm(left, spectra[q])


def _times_i(x: Tensor, conjugate: bool = False) -> Tensor:
    """i x or -i x, for x [f, re/im · tiles, channels]."""
    re, im = x.unflatten(1, (2, -1)).unbind(1)
    return torch.stack([im, -re] if conjugate else [-im, re], 1).flatten(1, 2)


def _like(x: Tensor) -> Tensor:
    """An empty tensor of the dtype to compute in: half precision is too coarse for transforms."""
    dtype = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
    return x.new_empty(0, dtype=dtype)


def in_full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: no autocast inside, the transforms choose their precision themselves."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        device = next(a.device.type for a in args if isinstance(a, Tensor))
        if not torch.amp.is_autocast_available(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return run


@in_full_precision
def kernel_matrices(weight: Tensor, geometry: Geometry) -> Matrices:
    """Weights (c_out·n, c_in·n, *kernel) as matrices, for `convolve`."""
    return _KernelTransform(geometry, _like(weight))(weight)


@in_full_precision
def convolve(x: Tensor, matrices: Matrices, bias: Tensor | None, geometry: Geometry) -> Tensor:
    """Convolution of a field (batch, c_in·n, *grid) with a kernel given by its matrices."""
    engine = _Engine(geometry, x.shape[0], _like(x))
    tiles = engine.tiles
    c_in, c_out = (matrices[False, 0, 0].shape[i] // tiles.sizes[0] for i in (1, 2))
    arrays = tiles.spread(x, overlapping=True)
    out = tiles.kept(c_out)
    for chunk in tiles.chunks(max(c_in, c_out)):
        spectra = engine.analyse(arrays, chunk, overlapping=True)
        engine.keep(out, chunk, engine.mix(spectra, matrices, adjoint=False))
    return tiles.gather(out, bias, x.dtype)


@in_full_precision
def gradients(
    g: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, needs_x: bool, needs_weight: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of field and weights; an empty tensor for one that is not needed.

    Cut into the same kind of tiles, g (seen) and x (kept) give both: the gradient of the field is a
    convolution of g, that of the kernel a product of both spectra.
    """
    reverse = Geometry(
        tuple(cut(a.out, -a.shift, a.circular, a.half, a.count) for a in geometry.axes),
        *geometry[1:],
    )
    engine = _Engine(reverse, x.shape[0], _like(x))
    tiles, n = engine.tiles, engine.tiles.n
    c_out, c_in = weight.shape[0] // n, weight.shape[1] // n
    matrices = engine.kernel(weight, transpose=True) if needs_x else {}
    arrays = tiles.spread(g, overlapping=True)
    inputs = tiles.spread(x, overlapping=False) if needs_weight else []
    out = tiles.kept(c_in) if needs_x else []
    products: Matrices = {}
    for chunk in tiles.chunks(max(c_in, c_out)):
        spectra = engine.analyse(arrays, chunk, overlapping=True)
        if needs_x:
            engine.keep(out, chunk, engine.mix(spectra, matrices, adjoint=True))
        if needs_weight:
            blocks = engine.analyse(inputs, chunk, overlapping=False)
            engine.accumulate(products, blocks, spectra)
    del arrays, inputs, matrices  # what follows needs memory of its own
    grad_x = tiles.gather(out, None, x.dtype) if needs_x else x.new_empty(0)
    del out
    grad_weight = engine.kernel.adjoint(products, weight) if needs_weight else x.new_empty(0)
    return grad_x, grad_weight


# --- as an operator of torch ----------------------------------------------------------------------


def make_geometry(
    grid: Sequence[int],
    kernel: Sequence[int],
    shift: Sequence[int],
    circular: Sequence[bool],
    counts: Sequence[int],
    grades: Sequence[int],
    parity: bool,
) -> Geometry:
    """The geometry of a grid cut into ``counts`` tiles along its axes; see `cut`."""
    axes = zip(grid, shift, circular, kernel, counts, strict=True)
    return Geometry(tuple(cut(n, s, c, k // 2, q) for n, s, c, k, q in axes), tuple(grades), parity)


@torch.library.custom_op("cscnn::spectral_conv", mutates_args=())
def spectral_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    shift: Sequence[int],
    circular: Sequence[bool],
    counts: Sequence[int],
    grades: Sequence[int],
    parity: bool,
) -> Tensor:
    """y[o] = bias + sum_v K(v) x[o + shift + v], differentiable in x, weight and bias.

    Args:
        x: (batch, c_in·n, *grid), flattened channels and blades.
        weight: (c_out·n, c_in·n, *kernel), odd kernel sizes.
        bias: (c_out·n,) or None.
        shift: half the kernel minus the zero padding, for each axis.
        circular: whether the axis is periodic instead.
        counts: number of tiles along each axis.
        grades: number of blades of each grade, n in all.
        parity: whether K(-v)[C, B] = (-1)^(|C| + |B|) K(v)[C, B], so that the matrices are real.
    """
    geometry = make_geometry(x.shape[2:], weight.shape[2:], shift, circular, counts, grades, parity)
    return convolve(x, kernel_matrices(weight, geometry), bias, geometry)


@torch.library.custom_op("cscnn::spectral_conv_backward", mutates_args=())
def _spectral_conv_backward(
    g: Tensor,
    x: Tensor,
    weight: Tensor,
    shift: Sequence[int],
    circular: Sequence[bool],
    counts: Sequence[int],
    grades: Sequence[int],
    parity: bool,
    needs_x: bool,
    needs_weight: bool,
) -> tuple[Tensor, Tensor]:
    geometry = make_geometry(x.shape[2:], weight.shape[2:], shift, circular, counts, grades, parity)
    return gradients(g, x, weight, geometry, needs_x, needs_weight)


@spectral_conv.register_fake
def _(x, weight, bias, shift, circular, counts, grades, parity):  # type: ignore[no-untyped-def]
    grid = [n if c else n - 2 * s for n, s, c in zip(x.shape[2:], shift, circular, strict=True)]
    return x.new_empty(x.shape[0], weight.shape[0], *grid)


@_spectral_conv_backward.register_fake
def _(g, x, weight, shift, circular, counts, grades, parity, needs_x, needs_weight):  # type: ignore[no-untyped-def]
    return (
        torch.empty_like(x, memory_format=torch.contiguous_format) if needs_x else x.new_empty(0),
        torch.empty_like(weight, memory_format=torch.contiguous_format)
        if needs_weight
        else x.new_empty(0),
    )


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, *ctx.options = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(x, weight)


def _backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    x, weight = ctx.saved_tensors
    needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
    grad_bias = g.sum((0, *range(2, g.dim()))).to(weight.dtype) if needs_bias else None
    grad_x = grad_weight = None
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # gradients of gradients
        with torch.enable_grad():
            y = _reference(x, weight, *ctx.options[:2])
            wanted = [t for t, needed in ((x, needs_x), (weight, needs_weight)) if needed]
            found = list(torch.autograd.grad(y, wanted, g, create_graph=True)) if wanted else []
        grad_x = found.pop(0) if needs_x else None
        grad_weight = found.pop(0) if needs_weight else None
    elif needs_x or needs_weight:
        grad_x, grad_weight = _spectral_conv_backward(
            g, x, weight, *ctx.options, needs_x, needs_weight
        )
    return (
        grad_x if needs_x else None,
        grad_weight if needs_weight else None,
        grad_bias,
        *(None,) * len(ctx.options),
    )


spectral_conv.register_autograd(_backward, setup_context=_setup)


def _reference(x: Tensor, weight: Tensor, shift: Sequence[int], circular: Sequence[bool]) -> Tensor:
    """The same by direct convolution, for gradients of gradients."""
    halves = [k // 2 for k in weight.shape[2:]]
    wrapped = tuple(h if c else 0 for h, c in zip(halves, circular, strict=True))
    zeros = tuple(0 if c else h - s for h, c, s in zip(halves, circular, shift, strict=True))
    x = pad(x, wrapped, ("circular",) * len(wrapped))
    return conv_nd(x, weight.to(x.dtype), None, (1,) * len(zeros), zeros)
