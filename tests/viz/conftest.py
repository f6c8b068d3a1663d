import shutil

import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Two runs of each task; the second one forecasts better in the plane only."""
    from tests.viz.report_runs import TASKS, make_run  # needs packages that tests may skip without

    root = tmp_path_factory.mktemp("runs")
    runs = {}
    for name, task in TASKS.items():
        quality = 0.8 if name == "fluid" else 3
        runs[name] = [
            make_run(root / name / "steerable", task(), "cs_resnet"),
            make_run(root / name / "plain", task(), "resnet", quality=quality, seed=1),
        ]
    return runs


@pytest.fixture
def copy(folders, tmp_path):
    """The two runs of the plane, to be spoilt."""
    return [shutil.copytree(f, tmp_path / "runs" / f.name) for f in folders["fluid"]]
