# Every target sets up what it needs by itself, in the virtual environment .venv.
#   make train ARGS="--help"            arguments for the command behind a target
#   make test PYTHON=python3.13         another Python (3.11 or newer) for a new .venv

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help docs coverage release-check train test test-slow test-oldest test-clients check format bench bench-check solution ladder comparison docs-tables
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

train: .venv/.train ## train MaskablePPO by self-play and evaluate it (a few minutes)
	$(BIN)/python train.py $(ARGS)

test: check ## lint, types, import contracts and all tests but the slow ones
	node --test tests/web/page/*.test.js
	$(BIN)/wotd compile
	$(BIN)/python -m pytest -n auto $(ARGS)

test-slow: .venv/.dev ## the tests that take minutes, half an hour in all
	$(BIN)/wotd compile
	$(BIN)/python -m pytest -n auto -m slow $(ARGS)

test-oldest: .venv/.oldest ## the tests with the oldest Gymnasium and PettingZoo that are supported
	PYTHONPATH=.venv/oldest $(BIN)/python -m pytest -n auto $(ARGS)

test-clients: .venv/.clients .venv/.rllib .venv/.agilerl ## the tests with other libraries; RLlib and AgileRL apart, for their pins
	PYTHONPATH=.venv/clients $(BIN)/python -m pytest -m "slow or not slow" tests/clients --table $(ARGS)
	PYTHONPATH=.venv/rllib $(BIN)/python -m pytest -m "slow or not slow" tests/clients/test_rllib.py --table $(ARGS)
	PYTHONPATH=.venv/agilerl $(BIN)/python -m pytest -m "slow or not slow" tests/clients/test_agilerl.py --table $(ARGS)

coverage: .venv/.dev ## the tests, and the share of lines that they reach; fails below that of pyproject.toml
	$(BIN)/wotd compile
	$(BIN)/python -m pytest -n auto --cov $(ARGS)

release-check: .venv/.dev ## build the packages, and try the wheel with each extra alone (ARGS="bare arena" for some)
	$(BIN)/python -m tools.release $(ARGS)

check: .venv/.dev node_modules/.installed ## lint, types and import contracts alone, of Python and of the page's JavaScript
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.kernels
	node_modules/.bin/tsc
	node_modules/.bin/biome ci

format: .venv/.dev node_modules/.installed ## put the code into its standard form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	node_modules/.bin/biome check --write

bench: .venv/.bench ## measure speed beside the peers that are installed
	$(BIN)/python -m benchmarks $(ARGS)

bench-check: .venv/.bench ## compare the ratios with those on record
	$(BIN)/python -m benchmarks --check $(ARGS)

solution: .venv/.dev ## measure and draw docs/solution.md (ARGS="--tables FOLDER" for boards solved there)
	$(BIN)/python -m tools.solution $(ARGS)

ladder: .venv/.dev ## play the tournaments behind docs/ladder.md and write it (ARGS="--games 1000 --into FOLDER" to try)
	$(BIN)/python -m tools.ladder $(ARGS)

docs: .venv/.dev ## the documentation site, in docs/_build/html; runs the notebooks when they have changed
	$(BIN)/sphinx-build -q -W --keep-going -c docs . docs/_build/html $(ARGS)
	@echo "open docs/_build/html/index.html"

comparison: .venv/.dev ## train in seven ways, and write how they compare into docs/training.md (hours; ARGS="--quick" to try)
	$(BIN)/python -m tools.comparison $(ARGS)

docs-tables: .venv/.dev ## write what in README.md and docs/ follows from the code: tables and pictures
	$(BIN)/python -m tools.tables
	$(BIN)/python -m tools.commands
	$(BIN)/python -m tools.figures
	$(BIN)/python -m tools.board
	$(BIN)/python -m tools.cases
	$(BIN)/python -m tools.rooms

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

.venv/.oldest: .venv/.dev
	$(BIN)/python -m pip install --no-deps --upgrade --target .venv/oldest gymnasium==1.2.2 pettingzoo==1.26.1
	touch $@

.venv/.rllib: .venv/.dev
	$(BIN)/python -m pip install --no-deps --upgrade --target .venv/rllib \
		gymnasium==1.2.2 dm-tree==0.1.10 lz4==4.4.5 ormsgpack==1.13.1 wrapt==2.5.2
	touch $@

# PettingZoo and tensordict as it pins them, and what it imports when it is imported.
.venv/.agilerl: .venv/.dev
	$(BIN)/python -m pip install --no-deps --upgrade --target .venv/agilerl \
		agilerl==2.58.0 agilerl-arena==1.29.0 pettingzoo==1.26.1 tensordict==0.13.0 pyvers==0.2.3 accelerate==1.15.0 \
		dill==0.4.1 fastrand==3.1.0 flatten-dict==0.5.0 lazy-loader==0.6 omegaconf==2.4.0 pandas==2.3.3 pytz==2026.6 \
		tzdata==2026.6 peft==0.21.0 transformers==5.23.0 tokenizers==0.23.3 huggingface_hub==2.4.0 httpx2==2.16.2 \
		httpcore2==2.16.2 truststore==0.10.5 safetensors==0.8.0 regex==2026.11.15 supersuit==3.11.0 tinyscaler==1.2.8 \
		termcolor==3.3.0 tqdm==4.70.1 wandb==0.31.0 redis==8.1.0 google-cloud-storage==3.17.1 \
		opentelemetry-api==1.45.2 xxhash==4.1.0
	touch $@

.venv/.clients: .venv/.dev
	$(BIN)/python -m pip install --no-deps --upgrade --target .venv/clients \
		torchrl==0.14.1 tensordict==0.14.3 hoptorch==0.1.4 pyvers==0.2.3 \
		tianshou==2.0.1 sensai-utils==1.6.0 overrides==7.7.0 deepdiff==8.6.2 orderly-set==5.5.0 pandas==2.3.3 \
		pytz==2026.6 tzdata==2026.6 tqdm==4.70.1 array-api-compat==1.16.0 \
		moviepy==2.2.1 imageio==2.38.1 imageio-ffmpeg==0.8.1 proglog==0.1.12 python-dotenv==1.2.4 decorator==5.3.1 \
		supersuit==3.11.0 tinyscaler==1.2.8 skrl==2.1.1 pufferlib-core==3.0.23
	touch $@
