"""Tests that every module has to pass, whatever it computes: dtypes, gradients, copies, files."""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest import SkipTest

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.testing.conformance.suite import Suite, check, check_close, noise, seeded

#: What `ModuleSuite` needs in `Suite.cases`.
DTYPES = (torch.float32, torch.float64)


def optional_tests(compiles: bool, gradcheck: bool = True) -> list[str]:
    """Those of the tests that are costly or not for everybody which are not wanted."""
    return ["test_compile"] * (not compiles) + ["test_gradcheck"] * (not gradcheck)


class ModuleSuite(Suite):
    """Base of the suites of modules.

    Attributes:
        algebra: of the tests whose outcome does not depend on it.
        jitter: standard deviation of noise added to all parameters, since a symmetry may hold by
            accident at their initial values.
        idle: names of parameters that may be without effect, with wildcards.
    """

    algebra: CliffordAlgebra
    jitter: float
    idle: Sequence[str]

    def make(self, algebra: CliffordAlgebra, **choice: Any) -> nn.Module:
        """A new module, for suites of several kinds of them with a choice."""
        raise NotImplementedError

    def inputs(self, algebra: CliffordAlgebra, dtype: torch.dtype) -> tuple[Any, ...]:
        """Arguments for a call of the module."""
        raise NotImplementedError

    def empty_inputs(self, algebra: CliffordAlgebra) -> tuple[tuple[Any, ...], int]:
        """Arguments without any points or batch elements, and the axis of the output they are."""
        raise NotImplementedError

    def module(self, algebra: CliffordAlgebra, seed: int = 0, **choice: Any) -> nn.Module:
        """A module in eval mode, in float64, with parameters away from special values."""
        with seeded(seed):
            module = self.make(algebra, **choice)
            check(isinstance(module, nn.Module), f"expected an nn.Module, got {module!r}")
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.add_(self.jitter * torch.randn_like(parameter))
        return module.double().eval()

    def test_dtype(self, dtype: torch.dtype) -> None:
        """The output has the dtype of the input, and single precision is nearly double."""
        module = self.module(self.algebra)
        expected = module(*self.inputs(self.algebra, torch.float64))
        y = module.to(dtype)(*self.inputs(self.algebra, dtype))
        check(y.dtype == dtype, f"the output for {dtype} is {y.dtype}")
        check_close(y.double(), expected.double(), 1e-3, f"{dtype} differs from float64")

    def test_autocast(self) -> None:
        """Under autocast to bfloat16 it runs, and returns finite floating values."""
        module = self.module(self.algebra).float()
        inputs = self.inputs(self.algebra, torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            y = module(*inputs)
        check(y.dtype in (torch.bfloat16, torch.float32), f"under autocast it returns {y.dtype}")
        check(bool(y.isfinite().all()), "under autocast to bfloat16 there are NaN or infinities")

    def test_gradients_reach_every_parameter(self) -> None:
        """No parameter is without effect but ``idle`` ones, and all gradients are finite."""
        module = self.module(self.algebra).train()
        parameters = {n: p for n, p in module.named_parameters() if p.requires_grad}
        if not parameters:
            return
        y = module(*self.inputs(self.algebra, torch.float64))
        (y * noise(*y.shape, seed=3)).sum().backward()
        gradients = {name: parameter.grad for name, parameter in parameters.items()}
        idle = [name for name, g in gradients.items() if g is None or not g.any()]
        idle = [n for n in idle if not any(fnmatch(n, pattern) for pattern in self.idle)]
        check(not idle, f"no gradient reaches {', '.join(idle)}")
        check_finite_gradients(module)

    def test_empty_input(self) -> None:
        """A batch or set without members gives an output without members, and finite gradients."""
        module = self.module(self.algebra)
        expected = list(module(*self.inputs(self.algebra, torch.float64)).shape)
        inputs, axis = self.empty_inputs(self.algebra)
        expected[axis] = 0
        y = module(*inputs)
        shape = list(y.shape)
        check(shape == expected, f"the output for no input has shape {shape}, not {expected}")
        if y.requires_grad:
            y.sum().backward()
        check_finite_gradients(module)

    def test_copies(self) -> None:
        """A deepcopy and a pickle compute the same."""
        module = self.module(self.algebra)
        inputs = self.inputs(self.algebra, torch.float64)
        y = module(*inputs)
        check_same(copy.deepcopy(module)(*inputs), y, "a deepcopy")
        check_same(pickle.loads(pickle.dumps(module))(*inputs), y, "a pickled copy")

    def test_files(self) -> None:
        """The weights in a safetensors file make a fresh module compute the same."""
        try:
            from safetensors.torch import load_file, save_file
        except ImportError:
            raise SkipTest("safetensors is not installed") from None
        module, other = self.module(self.algebra), self.module(self.algebra, seed=1)
        inputs = self.inputs(self.algebra, torch.float64)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "weights.safetensors"
            save_file({k: v.contiguous() for k, v in module.state_dict().items()}, path)
            other.load_state_dict(load_file(path))
        claim = "a fresh module with the state_dict of another one, which must hold all its state,"
        check_same(other(*inputs), module(*inputs), claim)

    def test_compile(self) -> None:
        """``torch.compile(fullgraph=True)`` changes neither values nor gradients."""
        module = self.module(self.algebra)
        inputs = self.inputs(self.algebra, torch.float64)
        torch.compiler.reset()  # else one function compiled for many modules hits a limit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own
            compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
            actual, expected = (
                _values_and_gradients(m, module, inputs) for m in (compiled, module)
            )
        for (name, a), b in zip(actual.items(), expected.values(), strict=True):
            check_close(a, b, 1e-9, f"compiled, {name} changes")


def check_finite_gradients(module: nn.Module) -> None:
    """Raise ``AssertionError`` if a parameter has NaN or infinities in its gradient."""
    gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
    broken = [n for n, g in gradients.items() if g is not None and not g.isfinite().all()]
    check(not broken, f"gradients with NaN or infinities: {', '.join(broken)}")


def check_same(actual: Tensor, expected: Tensor, claim: str) -> None:
    """Raise ``AssertionError`` unless two outputs are equal up to the last digits."""
    check_close(actual, expected, 1e-12, f"{claim} computes something else")


def _values_and_gradients(
    function: Any, module: nn.Module, inputs: tuple[Any, ...]
) -> dict[str, Tensor]:
    y = function(*inputs)
    parameters = {n: p for n, p in module.named_parameters() if p.requires_grad}
    values = {"the output": y.detach()}
    if parameters:
        gradients = torch.autograd.grad(y.square().sum(), list(parameters.values()))
        names = (f"the gradient of {name}" for name in parameters)
        values.update(zip(names, gradients, strict=True))
    return values
