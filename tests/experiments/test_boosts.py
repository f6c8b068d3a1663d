"""Networks trained at rest, seen in motion: a study of seconds; verdicts on made-up records."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cscnn.data.simulators.sine_gordon import SineGordon
from cscnn.forecasting import Forecaster, Task
from experiments.boosts import __main__ as command
from experiments.boosts import records
from experiments.boosts.figures import collision
from experiments.boosts.measure import Persistence
from experiments.boosts.page import score, write_page
from experiments.boosts.plan import Model, Setting
from experiments.boosts.records import Record
from experiments.boosts.results import Results, beside
from experiments.boosts.runner import run
from experiments.boosts.verdicts import verdicts

SETTING = Setting(
    "sine_gordon",
    "sine_gordon",
    spacing=0.4,
    frames=12,
    grid=(16,),
    frames_in=8,
    frames_out=2,
    margin=2,
    splits={"train": 4, "valid": 2, "test": 2},
    params=700,
    network={"blocks": 1},
    steps=2,
    rates=(1e-3, 1e-2),
    models=("resnet", "differential"),
    batch=2,
    paddings=("extrapolate", "zeros"),
    refined=("differential",),
    refinements=(2,),
    displacements=(2,),
    prolongations=(2,),
    seeds=1,
    checks=1,
    rapidities=(0.0, 0.5),
    observed=2,
)
MODELS = {
    "resnet": Model("ResNet", "resnet", {"kernel_size": 3}),
    "differential": Model(
        "differential",
        "cs_resnet",
        {"kernel_size": 3},
        {
            f"{a}": {"kernel": {"name": "differential", "order": 2}, "activation": a}
            for a in ("gate", "product")
        },
    ),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A tiny study, run to its end."""
    results = Results({"sine_gordon": SETTING}, MODELS, tmp_path_factory.mktemp("boosts"))
    run(results, "sine_gordon", quiet=True)
    return results


@pytest.mark.slow
def test_every_part_has_its_records(finished: Results) -> None:
    task = "sine_gordon"
    assert not finished.missing(task)
    assert not finished.unfinished(task)
    assert {r.model for r in finished.finished(task, "models")} == {"resnet", "differential"}
    (finer,) = finished.finished(task, "resolution")
    (later,) = finished.finished(task, "displacement")
    (longer,) = finished.finished(task, "steps")
    assert (longer.prolongation, later.prolongation) == (2, 1)
    assert "-n4-" in longer.name
    assert longer.spacing == 0.4
    assert (finer.spacing, finer.displacement) == pytest.approx((0.2, 0.8))
    assert (later.spacing, later.displacement) == pytest.approx((0.4, 1.6))
    for record in finished.all_records():
        assert len(record.errors) == len(record.persistence) == 2
        assert math.isfinite(sum(record.errors))
        assert abs(record.parameters - 700) <= 21
        assert record.seconds > 0
        assert {"torch", "python", "cscnn", "processor"} <= {*record.machine}
    assert not list((finished.out / "runs").iterdir())  # records have all that is wanted


@pytest.mark.slow
def test_options_are_chosen_at_rest(finished: Results) -> None:
    trials, choice = finished.search("sine_gordon", "resnet")
    assert {(t.padding, t.rate) for t in trials} >= {("extrapolate", 1e-2), ("zeros", 1e-2)}
    valid = {(t.variant, t.padding, t.rate): finished.find(t).valid for t in trials}  # type: ignore[union-attr]
    assert choice == min(valid, key=lambda key: valid[key] or math.inf)
    trials, choice = finished.search("sine_gordon", "differential")
    assert choice is not None
    assert {t.variant for t in trials} == {"gate", "product"}
    other = ({"gate", "product"} - {choice[0]}).pop()
    assert {t.padding for t in trials if t.variant == other} == {"extrapolate"}  # not pursued
    assert beside((1.0, 2.0, 3.0), 2.0) == (1.0, 3.0)
    assert beside((1.0, 2.0, 3.0), 3.0) == (2.0,)


@pytest.mark.slow
def test_what_is_done_is_not_run_again(
    finished: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_trial(*_: object) -> Record:
        raise AssertionError("must not be called")

    monkeypatch.setattr("experiments.boosts.runner.run_trial", run_trial)
    run(finished, "sine_gordon", quiet=True)
    known = Results(finished.settings, MODELS, tmp_path, finished.all_records())
    run(known, "sine_gordon", quiet=True)
    longer = {"sine_gordon": replace(SETTING, steps=4)}
    with pytest.raises(AssertionError, match="must not be called"):
        run(Results(longer, MODELS, finished.out), "sine_gordon", quiet=True)


@pytest.mark.slow
def test_the_page_has_the_numbers_and_says_what_is_missing(
    finished: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.boosts.page.animate_collision", lambda path: path)
    text = write_page(finished, tmp_path).read_text(encoding="utf-8")
    record = finished.finished("sine_gordon", "models")[0]
    assert f"| ResNet | {record.error(0.0):.3f} | {record.error(0.5):.3f} |" in text
    assert "Not finished" not in text
    assert (tmp_path / "figures" / "boosts.png").stat().st_size > 5000
    assert len(records.load(tmp_path / "boosts.json")) == len(finished.all_records())
    more = {"sine_gordon": replace(SETTING, seeds=2)}
    text = write_page(Results(more, MODELS, finished.out), tmp_path).read_text(encoding="utf-8")
    assert all(len(line) <= 100 or line.startswith(("|", "!")) for line in text.split("\n"))
    missing = "Not finished: 2 trainings of the part models; 1 trainings of the part res"
    assert missing in " ".join(text.split())


def test_persistence_repeats_the_last_known_frame() -> None:
    simulator = SineGordon(frames=8, grid=(12,), spacing=0.2)
    task = Task.from_header(simulator.header(), frames_in=6, frames_out=2)
    frames = {f.name: torch.randn(1, 6, 12, 1 + f.grade) for f in task.fields}
    last = Forecaster(Persistence(task), task)(frames)
    for name, x in frames.items():
        assert torch.equal(last[name], x[:, -1:].expand(-1, 2, -1, -1))


def test_solitons_of_the_film_meet_in_the_middle() -> None:
    x = torch.linspace(-8, 8, 161, dtype=torch.float64)
    distances = []
    for t in (-8.0, -5.0, -2.0):
        phase, _ = collision().field(torch.stack([torch.full_like(x, t), x], -1))
        density = 1 - phase.cos()
        assert torch.allclose(density, density.flip(0), atol=1e-9)
        assert density.max() > 1.9
        distances.append(float(x[density.argmax()].abs()))
    assert distances == pytest.approx([4.4, 2.9, 1.3], abs=0.3)  # at half the speed of light


# --- verdicts -------------------------------------------------------------------------------------


def record(model: str, errors: tuple[float, ...], seed: int = 0, spacing: float = 0.2) -> Record:
    """Of a training that was not run."""
    return Record(
        f"{model}-{spacing}-{seed}", "sine_gordon", model, {}, spacing=spacing, displacement=0.8,
        variant="usual", padding="zeros", rate=1e-3, seed=seed, machine={},
        rapidities=(0.0, 0.5, 0.75),
        errors=errors,
    )  # fmt: skip


OTHERS = [
    record("complete", (0.05, 0.3, 0.4)),
    record("resnet", (0.1, 0.26, 0.4)),
    record("differential", (0.04, 0.048, 0.09), spacing=0.1),
]


def judged(ours: Record, task: str = "sine_gordon", seeds: int = 1) -> list[str]:
    """All targets of solitons but those of resolution."""
    return [v.verdict for v in verdicts(task, [*OTHERS, ours], seeds)][:4]


def test_targets_of_solitons() -> None:
    met = "met (all seeds)"
    assert judged(record("differential", (0.04, 0.05, 0.09))) == [met] * 4
    missed = "missed (met by 0 of 1 seeds)"
    assert judged(record("differential", (0.051, 0.05, 0.09))) == [missed, met, met, met]
    assert judged(record("differential", (0.04, 0.053, 0.09))) == [met, missed, met, met]
    assert judged(record("differential", (0.02, 0.05, 0.09))) == [met, met, missed, met]
    assert judged(record("differential", ())) == [missed] * 3 + [met]  # it diverged


def test_targets_of_resolution() -> None:
    """The excess in a moving frame shall fall at second order; complete kernels are told beside."""

    def rows(model: str, excesses: dict[float, float]) -> list[Record]:
        errors = {h: (0.04, 0.04 + excess, 0.2) for h, excess in excesses.items()}
        return [record(model, e, spacing=h) for h, e in errors.items()]

    records = rows("differential", {0.4: 0.04, 0.2: 0.009, 0.1: 0.003})
    records += rows("complete", {0.4: 0.2, 0.2: 0.3, 0.1: 0.3})
    first, second = verdicts("sine_gordon", records, 1)[-2:]
    assert first.verdict == "met (all seeds)"
    assert first.numbers == "0.009 ≤ 0.01; complete kernels: 1.5 of it on average"
    assert second.verdict == "missed (met by 0 of 1 seeds)"
    assert second.numbers.startswith("0.003 > 0.00225; complete kernels: 1 of it")


def test_verdicts_are_for_every_seed_and_say_which_are_missing() -> None:
    ours = [
        record("differential", (0.04, 0.05, 0.09)),
        record("differential", (0.02, 0.05, 0.09), 1),
    ]
    both = verdicts("sine_gordon", [*OTHERS, *ours], 3)
    assert both[0].verdict == "met (1 of 3 seeds)"  # there is nothing to compare the second with
    assert both[2].verdict == "missed (met by 1 of 2 seeds)"
    assert both[2].numbers == "1.25 ≤ 2, 2.5 > 2"
    assert {v.verdict for v in verdicts("sine_gordon", [], 3)} == {"no records yet"}


def test_targets_of_charges() -> None:
    others = [record("complete", (0.03, 0.37, 0.47), spacing=1.0)]
    ours = record("differential", (0.015, 0.017, 0.023), spacing=1.0)
    assert [v.verdict for v in verdicts("charges", [*others, ours], 1)] == ["met (all seeds)"] * 5
    worse = replace(ours, errors=(0.015, 0.021, 0.048))
    assert [v.verdict[:3] for v in verdicts("charges", [*others, worse], 1)] == [
        "met", "mis", "met", "mis", "mis",
    ]  # fmt: skip


def test_longer_trainings_are_judged_by_themselves() -> None:
    short = [
        record("complete", (0.03, 0.37, 0.47), spacing=1.0),
        record("differential", (0.04, 0.05, 0.06), spacing=1.0),
    ]
    longer = [replace(r, prolongation=3, errors=(0.02, 0.3, 0.4)) for r in short[:1]]
    longer += [replace(short[1], prolongation=3, errors=(0.01, 0.012, 0.015))]
    found = verdicts("charges", [*short, *longer], 1)
    assert len(found) == 10
    assert (found[0].verdict, found[5].verdict) == (
        "missed (met by 0 of 1 seeds)",
        "met (all seeds)",
    )
    assert found[5].text == found[0].text + ", 3 × the steps"


def test_scores_of_seeds() -> None:
    assert score([0.1, 0.2]) == "0.150 ± 0.050"
    assert score([0.1, math.inf]) == "0.100 (1 of 2 diverged)"
    assert score([math.inf]) == "diverged"


def test_old_records_are_told(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"format": 0}')
    with pytest.raises(ValueError, match="the format of records must be 1, got 0"):
        records.load(tmp_path / "old.json")


def test_the_command_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["waves"]) == 1
    assert "unknown task 'waves': choose from sine_gordon" in capsys.readouterr().err
    assert command.main(["--known", "nowhere.json"]) == 1
    assert "there is no file nowhere.json" in capsys.readouterr().err
