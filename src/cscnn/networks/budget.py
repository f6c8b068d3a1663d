"""Networks of a given number of parameters."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from itertools import product
from typing import Any

import torch
from torch import nn

from cscnn._util.checks import check_int
from cscnn.kernels import Implicit, kernel_choice
from cscnn.networks.entries import Entry
from cscnn.networks.fieldtype import FieldType
from cscnn.networks.grid import Grid
from cscnn.networks.pointnet import Neighbourhood
from cscnn.networks.recipe import json_options
from cscnn.networks.registry import build, check_options, entry

#: Largest deviation from a budget of parameters that is accepted.
TOLERANCE = 0.03

Options = dict[str, Any]


def count_parameters(network: nn.Module) -> int:
    """Number of trainable numbers; complex ones count once."""
    return sum(p.numel() for p in network.parameters())


def fit_budget(
    name: str,
    input_type: FieldType,
    output_type: FieldType,
    params: int,
    space: Grid | Neighbourhood | None = None,
    **options: Any,
) -> Options:
    """Options with which a network has about ``params`` parameters.

    Counts are polynomials of the width: they are found from a few small networks, not by building
    large ones.

    Args:
        name: one of `names`.
        input_type, output_type, space: as for `build`.
        params: how many parameters.
        options: those that are given.

    Returns:
        all options, the given ones included.

    Example:
        >>> from cscnn import CliffordAlgebra
        >>> flow = FieldType(CliffordAlgebra((1, 1)), ((0, 1),))
        >>> fit_budget("resnet", flow, flow, params=100_000, blocks=4)
        {'blocks': 4, 'width': 16}
    """
    registered = entry(name)
    check_options(name, options)
    check_int("params", params, low=1)
    given = json_options(options)
    signature = (name, input_type, output_type, space)
    best: tuple[Options, int] | None = None
    for least, extra in product(_least_widths(registered), ({}, *registered.sizes.fallbacks)):
        tried = _with_fallback(registered, given, extra)
        if tried is None:
            continue
        sizes = list(_candidates(registered, signature, params, tried, least))
        closest = min(abs(count - params) for _, count in sizes)
        # Among those that are close enough, the most regular one comes first.
        tolerance = max(closest, 0.02 * params)
        chosen, count = next((o, c) for o, c in sizes if abs(c - params) <= tolerance)
        if best is None or abs(count - params) < abs(best[1] - params):
            best = ({**tried, **chosen}, count)
        if closest <= TOLERANCE * params:
            break
    assert best is not None
    if abs(best[1] - params) > TOLERANCE * params:
        raise ValueError(
            f"{name} cannot have {params} parameters here: the closest it comes to is {best[1]}, "
            f"with {best[0]}. Ask for {best[1]}, give a width instead, or change other options"
        )
    return best[0]


def _least_widths(registered: Entry) -> list[int]:
    """The narrowest networks to try, first the usual ones."""
    widths = [registered.sizes.least]
    while widths[-1] > 1:
        widths.append(widths[-1] // 2)
    return widths


def _with_fallback(registered: Entry, given: Options, extra: Mapping[str, Any]) -> Options | None:
    """The given options and a fallback; None if that would overrule what is given."""
    kernel = extra.get("kernel")
    if kernel is None:
        return None if any(key in given for key in extra) else {**given, **extra}
    chosen = given.get("kernel", _default_kernel(registered))
    chosen = {"name": chosen} if isinstance(chosen, str) else dict(chosen)
    known = {field.name for field in fields(kernel_choice(chosen))}
    if any(key in chosen or key not in known for key in kernel):
        return None
    return {**given, "kernel": {**chosen, **kernel}}


def _default_kernel(registered: Entry) -> Options:
    """What a network takes unless told otherwise, without options."""
    for cls in getattr(registered.network, "__mro__", ()):
        parameters = inspect.signature(cls.__init__).parameters
        if "kernel" in parameters:
            return {"name": parameters["kernel"].default.name}
    raise ValueError(f"{registered.network} has no kernel")


def _candidates(
    registered: Entry, signature: tuple[Any, ...], params: int, options: Options, least: int
) -> Iterator[tuple[Options, int]]:
    """Options and their number of parameters, the most regular ones first."""
    sizes, frozen = registered.sizes, json.dumps(options, sort_keys=True)
    if sizes.pairs or (sizes.second and not sizes.values and sizes.second not in options):

        def named(width: int, second: int) -> Options:
            if not sizes.pairs:
                return {"width": width, sizes.second: second}
            return {"width": width if width == second else [width, second]}

        fit = _quadratic(lambda w, i: _count(*signature, frozen, json.dumps(named(w, i))))
        r, top = sizes.ratio, least
        while fit(top, max(1, r * top // 2)) < 2 * params:
            top += 1
            _check_growth(fit(top, max(1, r * top // 2)), fit(1, max(1, r // 2)), signature[0])
        widths = range(least, top + 1)
        pairs = [(w, i) for w in widths for i in range((r * w + 1) // 2, 2 * r * w + 1)]
        pairs.sort(key=lambda p: (abs(p[1] / p[0] / r - 1), p))
        for w, i in pairs:
            yield named(w, i), fit(w, i)
        return
    fixed = sizes.second in options or not sizes.values
    for extra in [{}] if fixed else [{sizes.second: value} for value in sizes.values]:
        yield from _along_width(signature, frozen, extra, sizes.step, params, least)


def _along_width(
    signature: tuple[Any, ...], frozen: str, extra: Options, step: int, params: int, least: int
) -> Iterator[tuple[Options, int]]:
    """Widths and their number of parameters, a quadratic function of the width."""
    a, b, c = (
        _count(*signature, frozen, json.dumps({"width": n * step, **extra})) for n in (1, 2, 3)
    )
    curve = (a - 2 * b + c) / 2
    slope = b - a - 3 * curve
    start = a - slope - curve
    _check_growth(c, a, signature[0])
    n = first = -(-least // step)
    while n == first or start + slope * n + curve * n**2 < 2 * params:
        yield {"width": n * step, **extra}, round(start + slope * n + curve * n**2)
        n += 1


def _check_growth(wide: int, narrow: int, name: str) -> None:
    """Raise if a network has no more parameters when it is wider: no width meets a budget."""
    if wide <= narrow:
        raise ValueError(f"{name} has {narrow} parameters whatever its width: give no budget")


def _quadratic(count: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """The quadratic polynomial of two integers that agrees with a function at six points."""

    def terms(w: int, i: int) -> list[int]:
        return [1, w, i, w * i, w * w, i * i]

    points = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3)]
    rows = torch.tensor([terms(w, i) for w, i in points], dtype=torch.float64)
    values = torch.tensor([count(w, i) for w, i in points], dtype=torch.float64)
    fit = torch.linalg.solve(rows, values).tolist()
    return lambda w, i: round(sum(a * b for a, b in zip(fit, terms(w, i), strict=True)))


@cache
def _count(
    name: str,
    input_type: FieldType,
    output_type: FieldType,
    space: Grid | Neighbourhood | None,
    options: str,
    sizes: str,
) -> int:
    registered = entry(name)
    given = {**json.loads(options), **json.loads(sizes)}
    if registered.sizes.fallbacks and "kernel" in registered.sizes.fallbacks[0]:
        kernel = kernel_choice(given.get("kernel", _default_kernel(registered)))
        if isinstance(kernel, Implicit):  # as many parameters, drawn in less time
            given["kernel"] = replace(kernel, unit_variance=False)
    if registered.on_meta:
        with torch.device("meta"):
            return count_parameters(build(name, input_type, output_type, space, **given))
    state = torch.get_rng_state()
    try:
        return count_parameters(build(name, input_type, output_type, space, **given))
    finally:
        torch.set_rng_state(state)
