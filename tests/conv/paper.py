"""The paper's algorithms, transcribed literally as loops over numpy arrays.

An oracle for `ImplicitKernel` and `CliffordSteerableConv` that shares no code with the library: its
own blades and Cayley table, full multivectors, every point and channel by itself.
"""

import itertools

import numpy as np


class Algebra:
    def __init__(self, metric):
        self.metric, d = metric, len(metric)
        self.blades = [c for k in range(d + 1) for c in itertools.combinations(range(d), k)]
        self.grade = [len(b) for b in self.blades]
        self.form = [np.prod([metric[i] for i in b]) for b in self.blades]
        n = len(self.blades)
        self.cayley = np.zeros((n, n, n))  # [left, out, right]
        for i, a in enumerate(self.blades):
            for j, b in enumerate(self.blades):
                word, sign = list(a + b), 1
                for end in range(len(word), 1, -1):  # bubble sort, counting swaps
                    for k in range(end - 1):
                        if word[k] > word[k + 1]:
                            word[k], word[k + 1], sign = word[k + 1], word[k], -sign
                for axis in set(a) & set(b):
                    word.remove(axis)
                    word.remove(axis)
                    sign *= metric[axis]
                self.cayley[i, self.blades.index(tuple(word)), j] = sign
        grades = range(d + 1)
        self.paths = [
            (i, k, j)
            for i in grades
            for k in grades
            for j in grades
            if any(
                self.cayley[a, c, b]
                for a, c, b in itertools.product(range(n), repeat=3)
                if (self.grade[a], self.grade[c], self.grade[b]) == (i, k, j)
            )
        ]


def shell(eta, sigma):
    return (1.0 if eta >= 0 else -1.0) * np.exp(-abs(eta) / (2 * sigma**2))


def norm(q):
    return (np.maximum(q, 0.01) ** 2 + 1e-16) ** 0.25


def linear(alg, x, weight, bias=None):  # x (channels, blades)
    y = np.zeros((weight.shape[0], x.shape[1]))
    for o, i, b in np.ndindex(weight.shape[0], weight.shape[1], x.shape[1]):
        y[o, b] += weight[o, i, alg.grade[b]] * x[i, b]
    if bias is not None:
        y[:, 0] += bias
    return y


def grade_norm(alg, x, factor):
    y = np.zeros_like(x)
    for c, b in np.ndindex(*x.shape):
        same = [m for m in range(x.shape[1]) if alg.grade[m] == alg.grade[b]]
        r = norm(sum(alg.form[m] * x[c, m] ** 2 for m in same))
        a = 1 / (1 + np.exp(-factor[c, alg.grade[b]]))
        y[c, b] = x[c, b] / (a * (r - 1) + 1 + 1e-6)
    return y


def product(alg, x, y, weight):
    n = x.shape[1]
    z = np.zeros((weight.shape[0], n))
    for a, c, b in itertools.product(range(n), repeat=3):
        if alg.cayley[a, c, b]:
            path = alg.paths.index((alg.grade[a], alg.grade[c], alg.grade[b]))
            for o, i in np.ndindex(*weight.shape[:2]):
                z[o, c] += weight[o, i, path] * alg.cayley[a, c, b] * x[i, a] * y[i, b]
    return z


def layer(alg, p, name, x):
    right = grade_norm(alg, linear(alg, x, p[f"{name}.right.weight"]), p[f"{name}.norm.factor"])
    first = linear(alg, x, p[f"{name}.linear.weight"], p[f"{name}.linear.bias"])
    return (product(alg, x, right, p[f"{name}.weight"]) + first) / np.sqrt(2)


def gate(x):
    s = x[:, :1]
    return x / (1 + np.exp(-np.sqrt(2 / np.pi) * 2 * (s + 0.044715 * s**3)))


def kernel_matrix(alg, p, v, scale, c_out, c_in, num_layers):
    """K(v) as (c_out, n, c_in, n); p maps our parameter names to arrays."""
    n, d = len(alg.blades), len(alg.metric)
    eta = sum(s * c**2 for s, c in zip(alg.metric, v, strict=True))
    x = np.zeros((1, n))
    x[0, 0] = shell(eta, p["position_width"].item())
    x[0, 1 : d + 1] = v
    for i in range(num_layers):
        x = layer(alg, p, f"network.products.{i}", x)
        if i < num_layers - 1:
            x = gate(grade_norm(alg, x, p[f"network.norms.{i}.factor"]))
    k = x.reshape(c_out, c_in, n)
    out = np.zeros((c_out, n, c_in, n))
    for o, i in np.ndindex(c_out, c_in):
        for a, c, b in itertools.product(range(n), repeat=3):
            if alg.cayley[a, c, b]:
                mask = shell(eta, p["mask_width"][o, i, alg.grade[a]] + 0.4)
                path = alg.paths.index((alg.grade[a], alg.grade[c], alg.grade[b]))
                weight = p["head"][o, i, path] * alg.cayley[a, c, b]
                out[o, c, i, b] += scale * mask * k[o, i, a] * weight
    return out


def convolve(x, matrices, offsets, bias):
    """Zero-padded cross-correlation of a field (c_in, *grid, n) by its definition."""
    grid = x.shape[1:-1]
    y = np.zeros((len(bias), *grid, x.shape[-1]))
    for point in np.ndindex(*grid):
        for matrix, offset in zip(matrices, offsets, strict=True):
            source = tuple(np.add(point, offset))
            if all(0 <= s < size for s, size in zip(source, grid, strict=True)):
                y[(slice(None), *point)] += np.einsum(
                    "ocib,ib->oc", matrix, x[(slice(None), *source)]
                )
    y[..., 0] += np.reshape(bias, (-1,) + (1,) * len(grid))
    return y
