# Every target sets up what it needs in .venv; nothing else is ever required.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
EXE := .exe
else
BIN := $(VENV)/bin
EXE :=
endif
WORKERS ?= auto

.PHONY: help demo test test-fast test-external test-core test-oldest lint oracles bench models figures examples study study-small boosts rollouts conditioning tensors nbody zoo docs docs-serve test-docs dist clean
help:
	@echo "make demo   the main job: simulate, train two models, evaluate, report (minutes)"
	@echo "make test   all tests"
	@echo "make test-fast  those that take seconds"
	@echo "make lint   formatting, lint, types"
	@echo "make test-core  the library half with torch and numpy alone"
	@echo "make test-oldest  those that take seconds, with the oldest versions that pyproject.toml allows"
	@echo "make test-external  comparisons with the packages of the published data, golden files, a browser"
	@echo "make bench  speed, memory and rounding error beside the alternatives; writes docs/benchmarks.md"
	@echo "make models  what each network costs on each task; writes docs/models.md"
	@echo "make figures  the pictures of kernels and of the data cards, the data of the explorer, into docs"
	@echo "make study  the paper's tasks with 200,000 parameters in equal time (half a day); writes docs/medium.md"
	@echo "make study-small  the paper's comparisons at a small size (hours); writes docs/results.md"
	@echo "make boosts  networks trained at rest, seen in motion (hours); writes docs/boosts.md"
	@echo "make rollouts  what makes forecasts last, for seven networks (hours); writes docs/rollouts.md"
	@echo "make conditioning  kernels that see the field, against global context (less than an hour); writes docs/conditioning.md"
	@echo "make tensors  stresses as tensors and as numbers, five networks (less than an hour); writes docs/tensors.md"
	@echo "make nbody  five charged particles, the benchmark of EGNN and CGENN (hours); writes docs/nbody.md"
	@echo "make zoo    train the small forecasters that come with the package (minutes)"
	@echo "make examples  learn on the sphere, on spacetime events and on anti-de Sitter space (minutes)"
	@echo "make docs   the documentation site, into site/ (minutes); make docs-serve shows it as you write"
	@echo "make test-docs  the site in a browser"
	@echo "make dist   sdist and wheel, into dist/, tried as installed: programs, commands, types (minutes)"
	@echo "make clean  remove .venv and caches"

$(BIN)/python$(EXE):
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python$(EXE)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	@touch $@

$(VENV)/.main: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[train,viz]"
	@touch $@

demo: $(VENV)/.main
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope

test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

$(VENV)/.oracles: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[oracles]"
	@touch $@

oracles: $(VENV)/.oracles

# The library half needs torch and numpy alone: its tests in an environment without extras.
CORE ?= tests/algebra tests/nn tests/kernels tests/geometry tests/conv tests/calculus tests/networks \
	tests/testing tests/interop tests/test_imports.py
test-core:
	$(PYTHON) -m venv $(VENV)-core
	$(VENV)-core/$(notdir $(BIN))/python -m pip install --quiet -c constraints.txt -e . pytest pytest-xdist hypothesis
	CSCNN_WITHOUT_EXTRAS=1 $(VENV)-core/$(notdir $(BIN))/python -m pytest -n $(WORKERS) --dist loadscope -m "not slow" $(CORE)

# Lower bounds are tested ones: constraints-oldest.txt has them, and what they need beside them.
$(VENV)-oldest/.dev: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv --clear $(VENV)-oldest
	$(VENV)-oldest/$(notdir $(BIN))/python -m pip install --quiet -c constraints-oldest.txt -e ".[dev]"
	@touch $@

test-oldest: $(VENV)-oldest/.dev
	$(VENV)-oldest/$(notdir $(BIN))/python -m pytest -n $(WORKERS) --dist loadscope -m "not slow" $(OLDEST)

# What make test skips for want of packages, programs or files; says what it still skips.
test-external: $(VENV)/.oracles
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope -m external tests

bench: $(VENV)/.oracles
	$(BIN)/python -m benchmarks --json bench.json --markdown docs/benchmarks.md --overwrite

models: $(VENV)/.dev
	$(BIN)/python -m benchmarks.models > docs/models.md.tmp && mv docs/models.md.tmp docs/models.md

figures: $(VENV)/.dev
	$(BIN)/python examples/kernel_figures.py docs/figures
	$(BIN)/python examples/data_figures.py docs/figures --cards docs/data --no-times
	$(BIN)/python examples/explorer_data.py docs/assets/explorer

study: $(VENV)/.dev
	$(BIN)/python -m experiments.medium --out medium --page docs --workers 2

study-small: $(VENV)/.dev
	$(BIN)/python -m experiments.paper --preset small --out study --page docs

boosts: $(VENV)/.dev
	$(BIN)/python -m experiments.boosts --out boosts --page docs

rollouts: $(VENV)/.dev
	$(BIN)/python -m experiments.rollouts --out rollouts --page docs

conditioning: $(VENV)/.dev
	$(BIN)/python -m experiments.conditioning --out conditioning --page docs

tensors: $(VENV)/.dev
	$(BIN)/python -m experiments.tensors --out tensors --page docs

nbody: $(VENV)/.dev
	$(BIN)/python -m experiments.nbody --out nbody --page docs --workers 2

zoo: $(VENV)/.dev
	$(BIN)/python -m experiments.zoo --out zoo

examples: $(VENV)/.dev
	$(BIN)/python examples/sphere.py --figure docs/figures/sphere.png
	$(BIN)/python examples/lorentz_events.py --figure docs/figures/lorentz_events.png
	$(BIN)/python examples/anti_de_sitter.py --figure docs/figures/anti_de_sitter.png

# The pages run their Python when they are built. What has not changed is taken from .cache/site.
docs docs-serve: export NO_MKDOCS_2_WARNING = 1

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[docs]"
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m mkdocs build --strict
	@echo "open site/index.html; with the search box: $(BIN)/python -m http.server -d site"

docs-serve: $(VENV)/.docs
	$(BIN)/python -m mkdocs serve

test-docs: $(VENV)/.dev docs
	$(BIN)/python -m pytest -m external tests/docs

$(VENV)/.dist: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dist]"
	@touch $@

dist: $(VENV)/.dist
	$(BIN)/python tools/check_dist.py --out dist

clean:
	rm -rf $(VENV) $(VENV)-core $(VENV)-oldest dist site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
