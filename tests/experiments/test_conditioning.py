"""Conditional kernels against plain global context: a study of seconds."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.kernels import Complete
from cscnn.networks import CSResNet, Grid
from cscnn.testing import conformance
from experiments.conditioning import __main__ as command
from experiments.conditioning.networks import ContextResNet, add_networks
from experiments.conditioning.page import write_page
from experiments.conditioning.presets import CONTENDERS, KEYS, RECIPES, SETTINGS
from experiments.rollouts.plan import Contender
from experiments.rollouts.results import Results, Study
from experiments.rollouts.runner import open_results, run
from experiments.rollouts.timing import Speeds
from tests.experiments.test_rollouts import STUDY, TASK

TORUS = Grid(padding_mode="circular")
KERNEL = Complete(hidden_dim=4)
#: So many that each network can have about as many.
PARAMETERS = 4000


def context_resnet(algebra, c_in, c_out):
    return ContextResNet(algebra, c_in, c_out, 2, 1, kernel_size=3, kernel=KERNEL, grid=TORUS)


TestContextResNet = conformance.network(context_resnet, metrics=((1, -1),), compiles=False)


def test_context_comes_from_everywhere():
    """Without it the corner does not see the opposite one."""
    x = torch.randn(1, 1, 12, 12, 4)
    far = x.clone()
    far[:, :, 11, 11] += 1
    for network, sees in ((ContextResNet, True), (CSResNet, False)):
        net = network(CliffordAlgebra((1, 1)), 1, 1, 2, 1, kernel_size=3, kernel=KERNEL)
        assert ((net(far) - net(x))[0, 0, 0, 0].abs().max() > 1e-6) == sees


@pytest.mark.usefixtures("fresh_registry")
def test_presets_are_possible(tmp_path: Path) -> None:
    add_networks()
    assert {key for keys in KEYS.values() for key in keys} == {*CONTENDERS}
    speeds = Speeds({}, {f"{TASK}/{key}/change": 1.0 for key in CONTENDERS})
    results = Results(Study(SETTINGS, CONTENDERS, RECIPES), tmp_path, speeds)
    for key in CONTENDERS:
        results.trial(TASK, key, "change", 1e-3).config(tmp_path, tmp_path).check()


def test_bad_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command.main(["--only", "nonsense", "--out", str(tmp_path / "x")]) != 0
    assert "unknown network 'nonsense'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_registry")
def test_study_and_page(tmp_path: Path) -> None:
    small = {"blocks": 1, "kernel_size": 3}
    contenders = {
        key: Contender(c.label, c.name, {**c.options, **small}) for key, c in CONTENDERS.items()
    }
    settings = {TASK: replace(STUDY.settings[TASK], params=PARAMETERS)}
    keys = KEYS["complete"]
    chosen = {key: contenders[key] for key in keys}
    study = Study(settings, chosen, RECIPES, "conditioning", add_networks)
    results = open_results(study, tmp_path, quiet=True)
    run(results, TASK, ("levers", "time"), quiet=True)
    assert not results.missing(TASK, ("levers", "time"))
    records = results.finished(TASK, "time")
    assert {(r.contender, r.seed) for r in records} == {(k, s) for k in keys for s in (0, 1)}
    assert all(abs(record.parameters - PARAMETERS) <= PARAMETERS / 10 for record in records)
    results.study = Study(settings, contenders, RECIPES, "conditioning", add_networks)
    page = write_page(results, tmp_path / "docs").read_text(encoding="utf-8")
    for text in ("global context", "ms |", "conditional against complete_context", "## navier_"):
        assert text in page
    assert "implicit kernels" not in page  # of which there are no records
    assert (tmp_path / "docs/figures/conditioning_navier_stokes_complete.png").is_file()
    known = open_results(study, tmp_path / "again", tmp_path / "docs", quiet=True)
    assert not known.missing(TASK, ("levers", "time"))
