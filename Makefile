# Every target sets up what it needs: a virtual environment in .venv, filled from requirements.lock.
# Needed beforehand: Python 3.11 or newer with venv and pip, make, git.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
PYTEST := $(PY) -m pytest -q
PARALLEL := -n 3 --dist loadfile
PACKAGES := benchmarks graphs memory prompts
TORCH := 2.13.0

.DEFAULT_GOAL := help
.PHONY: help demo test train data slow notebooks check links dist clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(READY) ## Watch the agent remember: no key, no network once installed
	@$(PY) -m sharpwave demo

train: $(READY) ## Install what training a policy needs, so that its tests run too
	$(PY) -m pip install -q --disable-pip-version-check torch==$(TORCH) onnx

test: $(READY) ## Run the tests; those of training only where `make train` was run
	$(PYTEST) $(PARALLEL) -m "not slow and not data"

data: $(READY) ## Run the tests that use ../shared/data (pytest's exit 5: there are none)
	$(PYTEST) -m "data and not slow" || [ $$? -eq 5 ]

slow: $(READY) ## Run the tests that take minutes
	$(PYTEST) -m slow || [ $$? -eq 5 ]

notebooks: $(READY) ## Execute the notebooks; HTTP to anywhere but this machine fails
	HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=localhost,127.0.0.1,::1 \
	  $(PYTEST) --nbmake --nbmake-timeout=300 -W default notebooks

check: $(READY) links ## Lint, check the format, the types and the direction of imports
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy -p sharpwave
	PYTHONPATH=.dev $(VENV)/bin/lint-imports --no-logo

# The folders lie side by side, and are imported as one package. Tools that read files instead of importing them see
# that package here, app/ as its root.
links:
	@rm -rf .dev && mkdir -p .dev/sharpwave
	@ln -s $(addprefix ../../,$(filter-out %/__pycache__,$(wildcard app/*)) $(PACKAGES)) .dev/sharpwave/

# setuptools packs whatever an earlier build left in build/, so that goes first.
dist: $(READY) ## Build the wheel into dist/
	rm -rf build
	$(PY) -m pip wheel -q --no-deps --no-build-isolation -w dist .
	rm -rf build

clean: ## Remove everything built or cached, except .venv
	rm -rf .dev build dist *.egg-info .coverage .hypothesis .langgraph_api .*_cache
	find $(PACKAGES) app tests notebooks -name __pycache__ -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) was not found: install Python 3.11 or newer, or name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.version_info >= (3, 11) or sys.exit("$(PYTHON) is Python %d.%d, and 3.11 or newer is needed. Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" % sys.version_info[:2])'
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Installing the locked dependencies into $(VENV); this takes a few minutes, once."
	@"$(PYTHON)" -m venv $(VENV)
	@$(PY) -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(PY) -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
