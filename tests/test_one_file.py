"""A kernel, a network or a data set is one new file: nothing else has to know of it.

For losses see tests/forecasting/test_losses.py and tests/forecasting/training/test_options.py, for
metrics tests/forecasting/evaluation/test_evaluate.py.
"""

import sys
from importlib import import_module

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn._util.modules import named_classes
from cscnn.data.simulators import SIMULATORS, ExactSimulator, Simulator
from cscnn.kernels import KernelChoice
from cscnn.kernels.choices import CHOICES
from cscnn.networks import FieldType, build, load, names, save

NETWORK = """
import torch
from torch import nn
from cscnn.networks.entries import register

@register("mine")
class Mine(nn.Module):
    def __init__(self, algebra, c_in, c_out, width=1):
        super().__init__()
        self.scale = nn.Parameter(2.0 * torch.ones(width))

    def forward(self, x):
        return x * self.scale.sum()
"""

KERNEL = """
from dataclasses import dataclass
from typing import ClassVar
from cscnn.kernels.base import KernelChoice

@dataclass(frozen=True)
class Mine(KernelChoice):
    name: ClassVar[str] = "mine"
"""

SIMULATOR = """
from dataclasses import dataclass
from typing import ClassVar
from cscnn.data.simulators.base import Simulator

@dataclass(frozen=True)
class Mine(Simulator):
    name: ClassVar[str] = "mine"
"""


@pytest.fixture
def new_file(tmp_path, monkeypatch, fresh_registry):
    """Adds a file to a folder of the package, as far as imports can tell."""

    def add(package, source):
        (tmp_path / "mine.py").write_text(source)
        module = import_module(package)
        monkeypatch.setattr(module, "__path__", [*module.__path__, str(tmp_path)])
        monkeypatch.setattr(module, "mine", None, raising=False)
        monkeypatch.setitem(sys.modules, f"{package}.mine", None)
        del sys.modules[f"{package}.mine"]

    return add


@pytest.mark.parametrize("package", ["cscnn.networks", "cscnn.networks.baselines"])
def test_a_network_is_one_file(package, new_file, tmp_path):
    assert "mine" not in names()
    new_file(package, NETWORK)
    assert "mine" in names()
    full = FieldType.full(CliffordAlgebra((1, 1)), 1)
    network = build("mine", full, full, width=3)
    x = full.noise((1, 4, 4))
    assert torch.equal(network(x), 6 * x)
    pytest.importorskip("safetensors")
    save(tmp_path / "net", network)
    assert torch.equal(load(tmp_path / "net")(x), 6 * x)


@pytest.mark.parametrize(
    ("package", "base", "table", "source"),
    [
        ("cscnn.kernels", KernelChoice, CHOICES, KERNEL),
        ("cscnn.data.simulators", Simulator, SIMULATORS, SIMULATOR),
    ],
)
def test_a_kernel_or_a_simulator_is_one_file(package, base, table, source, new_file):
    assert named_classes(package, base) == table
    new_file(package, source)
    more = named_classes(package, base)
    assert more.keys() - table.keys() == {"mine"}
    assert issubclass(more["mine"], base)


def test_names_of_kernels_and_simulators_are_given_once(new_file):
    new_file("cscnn.kernels", KERNEL.replace('"mine"', '"complete"'))
    with pytest.raises(ValueError, match="KernelChoice named 'complete' already"):
        named_classes("cscnn.kernels", KernelChoice)


def test_what_has_no_name_is_no_data_set():
    assert list(SIMULATORS) == sorted(SIMULATORS)
    assert not {Simulator, ExactSimulator} & {*SIMULATORS.values()}
