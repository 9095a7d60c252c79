# Everything here works on a fresh machine with only Python 3.11 (or newer) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check --no-input
LOCKED := pyproject.toml requirements/build.txt requirements/run.txt
# tests/lane.py says which tests go to one process, and in which order. One more process than there are cores, since tests of
# services mostly wait; more than four would want more memory
PARALLEL := -n $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 3 ? n + 1 : 4))) --dist loadfile --no-loadscope-reorder
FAST := tests/unit tests/integrity tests/golden src
EXAMPLE := examples/llama-3.1-8b-pretrain.yaml

# What Python and pytest compile is kept, or each of hundreds of processes would compile it again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-fast test-slow test-changed fresh packages warm lint lock platforms calibration compiled benchmarks scoreboard golden docs sbom fuzz chaos site notebook picture clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /: /' | sort

demo: $(VENV)/installed ## Install chipwise, compare every chip on an example, route a job and run it here
	$(BIN)/chipwise compare $(EXAMPLE)
	@sh scripts/demo.sh $(BIN)/chipwise

test: packages ## Run every check and every test but the slow ones; really compiles, for what this platform can have
	@$(MAKE) --no-print-directory -j2 lint warm
	@CHIPWISE_WARM=0 $(BIN)/chipwise doctor --require tpu,gpu,torch,export > /dev/null
	$(BIN)/python -m pytest -m "not slow" $(PARALLEL)

test-fast: $(VENV)/installed-dev ## Run the tests of the edit loop: no compilers, no services, nothing that takes long
	$(BIN)/python -m pytest -m "not slow and not compiler and not service and not thorough" $(PARALLEL) $(FAST)

warm: $(VENV)/installed-dev # compiled by Numba once, before many processes want it
	@$(BIN)/python scripts/warm.py

packages: ## Install what tests need where it is missing: a browser, Slurm, PostgreSQL, Prometheus
	@sh scripts/packages.sh

test-slow: $(VENV)/installed-dev packages ## Run the tests that take minutes each, every sweep and property in full; SHARD=1/3 runs a third
	CHIPWISE_TESTS=all SHARD=$(SHARD) $(BIN)/python -m pytest -m "slow or sampled or hypothesis" $(PARALLEL)

test-changed: $(VENV)/installed-dev packages ## Run the slow tests that the last day's changes call for (tests/slow_lane.toml)
	$(BIN)/python scripts/slow_tests.py $(PARALLEL)

fresh: ## Run .ci/run in a clone, with an empty home, temporary folder and caches
	@sh scripts/fresh.sh

lock: $(VENV)/installed-dev ## Renew the lock files in requirements/
	$(BIN)/python scripts/lock.py

platforms: $(VENV)/installed-dev ## Print what every extra resolves to on x86_64 and aarch64, Python 3.11 to 3.13
	$(BIN)/python scripts/platforms.py

lint: $(VENV)/installed-dev ## Run the linters and the type checker
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

calibration: $(VENV)/installed-dev ## Fit the calibrations to the published rows and to the bench files
	$(BIN)/python -m chipwise.calibrate
	$(BIN)/chipwise calibrate bench examples/bench/h200-*.json.gz --folder src/chipwise/catalog/data/calibration/bench

compiled: $(VENV)/installed-dev ## Compile again the published rows whose kept schedules no longer fit (minutes to hours)
	$(BIN)/python scripts/compile_rows.py

scoreboard: $(VENV)/installed-dev ## Score predictions against published rows, and draw the result
	$(BIN)/python scripts/scoreboard.py

benchmarks: $(VENV)/installed-peers ## Print CPU times, layouts timed and requests simulated per second, decisions, submissions and policies beside Gavel's
	$(BIN)/python benchmarks/cli.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/layouts.py
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/bench_sampling.py
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python benchmarks/fleet.py
	$(BIN)/python benchmarks/router.py
	$(BIN)/python benchmarks/router_scale.py
	$(BIN)/python benchmarks/router_submit.py
	$(BIN)/python -m benchmarks.gavel
	$(BIN)/python benchmarks/loop.py 3
	$(BIN)/python benchmarks/estimates.py
	$(BIN)/python benchmarks/telemetry.py
	$(BIN)/python benchmarks/agent.py

golden: $(VENV)/installed-dev ## Write the golden files again; read the difference before you commit it
	$(BIN)/python tests/golden/golden_files.py

docs: $(VENV)/installed-dev ## Refresh the output shown in README.md and docs/
	$(BIN)/python scripts/refresh_docs.py

sbom: $(VENV)/installed-dev ## Write sbom.json, the CycloneDX bill of materials of what chipwise runs on
	$(BIN)/python -m cyclonedx_py requirements requirements/run.txt --pyproject pyproject.toml --mc-type library --spec-version 1.6 --output-reproducible --output-format JSON --output-file sbom.json

fuzz: $(VENV)/installed-dev ## Fuzz every reader for ten seconds each, and print what was found
	$(BIN)/python tests/fuzz/run.py 10

chaos: $(VENV)/installed-dev packages ## Kill, silence, fill and set back all that jobs depend on, in three places, and print what came of it (root; an hour)
	PYTHONPATH=src:tests:tests/e2e $(BIN)/python tests/e2e/storm.py

site: $(VENV)/installed-dev ## Build the pages as a site, in site/
	$(BIN)/python -m mkdocs build --strict --quiet

notebook: $(VENV)/installed-dev ## Execute examples/decide.ipynb and keep its output
	$(BIN)/python scripts/notebook.py

picture: $(VENV)/installed-dev packages ## Draw docs/img/compare.svg, six chips on a terminal, docs/img/report.png and docs/img/simulate.svg
	$(BIN)/python scripts/picture.py
	$(BIN)/python scripts/report_picture.py
	$(BIN)/python scripts/simulate_picture.py

$(BIN)/python:
	@sh scripts/venv.sh $(VENV) $(PYTHON)

$(VENV)/installed: $(LOCKED) | $(BIN)/python
	$(PIP) --require-hashes -r requirements/build.txt -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements/dev.txt
	$(PIP) --no-build-isolation -c requirements/dev.txt -e '.[dev]'
	@touch $@

$(VENV)/installed-peers: $(VENV)/installed-dev
	$(PIP) -e '.[peers]'
	@touch $@

clean: ## Remove what was made here
	rm -rf $(VENV) .chipwise .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist site sbom.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
