# Every target installs its dependencies in the virtual environment .venv.
#   make train ARGS="--help"            arguments for the command behind a target
#   make test PYTHON=python3.13         another Python (3.11 or newer) for a new .venv

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help docs coverage release-check train test test-slow test-oldest test-clients test-small-clients test-doors check compile format speed speed-check solution ladder docs-tables lock
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

train: .venv/.train ## train PPO by self-play and evaluate it (five minutes)
	$(BIN)/python train.py $(ARGS)

test: check compile ## run lint, type checks, import contracts and all tests except the slow ones
	node --test tests/web/page/*.test.js
	$(BIN)/python -m pytest -n auto $(ARGS)

test-slow: compile ## run the slow tests (half an hour)
	$(BIN)/python -m pytest -n auto -m slow $(ARGS)

test-oldest: .venv/.oldest ## run the tests with the minimum version of every dependency on the oldest Python
	.venv/oldest/bin/wotd compile
	.venv/oldest/bin/python -m pytest -n auto -W default $(ARGS)

test-clients: .venv/.clients .venv/.rllib .venv/.agilerl ## run the tests with other libraries; RLlib and AgileRL separately, because of their pins
	PYTHONPATH=.venv/clients $(BIN)/python -m pytest -m "slow or not slow" tests/clients --table $(ARGS)
	PYTHONPATH=.venv/rllib $(BIN)/python -m pytest -m "slow or not slow" tests/clients/test_rllib.py tests/examples/test_rllib.py --table $(ARGS)
	PYTHONPATH=.venv/agilerl $(BIN)/python -m pytest -m "slow or not slow" tests/clients/test_agilerl.py --table $(ARGS)

test-small-clients: .venv/.small-clients ## run the tests with TorchRL, skrl, SuperSuit and MoviePy, which install in a minute
	PYTHONPATH=.venv/small-clients $(BIN)/python -m pytest -n auto tests/clients/test_torchrl.py tests/clients/test_skrl.py tests/clients/test_supersuit.py tests/clients/test_gymnasium.py::test_record_video_writes_a_file $(ARGS)

# These libraries pin each other out, so each has a folder of its own.
test-doors: .venv/.inspect .venv/.openenv .venv/.verifiers ## run the tests with libraries for language models
	for door in inspect openenv verifiers; do \
		PYTHONPATH=.venv/$$door $(BIN)/python -m pytest tests/clients/test_$$door.py --table $(ARGS) || exit; done

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

speed: .venv/.bench ## measure the speed of the environment and of the installed peers
	$(BIN)/python -m tools.speed $(ARGS)

speed-check: .venv/.bench ## compare the speed ratios with the recorded ones
	$(BIN)/python -m tools.speed --check $(ARGS)

solution: .venv/.dev ## measure the figures of docs/results/perfect-play.md and draw its pictures (ARGS="--tables FOLDER" for solved boards)
	$(BIN)/python -m tools.solution $(ARGS)

ladder: .venv/.dev ## play the tournaments of docs/results/ladder.md and write the page (a part of them: ARGS="basic_2 powers_2")
	$(BIN)/python -m tools.ladder $(ARGS)

docs: .venv/.dev ## build the documentation site in docs/_build/html, with the demo in demo/
	$(BIN)/sphinx-build -q -W --keep-going -c docs . docs/_build/html $(ARGS)
	$(BIN)/python -m tools.demo docs/_build/html/demo
	@echo "open docs/_build/html/index.html"

docs-tables: .venv/.dev ## write the generated tables, figures and pictures of README.md and docs/
	$(BIN)/python -m tools

lock: .venv/.dev ## pin the newest versions that pyproject.toml allows, and their hashes
	$(RESOLVE) --upgrade --extra all --extra dev --extra bench pyproject.toml --output-file constraints.txt
	echo "torch; python_version < '3'" | $(RESOLVE) --generate-hashes --constraint constraints.txt --override - \
		--extra all --extra dev pyproject.toml --output-file constraints/hashes.txt
	printf '%s\n' build hatchling editables | $(RESOLVE) --generate-hashes --constraint constraints.txt - \
		--output-file constraints/build.txt
	npm install --package-lock-only --no-audit --no-fund

# A lock holds for all platforms and for Python 3.11.5 or newer, which some dependencies require.
RESOLVE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11.5 --no-annotate \
	--custom-compile-command "make lock"

# Everything but torch is checked against hashes: its files differ by accelerator and come from several indexes.
.venv/.dev: pyproject.toml constraints.txt constraints/hashes.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-deps --require-hashes --requirement constraints/hashes.txt
	$(BIN)/python -m pip install --constraint constraints.txt torch
	$(BIN)/python -m pip install --no-deps --no-build-isolation --editable .
	touch $@

.venv/.train: extras := train
.venv/.bench: extras := all,dev,bench
.venv/.train .venv/.bench: pyproject.toml constraints.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --constraint constraints.txt --editable ".[$(extras)]"
	touch $@

# The extra rllib pins Gymnasium to its minimum, so it fits together with the others here. The libraries of the extra
# cuda exclude the minimum of torch; numba-cuda itself comes with the extra dev.
.venv/.oldest: pyproject.toml
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --constraint constraints.txt uv
	$(BIN)/uv venv --clear --python 3.11 .venv/oldest
	$(BIN)/uv pip install --python .venv/oldest --resolution lowest-direct --requirement pyproject.toml \
		$(addprefix --extra ,all rllib video bench dev notebooks)
	$(BIN)/uv pip install --python .venv/oldest --no-deps --editable .
	touch $@

node_modules/.installed: package.json package-lock.json
	@command -v npm >/dev/null || { echo "Checks of the page need Node.js 18 or newer and npm:" \
		"apt-get install nodejs npm, brew install node, or https://nodejs.org"; exit 1; }
	npm ci --no-audit --no-fund
	touch $@

# Pinned releases in a folder of their own, which PYTHONPATH puts before those of .venv.
.venv/.rllib .venv/.agilerl .venv/.clients .venv/.inspect .venv/.openenv .venv/.verifiers: .venv/.%: constraints/%.txt .venv/.dev
	$(BIN)/python -m pip install --no-deps --upgrade --target .venv/$* --requirement $<
	touch $@

.venv/.small-clients: constraints/clients.txt .venv/.dev
	$(BIN)/python -m pip install --no-deps --upgrade --target .venv/small-clients --constraint $< \
		torchrl tensordict pyvers skrl tqdm supersuit tinyscaler \
		moviepy decorator imageio imageio-ffmpeg proglog python-dotenv
	touch $@
