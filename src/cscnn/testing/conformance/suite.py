"""What all suites share: cases for pytest, a way to run without it, checks that say what failed.

A suite is a class whose methods named ``test_...`` pytest collects. An argument of a method that
`Suite.cases` names runs through the values given there. pytest itself is never imported.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from unittest import SkipTest

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.group import check_group
from cscnn.testing.errors import relative_error

Metric = tuple[int, ...]

#: Small metrics with everything that can differ between metrics: rotations, boosts, light cones.
METRICS: tuple[Metric, ...] = ((1, 1), (1, -1), (1, 1, 1), (1, -1, -1))


class Symmetry(NamedTuple):
    """One kind of transformation of one space.

    Attributes:
        algebra: of the space.
        kind: see `CliffordAlgebra.random_orthogonal`.
        group: that it is drawn from.
    """

    algebra: CliffordAlgebra
    kind: str
    group: str = "O"

    def __str__(self) -> str:
        return f"{label(self.algebra)} {self.kind}" + f" of {self.group}" * (self.group != "O")


class Setting(NamedTuple):
    """A space and the group of symmetries that is claimed."""

    algebra: CliffordAlgebra
    group: str = "O"

    def __str__(self) -> str:
        return label(self.algebra) + f" {self.group}" * (self.group != "O")


class Suite:
    """Base of all suites.

    Attributes:
        cases: argument of test methods -> the values to test with.
    """

    cases: Mapping[str, Sequence[Any]]

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Called by pytest for every test method."""
        for argument, values in self.cases.items():
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, values, ids=[label(value) for value in values])


SuiteType = TypeVar("SuiteType", bound=type[Suite])


def specialise(suite: SuiteType, without: Sequence[str] = (), **attributes: Any) -> SuiteType:
    """The suite for one object.

    Args:
        suite: the general one.
        without: tests to leave out.
        attributes: of the class; functions among them do not become methods.
    """
    fixed = {k: staticmethod(v) if inspect.isfunction(v) else v for k, v in attributes.items()}
    fixed.update(dict.fromkeys(without))
    return type(suite.__name__, (suite,), {"__doc__": suite.__doc__, **fixed})  # type: ignore[return-value]


def failures(suite: type[Suite], match: str = "") -> dict[str, str]:
    """Run a suite without pytest: test -> message, of the tests that fail.

    Args:
        suite: from one of the functions of `cscnn.testing.conformance`.
        match: run only tests whose names contain this.
    """
    messages = {}
    for name, test, values in _tests(suite):
        if match in name:
            try:
                test(*values)
            except SkipTest:
                pass
            except Exception as error:
                messages[name] = f"{type(error).__name__}: {error}"
    return messages


def _tests(suite: type[Suite]) -> Iterator[tuple[str, Callable[..., None], tuple[Any, ...]]]:
    """Name, method and arguments of every test, as pytest would have them."""
    for method in (name for name in dir(suite) if name.startswith("test_")):
        test = getattr(suite(), method)
        if test is None:
            continue
        arguments = inspect.signature(test).parameters
        for values in itertools.product(*(suite.cases[argument] for argument in arguments)):
            labels = "-".join(label(value) for value in values)
            yield f"{method}[{labels}]" if labels else method, test, values


def label(value: object) -> str:
    """A value in the name of a test: ``(1, -1)`` is ``+-``."""
    if isinstance(value, Symmetry | Setting | str):
        return str(value)
    if isinstance(value, CliffordAlgebra):
        return label(value.metric) + " tensors" * value.symmetric
    if isinstance(value, tuple) and value and set(value) <= {1, -1}:
        return "".join("+" if sign > 0 else "-" for sign in value)
    return str(value).removeprefix("torch.")


# --- what to test with ----------------------------------------------------------------------------


def symmetries(
    metrics: Sequence[Metric | CliffordAlgebra],
    kinds: Sequence[str] | None,
    groups: Sequence[str] = ("O",),
) -> list[Symmetry]:
    """All kinds of transformation of the groups that exist in each space."""
    cases = []
    for metric, group in itertools.product(metrics, groups):
        algebra = metric if isinstance(metric, CliffordAlgebra) else CliffordAlgebra(metric)
        if group_exists(algebra, group):
            exist = set(algebra.kinds()) - ({"reflection"} if "S" in group else set())
            if algebra.dim == 1:  # O(1) has one element beside the identity
                exist.discard("any")
            wanted = algebra.kinds() if kinds is None else kinds
            cases += [Symmetry(algebra, kind, group) for kind in wanted if kind in exist]
    if not cases:
        raise ValueError(f"nothing to test: no {kinds} of {groups} in the metrics {metrics}")
    return cases


def group_exists(algebra: CliffordAlgebra, group: str) -> bool:
    """Whether the algebra has a time axis, if the group needs one."""
    try:
        check_group(algebra, group)
    except ValueError:
        check_group(algebra, group.removesuffix("+"))  # what is no group at all stays an error
        return False
    return True


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """A seed for the global generator, which is as before afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def noise(*shape: int, seed: int = 1) -> Tensor:
    """Reproducible normal noise in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def settings(cases: Sequence[Symmetry]) -> list[Setting]:
    """The spaces and groups of the symmetries."""
    return list(dict.fromkeys(Setting(case.algebra, case.group) for case in cases))


def first_setting(cases: Sequence[Symmetry]) -> Setting:
    """For tests that do not depend on it: the first with several axes, if there is one."""
    return next((s for s in settings(cases) if s.algebra.dim > 1), settings(cases)[0])


class Leaky(nn.Module):
    """The control: a module whose output leaks from each blade into the next one.

    Not equivariant in any signature, unless the module returns zeros only.

    Args:
        module: the one under test.
        factor: multiplies its output, e.g. by numbers that depend on the position.
    """

    def __init__(self, module: nn.Module, factor: Tensor | float = 1.0):
        super().__init__()
        self.module, self.factor = module, factor

    def forward(self, *inputs: Any) -> Tensor:
        return leaked(self.module(*inputs) * self.factor)


def leaked(y: Tensor) -> Tensor:
    """Multivectors of which each blade leaks into the next one."""
    return y + 0.5 * y.roll(1, -1)


# --- checks ---------------------------------------------------------------------------------------


def check(condition: bool, message: str) -> None:
    """Raise ``AssertionError`` with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def check_close(actual: Tensor, expected: Tensor, tol: float, claim: str) -> None:
    """Raise ``AssertionError`` unless the relative error is at most ``tol``."""
    if actual.shape != expected.shape:
        raise AssertionError(f"{claim}: shape {tuple(actual.shape)}, not {tuple(expected.shape)}")
    error = relative_error(actual, expected)
    check(error <= tol, f"{claim}: the relative error is {error:.1e}, allowed are {tol:.1e}")


def check_control(errors: Mapping[str, float], tol: float) -> None:
    """Raise ``AssertionError`` if the tests would not have noticed a broken copy."""
    unseen = [name for name, error in errors.items() if not error > 1000 * tol]
    check(
        not unseen,
        f"the control failed: a copy that is not symmetric passes the test of {', '.join(unseen)}, "
        f"so the test says nothing; is the output zero? Errors of the broken copy: {dict(errors)}",
    )
