PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test docs docs-all pictures slow gpu benchmark growth-benchmark paper-pools tuner-benchmark soak clean cluster cluster-slow audit lowest

demo: .venv/installed
	@mkdir -p demo
	$(BIN)/banditune tune --policy ucb1:noise=0.5 --problem bernoulli --arms 10 --horizon 10000 --budget 1000 --seed 0 \
	    --plot demo/ucb1.png -o demo/ucb1.json
	@echo; echo "The picture is demo/ucb1.png, the result demo/ucb1.json."

test: .venv/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Without --quiet, with which --strict overlooks warnings.
docs: .venv/documented
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site is site/index.html."

# The pictures of the site, drawn by banditune itself.
pictures: .venv/installed
	$(BIN)/python tools/site/pictures.py

# Execute the notebooks, and store their outputs, which the site shows and the tests compare.
notebooks: .venv/tested
	$(BIN)/python tools/site/notebooks.py

# The site, and every code block of README and docs, slow ones too.
docs-all: docs .venv/tested
	$(BIN)/python -m pytest tests/docs -m "slow or not slow" --durations=10
	$(BIN)/python tools/site/code_blocks.py

slow: .venv/tested
	$(BIN)/python -m pytest -m "slow and not cluster" --durations=0

gpu: .venv/tested
	$(BIN)/python -m pytest -m gpu -rs --durations=10

cluster: .venv/clustered
	$(BIN)/python -m pytest -m "cluster and not slow" --durations=5

cluster-slow: .venv/clustered
	$(BIN)/python -m pytest -m "cluster and slow" --durations=5

# Without --strict, pip-audit skips packages that it cannot look up: without a database it reports "no known vulnerabilities".
# With --strict, an editable package counts as skipped, so banditune itself is left out of the list.
audit: .venv/clustered
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip freeze --all --exclude-editable > .venv/audited.txt
	@$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement .venv/audited.txt || { status=$$?; \
	    echo "An advisory was found, or a package could not be looked up: see above. This environment is not known to be clean."; \
	    exit $$status; }

# Run the tests that use dependencies with the lowest versions that pyproject.toml allows, in a separate environment.
lowest: .lowest/installed
	BANDITUNE_CACHE=$(CURDIR)/.lowest/cache .lowest/bin/python -m pytest tests/test_architecture.py tests/core/test_streams.py \
	    tests/simulation/test_bind.py tests/adapters/test_external_policies.py tests/logs/test_log_reader.py tests/logs/test_text_tables.py tests/deployment/test_deployment_state.py tests/reports/test_store_report.py
	BANDITUNE_CACHE=$(CURDIR)/.lowest/cache .lowest/bin/python -m pytest -m "cluster and not slow"

.lowest/installed: pyproject.toml tests/lowest.txt
	$(PYTHON) -m venv --clear .lowest
	.lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint tests/lowest.txt \
	    --editable ".[cluster-test]"
	@touch $@

benchmark: .venv/tested
	$(BIN)/python benchmarks/throughput.py

growth-benchmark: .venv/tested
	$(BIN)/python benchmarks/time_growth.py

paper-pools: .venv/tested
	$(BIN)/python benchmarks/paper_pools.py

soak: .venv/tested
	$(BIN)/python benchmarks/soak.py $(MINUTES)

MINUTES ?= 60

tuner-benchmark: paper-pools
	$(BIN)/python benchmarks/tuners.py paper

.venv/bin/python:
	$(PYTHON) -m venv --upgrade-deps .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/tested: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch .venv/installed $@

.venv/documented: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch .venv/installed $@

.venv/clustered: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[cluster-test]"
	@touch .venv/installed .venv/tested $@

clean:
	rm -rf .venv .lowest demo site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
