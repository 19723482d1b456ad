# Every target installs its dependencies in the virtual environment .venv.
#   make train ARGS="--help"            arguments for the command behind a target
#   make test PYTHON=python3.13         another Python (3.11 or newer) for a new .venv

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help docs coverage release-check train test test-slow test-oldest test-clients test-small-clients check compile format bench bench-check solution ladder docs-tables
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

train: .venv/.train ## train PPO by self-play and evaluate it (five to seven minutes)
	$(BIN)/python train.py $(ARGS)

test: check compile ## run lint, type checks, import contracts and all tests except the slow ones
	node --test tests/web/page/*.test.js
	$(BIN)/python -m pytest -n auto $(ARGS)

test-slow: compile ## run the slow tests (half an hour)
	$(BIN)/python -m pytest -n auto -m slow $(ARGS)

test-oldest: .venv/.oldest ## run the tests with the oldest supported Gymnasium and PettingZoo
	PYTHONPATH=.venv/oldest $(BIN)/python -m pytest -n auto $(ARGS)

test-clients: .venv/.clients .venv/.rllib .venv/.agilerl ## run the tests with other libraries; RLlib and AgileRL separately, because of their pins
	PYTHONPATH=.venv/clients $(BIN)/python -m pytest -m "slow or not slow" tests/clients --table $(ARGS)
	PYTHONPATH=.venv/rllib $(BIN)/python -m pytest -m "slow or not slow" tests/clients/test_rllib.py tests/examples/test_rllib.py --table $(ARGS)
	PYTHONPATH=.venv/agilerl $(BIN)/python -m pytest -m "slow or not slow" tests/clients/test_agilerl.py --table $(ARGS)

test-small-clients: .venv/.small-clients ## run the tests with TorchRL, skrl and SuperSuit, which install in a minute
	PYTHONPATH=.venv/small-clients $(BIN)/python -m pytest -n auto tests/clients/test_torchrl.py tests/clients/test_skrl.py tests/clients/test_supersuit.py $(ARGS)

coverage: compile ## run the tests with line coverage; fail below the limit in pyproject.toml
	$(BIN)/python -m pytest -n auto --cov $(ARGS)

release-check: .venv/.dev ## build the packages and test the wheel with each extra (ARGS="bare arena" for some)
	$(BIN)/python -m tools.release $(ARGS)

check: .venv/.dev node_modules/.installed ## run lint, type checks, import contracts and a check of sentences only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.kernels
	$(BIN)/python -m tools.prose
	node_modules/.bin/tsc
	node_modules/.bin/biome ci

compile: .venv/.dev ## compile all kernels, so that no test waits
	$(BIN)/wotd compile

format: .venv/.dev node_modules/.installed ## format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	node_modules/.bin/biome check --write

bench: .venv/.bench ## measure the speed of the environment and of the installed peers
	$(BIN)/python -m benchmarks $(ARGS)

bench-check: .venv/.bench ## compare the speed ratios with the recorded ones
	$(BIN)/python -m benchmarks --check $(ARGS)

solution: .venv/.dev ## measure the figures of docs/results/perfect-play.md and draw its pictures (ARGS="--tables FOLDER" for solved boards)
	$(BIN)/python -m tools.solution $(ARGS)

ladder: .venv/.dev ## play the tournaments of docs/results/ladder.md and write the page (trial: ARGS="--games 1000 --into FOLDER")
	$(BIN)/python -m tools.ladder $(ARGS)

docs: .venv/.dev ## build the documentation site in docs/_build/html, with the demo in demo/; run changed notebooks
	$(BIN)/sphinx-build -q -W --keep-going -c docs . docs/_build/html $(ARGS)
	$(BIN)/python -m tools.demo docs/_build/html/demo
	@echo "open docs/_build/html/index.html"

docs-tables: .venv/.dev ## write the generated tables, figures and pictures of README.md and docs/
	$(BIN)/python -m tools

.venv/.train: extras := train
.venv/.dev: extras := all,dev
.venv/.bench: extras := all,dev,bench
.venv/.train .venv/.dev .venv/.bench: pyproject.toml constraints.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --constraint constraints.txt --editable ".[$(extras)]"
	touch $@

node_modules/.installed: package.json
	@command -v npm >/dev/null || { echo "Checks of the page need Node.js 18 or newer and npm:" \
		"apt-get install nodejs npm, brew install node, or https://nodejs.org"; exit 1; }
	npm install --no-package-lock --no-audit --no-fund
	touch $@

# Pinned releases in a folder of their own, which PYTHONPATH puts before those of .venv.
.venv/.oldest .venv/.rllib .venv/.agilerl .venv/.clients: .venv/.%: constraints/%.txt .venv/.dev
	$(BIN)/python -m pip install --no-deps --upgrade --target .venv/$* --requirement $<
	touch $@

.venv/.small-clients: constraints/clients.txt .venv/.dev
	$(BIN)/python -m pip install --no-deps --upgrade --target .venv/small-clients --constraint $< \
		torchrl tensordict pyvers skrl tqdm supersuit tinyscaler
	touch $@
