"""One dialect for all commands: names of options, examples, errors that suggest, completion."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cscnn._util.parser import option_names
from cscnn._util.versions import PACKAGES
from cscnn.cli import COMMANDS, GROUPS, TRAIN, main, parser_of, split

pytest.importorskip("h5py")
ORDINARY = [name for name in COMMANDS if name != TRAIN]
#: Options that mean the same everywhere, and their short forms in `cscnn train`.
SHARED = ("--out", "--overwrite", "--device", "--batch", "--quiet", "--workers", "--seed")
#: What others call them.
SYNONYMS = {
    "--output", "--output-dir", "--dest", "--folder", "--force", "--clobber", "--gpu", "--cuda",
    "--batch-size", "--jobs", "--processes", "--num-workers", "--silent", "--no-progress", "-o",
    "-f", "-j", "-q", "-n", "--random-seed", "--repo-id", "--licence",
}  # fmt: skip
#: Commands that take more than ten seconds for usual sizes.
LONG = {
    "generate", TRAIN, "evaluate", "predict", "export", "report", "plot", "data check",
    "data merge", "data export", "tune",
}  # fmt: skip


def parser_for(name):
    if name != TRAIN:
        return parser_of(name)
    pytest.importorskip("jsonargparse")
    from cscnn.forecasting.training.command import make_parser

    return make_parser()


def help_of(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([*name.split(), "--help"])
    assert end.value.code == 0
    return capsys.readouterr().out


def error_of(capsys, *words):
    """The one line that a command line ends with."""
    try:
        code = main(list(words))
    except SystemExit as end:
        code = end.code
    assert code in (1, 2)
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


# --- the dialect ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_a_purpose_and_examples_that_parse(name, capsys):
    if name == TRAIN:
        pytest.importorskip("jsonargparse")
    text = help_of(name, capsys)
    description = text.split("\n\n")[1]
    assert re.match(r"[A-Z][^.]+\.", description.replace("\n", " ")), description
    _, _, after = text.partition("\nexamples:\n")
    examples = [line.strip() for line in after.replace("\\\n", " ").splitlines()]
    assert len(examples) >= 2
    for example in examples:
        program, *words = shlex.split(example.partition(" > ")[0], comments=True)
        assert program == "cscnn"
        command, rest = split(words)
        assert command == name
        if name != TRAIN:
            assert parser_of(name).parse_args(rest)
        elif "--resume" not in rest:
            from cscnn.forecasting.training.command import parse

            assert parse(rest)[0].out


@pytest.mark.parametrize("name", COMMANDS)
def test_options_have_their_usual_names(name):
    options = set(option_names(parser_for(name)))
    assert not options & SYNONYMS
    if "--out" in options:
        assert "--overwrite" in options
    assert ("--quiet" in options) == (name in LONG)


def test_shared_options_are_the_same_everywhere():
    """Same type, number of values and place in the result; only texts and defaults differ."""
    forms = {}
    for name in ORDINARY:
        for action in parser_of(name)._actions:
            for option in action.option_strings:
                form = (action.dest, action.type, action.nargs, type(action))
                forms.setdefault(option, {}).setdefault(form, []).append(name)
    differing = {option: list(f.values()) for option, f in forms.items() if len(f) > 1}
    assert differing == {"--split": [["generate"], ["evaluate"]]}  # counts of it, or which one
    assert {option for option in SHARED if option in forms} == set(SHARED)


def test_train_knows_the_shared_options():
    pytest.importorskip("jsonargparse")
    from cscnn.forecasting.training.command import SHORT, parse

    options = {*option_names(parser_for(TRAIN)), *(f"--{name}" for name in SHORT)}
    assert set(SHARED) <= options
    words = "--out runs/x --seed 3 --batch 6 --workers=2 --device cpu --quiet --overwrite"
    config, extra = parse(words.split())
    assert (config.out, config.seed, config.data.batch, config.data.workers) == ("runs/x", 3, 6, 2)
    assert config.trainer.accelerator == "cpu"
    assert not config.trainer.progress
    assert extra["overwrite"]


def test_a_run_is_removed_and_nothing_else(tmp_path):
    from cscnn.forecasting.runs import EVALUATED, TRAINED, remove_run

    for name in (*TRAINED, *EVALUATED, "notes.txt"):
        (tmp_path / name).write_text("")
    remove_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    remove_run(tmp_path / "nowhere")


def test_groups_list_their_commands(capsys):
    for group in GROUPS:
        text = help_of(group, capsys)
        for name, command in COMMANDS.items():
            if name.startswith(f"{group} "):
                assert re.search(rf"^    {name.split()[1]}\s", text, re.MULTILINE)
                assert command.text[:30] in text


def test_the_page_has_every_command():
    page = (Path(__file__).parents[1] / "docs" / "api" / "cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- help: (\S.*) -->", page)) == {*COMMANDS, *GROUPS}


# --- start ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--help", "data --help", "trian"])
def test_the_overview_imports_nothing_large(option):
    code = (
        "import sys\nfrom cscnn.cli import main\n"
        f"try:\n    main({option.split()!r})\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('torch', 'numpy', 'h5py', 'jsonargparse') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version_says_what_a_report_needs(capsys):
    import torch

    import cscnn

    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code in (0, None)
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert lines["cscnn"] == cscnn.__version__
    assert lines["torch"] == torch.__version__
    assert set(lines) == {"cscnn", "python", *PACKAGES, "system", "accelerator"}
    if not torch.accelerator.is_available():
        assert lines["accelerator"] == "none"


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("trian", "unknown command 'trian': did you mean train?"),
        ("data inof x", "unknown command 'inof': did you mean info?"),
        ("hub", "a command must be given: one of save, push, zoo"),
        ("--verison", "unknown option --verison: did you mean --version?"),
        ("evaluate runs/x --step 3", "unknown option --step: did you mean --steps?"),
        ("evaluate runs/x --steps=1 --ovewrite", "did you mean --overwrite?"),
        ("evaluate runs/x --steps many", "--steps takes an integer, got 'many'"),
        ("evaluate", "RUN must be given"),
        ("predict runs/x", "FILE, --out must be given"),
        ("evaluate runs/x --steps", "--steps needs a value"),
        ("info more", "do not know what to do with more"),
        ("data info x --json=3", "--json takes no value"),
        ("completion bsh", "unknown shell 'bsh': did you mean bash?"),
        ("generate navier_stoks --out x", "unknown task 'navier_stoks': did you mean navier"),
        ("generate maxwell3d --preset smal --out x", "'smal' of maxwell3d: did you mean small?"),
        ("generate maxwell3d --set frame=3 --out x", "'frame' of maxwell3d: did you mean frames?"),
        ("evaluate zoo:navier_stoks", "'navier_stoks': did you mean navier_stokes?"),
    ],
)
def test_errors_suggest(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in error_of(capsys, *words.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--trainer.epoch 3", "unknown option trainer.epoch: did you mean trainer.epochs?"),
        ("--trainer.epochs x", "trainer.epochs takes an integer, got x"),
        ("--trainer.epochs", "--trainer.epochs needs a value"),
        ("--data.train", "--data.train needs a value"),
        ("--optimizer.lr fast", "optimizer.lr takes a number, got fast"),
        ("--trainer.compile maybe", "trainer.compile takes true or false, got maybe"),
        ("--model.options [1]", "model.options takes options by name, such as {blocks: 4}, got"),
        ("--data.stride [1,a]", "data.stride takes an integer or a list, such as [1, 4], got [1,"),
        ("--model.params {}", "model.params takes an integer or null, got {}"),
        ("--trainer 3", "trainer takes options of its own, such as --trainer.epochs"),
        ("--zzz 3", "unknown option zzz: cscnn train --help lists all"),
        ("runs/smoke", "do not know what to do with runs/smoke: options begin with --"),
        ("--preset navier", "did you mean navier_stokes_paper or navier_stokes_small?"),
        ("--preset navier_stokes_smal", "did you mean navier_stokes_small?"),
        ("--batch x", "data.batch takes an integer, got x"),
    ],
)
def test_errors_of_training_are_in_our_words(words, message, capsys):
    pytest.importorskip("jsonargparse")
    line = error_of(capsys, "train", *words.split())
    assert message in line
    assert not re.search(r"Parser key|<class|Union|NoneType|[Kk]ey '|Given value|argument ", line)


def test_errors_of_the_library_suggest(tmp_path):
    """Networks, options, kernels, fields, splits and choices."""
    from cscnn._util.checks import check_choice
    from cscnn.data.simulators import create
    from cscnn.forecasting import Field, Task
    from cscnn.forecasting.forecaster import Forecaster
    from cscnn.kernels import Complete  # noqa: F401
    from cscnn.viz.fields import choose

    task = Task("waves", (1, 1), (Field("height", 0), Field("velocity", 1)))
    for options, meant in (
        ({"name": "cs_resnt"}, "cs_resnet"),
        ({"name": "cs_resnet", "widht": 3}, "width"),
        ({"name": "cs_resnet", "width": 2, "kernel": "complet"}, "complete"),
        ({"name": "cs_resnet", "width": 2, "constraints": {"velocty": "divergence_free"}}, "vel"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"did you mean {meant}"):
            Forecaster.build(options.pop("name"), task, **options)
    header = create("navier_stokes", "small").header()
    with pytest.raises(ValueError, match="did you mean smoke"):
        choose(header, ["smok"])
    with pytest.raises(ValueError, match="did you mean velocity"):
        header.quantity("velocities")
    with pytest.raises(ValueError, match=r"one of cosine, constant, got 'cosin': did you mean"):
        check_choice("schedule", "cosin", ("cosine", "constant"))


# --- completion -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """Shell -> a file with its script."""
    pytest.importorskip("jsonargparse")
    from cscnn._util.completion import SHELLS
    from cscnn.cli import _program

    program, folder = _program(), tmp_path_factory.mktemp("scripts")
    files = {}
    for shell, make in SHELLS.items():
        files[shell] = folder / f"cscnn.{shell}"
        files[shell].write_text(make(program))
    return files


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cscnn tr", {"train"}),
        ("cscnn e", {"evaluate", "export"}),
        ("cscnn data ", {"info", "check", "merge", "export"}),
        ("cscnn evaluate --st", {"--steps", "--stride"}),
        ("cscnn evaluate runs/x --overw", {"--overwrite"}),
        ("cscnn data merge --o", {"--out", "--overwrite"}),
        ("cscnn train --trainer.ep", {"--trainer.epochs"}),
        ("cscnn train --devi", {"--device", "--devices"}),
        ("cscnn train --preset navier", {"navier_stokes_paper", "navier_stokes_small"}),
        ("cscnn train --model.name cs_r", {"cs_resnet"}),
        ("cscnn generate sine", {"sine_gordon"}),
        ("cscnn evaluate so", set()),  # then bash itself completes names of files
        ("cscnn completion z", {"zsh"}),
    ],
)
def test_bash_completes(scripts, line, expected):
    """As when <TAB> is pressed: the words, the number of the last, and then the function."""
    words = line.split(" ")
    program = (
        f"source {shlex.quote(str(scripts['bash']))}\n"
        f"COMP_WORDS=({' '.join(shlex.quote(word) for word in words)})\n"
        f"COMP_CWORD={len(words) - 1}\n"
        "_cscnn\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
        "complete -p cscnn"
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    *replies, registered = done.stdout.splitlines()
    assert {reply for reply in replies if reply} == expected
    assert registered.endswith("-F _cscnn cscnn")
    assert not done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command_and_option(scripts, shell):
    text = scripts[shell].read_text()
    for name in ORDINARY:
        assert name.split()[-1] in text
        for option in option_names(parser_of(name)):
            if option.startswith("--"):
                assert (option if shell == "zsh" else f"-l {option[2:]} ") in text
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", str(scripts[shell])], check=True)


def test_completion_prints_a_script(scripts, capsys):
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == scripts["bash"].read_text()
