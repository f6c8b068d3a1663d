"""What surrounds a release: workflows, bounds and pins, the image, the checks of `make dist`."""

import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import cscnn
from tools import check_dist

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
#: Extras with tools of developers; what users install is tested with its oldest versions.
TOOLS = ("dist", "docs", "oracles")


def pins(name: str) -> dict[str, Version]:
    """Package -> version of a file of constraints."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {normal(package): Version(version) for package, version in pairs}


def normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def requirements(*extras: str) -> list[Requirement]:
    """What extras need of other packages, and the package itself if none is named."""
    lists = [PROJECT["optional-dependencies"][extra] for extra in extras]
    texts = [text for group in lists or [PROJECT["dependencies"]] for text in group]
    return [r for r in map(Requirement, texts) if r.name != "cscnn"]


# --- workflows ------------------------------------------------------------------------------------


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    """Every step of a workflow with its job."""
    return [(job, step) for job in workflow["jobs"].values() for step in job["steps"]]


def expanded(text, job):
    """A text once for each value of the one entry of the matrix that it names."""
    match = re.search(r"\$\{\{ matrix\.(\w+) \}\}", text)
    if match is None:
        return [text]
    return [text.replace(match[0], value) for value in job["strategy"]["matrix"][match[1]]]


def test_there_are_workflows():
    assert [path.stem for path in WORKFLOWS] == ["docs", "lint", "publish", "test"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(path):
    called = [
        target
        for job, step in steps(load(path))
        for command in expanded(step.get("run", ""), job)
        for target in re.findall(r"make ([\w-]+)", command)
    ]
    assert called
    assert set(called) <= TARGETS


def test_targets_of_the_matrix_are_seen():
    (job,) = (
        j for j in load(WORKFLOWS[-1])["jobs"].values() if "target" in j["strategy"]["matrix"]
    )
    assert "make test-oldest" in expanded("make ${{ matrix.target }}", job)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_do_little(path):
    """Reading is all, except for jobs that deploy; no secrets; known versions of actions."""
    text, workflow = path.read_text(encoding="utf-8"), load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    assert "secrets" not in re.findall(r"\$\{\{ *(\w+)", text)
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 90
        if job.get("permissions", {}):
            assert job["permissions"]["id-token"] == "write"
            assert job["environment"]["name"] == {"publish": "pypi", "deploy": "github-pages"}[name]
            assert not any("run" in step for step in job["steps"])  # nothing of ours has the token
    for _, step in steps(workflow):
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step.get("uses", "a/b@v1"))
        if "setup-python" in step.get("uses", ""):
            assert step["with"]["cache"] == "pip"


def test_versions_of_python_are_those_of_the_classifiers():
    prefix = "Programming Language :: Python :: "
    listed = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix + "3.")]
    fast = load(WORKFLOWS[-1])["jobs"]["fast"]["strategy"]["matrix"]
    assert fast["python"] == listed
    assert {os.partition("-")[0] for os in fast["os"]} == {"ubuntu", "macos", "windows"}
    assert PROJECT["requires-python"] == f">={listed[0]}"
    for path in WORKFLOWS:
        for _, step in steps(load(path)):
            version = step.get("with", {}).get("python-version", listed[0])
            assert version in (listed[0], "${{ matrix.python }}")


def test_templates_of_issues_parse():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        template = load(path)
        if path.stem != "config":
            assert {"name", "description", "body"} <= set(template), path
    config = load(ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml")
    assert config["contact_links"][0]["url"].startswith(PROJECT["urls"]["Homepage"])


# --- versions -------------------------------------------------------------------------------------


def test_pre_commit_has_the_pinned_ruff():
    (repository,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert Version(repository["rev"]) == pins("constraints.txt")["ruff"]
    assert [hook["id"] for hook in repository["hooks"]] == ["ruff-check", "ruff-format"]


def test_pins_satisfy_all_bounds():
    pinned = pins("constraints.txt")
    for requirement in [*requirements(), *requirements(*PROJECT["optional-dependencies"])]:
        assert pinned[normal(requirement.name)] in requirement.specifier, requirement


def lower_bound(requirement):
    (specifier,) = requirement.specifier
    assert specifier.operator in (">=", "=="), requirement
    return Version(specifier.version)


def same_start(bound, version):
    """Whether a version is the oldest kind that a bound allows: 1.26 and 1.26.0, 3.6 and 3.6.1."""
    return version.release[: len(bound.release)] == bound.release


def test_lower_bounds_are_tested():
    """Of what users install by `make test-oldest`, of tools by everything else."""
    users = [e for e in PROJECT["optional-dependencies"] if e not in TOOLS]
    oldest, pinned = pins("constraints-oldest.txt"), pins("constraints.txt")
    for requirement in [*requirements(), *requirements(*users)]:
        bound = lower_bound(requirement)
        assert same_start(bound, oldest[normal(requirement.name)]), requirement
    for requirement in requirements(*TOOLS):
        assert same_start(lower_bound(requirement), pinned[normal(requirement.name)]), requirement
    build = [Requirement(text) for text in PYPROJECT["build-system"]["requires"]]
    assert {str(r) for r in build} <= {str(r) for r in requirements("dist")}


@pytest.mark.parametrize(
    ("bound", "version", "same"),
    [("1.26", "1.26.0", True), ("3.6", "3.6.1", True), ("3.6", "3.7", False), ("13", "13.0", True)],
)
def test_oldest_versions_are_recognised(bound, version, same):
    assert same_start(Version(bound), Version(version)) == same


def test_extras_are_documented():
    pages = ("docs/start/install.md", "CONTRIBUTING.md")
    text = " ".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    assert {e for e in PROJECT["optional-dependencies"] if f"`{e}`" not in text} == set()


def test_type_checkers_know_what_is_imported_when_first_used():
    """``cscnn.__getattr__`` is hidden from them, so each of its names is imported for them."""
    text = Path(cscnn.__file__).read_text(encoding="utf-8")
    named = re.findall(r"^    from cscnn import (\w+) as \1$", text, re.MULTILINE)
    classes = re.findall(r"^    from cscnn\.\w+ import (\w+)$", text, re.MULTILINE)
    assert tuple(named) == cscnn._ROOMS
    assert set(classes) == set(cscnn._CLASSES)


# --- the image and the sdist ----------------------------------------------------------------------


def test_the_image_copies_files_that_exist():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE)
        for name in line.split()[:-1]
    ]
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {"src", "pyproject.toml", "constraints.txt"} <= set(copied)
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in allowed, name
    needed = {*PROJECT["license-files"], "README.md"}  # what the build reads beside the package
    assert needed <= set(copied)
    assert f"python:{PROJECT['requires-python'].removeprefix('>=')}-slim" in text
    assert re.search(r"^USER (?!root)\w+$", text, re.MULTILINE)
    assert 'ENTRYPOINT ["cscnn"]' in text


def test_the_sdist_names_files_that_exist():
    for pattern in PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert list(ROOT.glob(pattern)), pattern


# --- the checks of make dist, on distributions that are wrong -------------------------------------


def wheel(path, **files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_wheels_that_differ_are_refused(tmp_path):
    first = wheel(tmp_path / "a.whl", a="1", b="2")
    check_dist.check_same(first, wheel(tmp_path / "b.whl", b="2", a="1"))
    with pytest.raises(check_dist.Failure, match=r"differ in b, c$"):
        check_dist.check_same(first, wheel(tmp_path / "c.whl", a="1", b="3", c=""))


@pytest.mark.parametrize(
    ("more", "less", "message"),
    [
        ({"tests/test_a.py"}, set(), r"holds tests/test_a.py, which are not files of src/cscnn"),
        (set(), {"cscnn/py.typed"}, r"lacks cscnn/py.typed"),
    ],
)
def test_wheels_with_other_files_are_refused(more, less, message):
    expected = check_dist.files_of_package()
    assert {"cscnn/py.typed", "cscnn/viz/report/templates/page.html"} <= expected
    described = expected | {"cscnn-1.dist-info/METADATA"}
    check_dist.check_files(described, expected)
    with pytest.raises(check_dist.Failure, match=message):
        check_dist.check_files((described | more) - less, expected)
    with pytest.raises(check_dist.Failure, match=r"no file \*\.yaml"):
        check_dist.check_files({"cscnn/py.typed"}, {"cscnn/py.typed"})


def test_descriptions_with_local_links_are_refused():
    check_dist.check_links('[a](https://a.b) [c](#c) ![d](http://d) <img src="https://e">')
    with pytest.raises(check_dist.Failure, match=r"repository: docs/a.md, b.png$"):
        check_dist.check_links('[a](docs/a.md) <img src="b.png">')


def test_the_readme_has_no_local_links_on_an_index():
    """By the substitutions of pyproject.toml; links of the README itself are local."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    with pytest.raises(check_dist.Failure):
        check_dist.check_links(text)
    hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for substitution in hook["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    check_dist.check_links(text)


def test_commands_that_fail_show_their_output(tmp_path):
    code = "import sys; print('the cause'); sys.exit(3)"
    with pytest.raises(check_dist.Failure, match=r"status 3:\nthe cause"):
        check_dist.run(check_dist.sys.executable, "-c", code, folder=tmp_path)
