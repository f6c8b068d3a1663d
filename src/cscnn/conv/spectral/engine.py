"""Spectral convolution of multivector fields: a product of real matrices at every frequency.

Tiles of the field (`cscnn.conv.spectral.tiles`) are Fourier transformed, their channels mixed
frequency by frequency, and transformed back. Two things make it fast:

* **Real mixing.** If the kernel commutes with v -> -v, its entry from grade b to grade c is even in
  v for even b + c and odd otherwise; the transform of an even function is real, that of an odd one
  imaginary. After multiplying the odd grades of input and output by i every entry is real: one real
  matrix serves the real and the imaginary part of the field. (Kernels without that symmetry get a
  second matrix, for the imaginary part.)
* **Nothing but matrix products.** A transform along one axis of a tile of some twenty points is a
  product with a small matrix (`cscnn.conv.spectral.transforms`).

Even and odd grades are kept in two arrays throughout. Backward passes recompute the transforms:
only the field and the kernel are stored, and large kernels are made again (`cscnn.conv.memory`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import torch
from torch import Tensor

from cscnn.conv.precision import full_precision
from cscnn.conv.spectral.overlap import Tiling, cut_axis
from cscnn.conv.spectral.tiles import Chunk, FieldTiles, Slot, slots_by_parity
from cscnn.conv.spectral.transforms import COMPLEX, TIMES_I, Rows, Transform

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
#: Bands of frequencies of a backward pass whose matrices are large, relative to the field.
MAX_BANDS = 3
LARGE_MATRICES = 2.5


# --- the kernel -----------------------------------------------------------------------------------

#: (imaginary part?, parity of the grades in, of the grades out) -> matrices [f, c_in, c_out].
Matrices = dict[tuple[bool, int, int], Tensor]


class _KernelTransform:
    """Between the weights of a convolution (c_out·n, c_in·n, *kernel) and its matrices."""

    def __init__(self, tiling: Tiling, like: Tensor, band: range | None = None):
        self.like = like
        self.slots, self.sizes = slots_by_parity(tiling.grades)
        self.n = sum(self.sizes)
        positions = [range(a.half, -a.half - 1, -1) for a in tiling.axes]  # exp(+iωv)
        self.transforms = {
            key: Transform(tiling.axes, positions, rows, like, band)
            for key, rows in KERNEL_ROWS.items()
            if not (tiling.parity and key[0])
        }

    def _split(self, weight: Tensor) -> Tensor:
        """(c_out·n, c_in·n, *kernel) -> (points, c_in, n, c_out, n), a view."""
        w = weight.flatten(2).unflatten(1, (-1, self.n)).unflatten(0, (-1, self.n))
        return w.permute(4, 2, 3, 0, 1)

    def _pairs(self, p: int, q: int) -> Iterator[tuple[Slot, Slot]]:
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

    def add_adjoint(self, total: Tensor, gradients: Matrices) -> None:
        """Add to the gradient of the weights, but for components that the symmetry excludes.

        Consumes the gradients of the matrices, to free their memory one by one.
        """
        w = self._split(total)
        points, c_in, _, c_out, _ = w.shape
        for key, transform in self.transforms.items():
            _, p, q = key
            block = transform.inverse(gradients.pop(key).flatten(1))
            block = block.view(points, c_in, self.sizes[p], c_out, self.sizes[q])
            for i, o in self._pairs(p, q):
                w[:, :, i.blades, :, o.blades] += block[:, :, i.slots, :, o.slots]


# --- convolution ----------------------------------------------------------------------------------


class _Engine:
    """The transforms of one convolution, whichever way it runs."""

    def __init__(self, tiling: Tiling, batch: int, like: Tensor, band: range | None = None):
        axes = tiling.axes
        self.tiling = tiling
        self.band = range(axes[0].frequencies) if band is None else band
        self.tiles = FieldTiles(axes, tiling.grades, batch, like)
        self.kernel = _KernelTransform(tiling, like, band)
        seen = [range(a.tile) for a in axes]
        kept = [range(a.first, a.first + a.step) for a in axes]
        self.seen = [Transform(axes, seen, rows, like, band) for rows in (COMPLEX, TIMES_I)]
        self.kept = [Transform(axes, kept, rows, like, band) for rows in (COMPLEX, TIMES_I)]

    def analyse(self, x: Tensor, chunk: Chunk, *, overlapping: bool) -> Iterator[Tensor]:
        """Spectra [f, re/im · tiles, channels] of what a chunk of tiles sees of x, or of what it
        keeps of x, for one parity after the other."""
        tiles, part = self.tiles.alone(x, chunk, overlapping=overlapping)
        transforms = self.seen if overlapping else self.kept
        arrays = tiles.spread(part, overlapping=overlapping)
        for transform, array in zip(transforms, arrays, strict=True):
            spectra = transform(tiles.cut(array, overlapping=overlapping))
            yield spectra.unflatten(1, (-1, array.shape[-1]))

    def keep(
        self,
        arrays: Sequence[Tensor],
        chunk: Chunk,
        spectra: Sequence[Tensor],
        matrices: Matrices,
        *,
        adjoint: bool,
    ) -> None:
        """Mix channels, transform back, and store what the tiles keep, for one parity after the
        other."""
        sources = {False: spectra}
        if not self.tiling.parity:
            sources[True] = [_times_i(s, adjoint) for s in spectra]
        for to, array in enumerate(arrays):
            tiles = self.kept[to].inverse(_mix(sources, matrices, to, adjoint).flatten(1))
            self.tiles.keep(array, chunk, tiles, add=self.band.start > 0)

    def differentiate(
        self,
        g: Tensor,
        x: Tensor,
        weight: Tensor,
        out: Sequence[Tensor],
        needs_weight: bool,
    ) -> Matrices:
        """The gradients of one band of matrices. That of the field is added to ``out``, unless it
        is empty."""
        channels = max(weight.shape[:2]) // self.tiles.n
        matrices = self.kernel(weight, transpose=True) if out else {}
        products: Matrices = {}
        chunks = list(self.tiles.chunks(channels))
        for chunk in chunks:  # what is large is made as late and freed as early as possible
            spectra = list(self.analyse(g, chunk, overlapping=True))
            if out:
                self.keep(out, chunk, spectra, matrices, adjoint=True)
            if chunk is chunks[-1]:
                del matrices
            if needs_weight:
                self.accumulate(products, x, chunk, spectra)
            del spectra
        return products

    def accumulate(
        self, gradients: Matrices, x: Tensor, chunk: Chunk, spectra: Sequence[Tensor]
    ) -> None:
        """Add the gradient of the matrices by what a chunk of tiles keeps of x."""
        for p, block in enumerate(self.analyse(x, chunk, overlapping=False)):
            for imaginary, of, q in self.kernel.transforms:
                if of != p:
                    continue
                left = (_times_i(block) if imaginary else block).transpose(1, 2)
                if (imaginary, p, q) in gradients:
                    gradients[imaginary, p, q].baddbmm_(left, spectra[q])
                else:
                    gradients[imaginary, p, q] = torch.bmm(left, spectra[q])


def _mix(
    sources: dict[bool, Sequence[Tensor]], matrices: Matrices, to: int, adjoint: bool
) -> Tensor:
    """Mixed channels of one parity, from spectra and for imaginary parts from i times these."""
    result: Tensor | None = None
    for of in PARITIES:
        p, q = (to, of) if adjoint else (of, to)
        for imaginary, spectra in sources.items():
            matrix = matrices[imaginary, p, q]
            if result is None:
                result = torch.bmm(spectra[of], matrix)
            else:
                result.baddbmm_(spectra[of], matrix)
    assert result is not None
    return result


def _times_i(x: Tensor, conjugate: bool = False) -> Tensor:
    """i x or -i x, for x [f, re/im · tiles, channels]."""
    re, im = x.unflatten(1, (2, -1)).unbind(1)
    return torch.stack([im, -re] if conjugate else [-im, re], 1).flatten(1, 2)


def _like(x: Tensor) -> Tensor:
    """An empty tensor of the dtype to compute in: half precision is too coarse for transforms."""
    dtype = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
    return x.new_empty(0, dtype=dtype)


def kernel_matrices(weight: Tensor, tiling: Tiling) -> Matrices:
    """Weights (c_out·n, c_in·n, *kernel) as matrices, for `convolve`."""
    with full_precision(weight.device.type):
        return _KernelTransform(tiling, _like(weight))(weight)


def convolve(x: Tensor, matrices: Matrices, bias: Tensor | None, tiling: Tiling) -> Tensor:
    """Convolution of a field (batch, c_in·n, *grid) with a kernel given by its matrices."""
    with full_precision(x.device.type):
        engine = _Engine(tiling, x.shape[0], _like(x))
        tiles = engine.tiles
        c_in, c_out = (matrices[False, 0, 0].shape[i] // tiles.sizes[0] for i in (1, 2))
        out = tiles.kept(c_out)
        for chunk in tiles.chunks(max(c_in, c_out)):
            spectra = list(engine.analyse(x, chunk, overlapping=True))
            engine.keep(out, chunk, spectra, matrices, adjoint=False)
            del spectra  # before those of the next chunk are made
        return tiles.gather(out, bias, x.dtype)


def gradients(
    g: Tensor, x: Tensor, weight: Tensor, tiling: Tiling, needs_x: bool, needs_weight: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of field and weights; an empty tensor for one that is not needed.

    Cut into the same tiles, g (seen) and x (kept) give both: the gradient of the field is a
    convolution of g, that of the kernel a product of both spectra.
    """
    with full_precision(x.device.type):
        reverse = Tiling(
            tuple(cut_axis(a.out, -a.shift, a.circular, a.half, a.count) for a in tiling.axes),
            *tiling[1:],
        )
        n = sum(tiling.grades)
        tiles = FieldTiles(reverse.axes, reverse.grades, x.shape[0], _like(x))
        out = tiles.kept(weight.shape[1] // n) if needs_x else []
        grad_weight: Tensor | None = None
        for band in _bands(reverse, x, weight):
            engine = _Engine(reverse, x.shape[0], _like(x), band)
            products = engine.differentiate(g, x, weight, out, needs_weight)
            if needs_weight:
                if grad_weight is None:
                    grad_weight = torch.zeros_like(weight, memory_format=torch.contiguous_format)
                engine.kernel.add_adjoint(grad_weight, products)
        grad_x = tiles.gather(out, None, x.dtype) if needs_x else x.new_empty(0)
        return grad_x, x.new_empty(0) if grad_weight is None else grad_weight


def _bands(tiling: Tiling, x: Tensor, weight: Tensor) -> list[range]:
    """Frequencies of the first axis, in several bands if matrices are large beside the field.

    Matrices and their gradients are the largest part of the memory of a backward pass. Each band
    has to cut the fields into tiles again, which is a small part of the time.
    """
    size = tiling.axes[0].frequencies
    matrices = size * math.prod(a.tile for a in tiling.axes[1:]) * math.prod(weight.shape[:2])
    count = min(MAX_BANDS, size) if matrices > LARGE_MATRICES * x.numel() else 1
    bounds = [size * i // count for i in range(count + 1)]
    return [range(*pair) for pair in pairwise(bounds)]
