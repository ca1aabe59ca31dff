PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow gpu benchmark growth pools tuners soak clean cluster cluster-slow audit

demo: .venv/installed
	@mkdir -p demo
	$(BIN)/banditune tune --policy ucb1 --problem bernoulli --arms 10 --horizon 10000 --budget 1000 --seed 0 \
	    --plot demo/ucb1.png -o demo/ucb1.json
	@echo; echo "The picture is demo/ucb1.png, the result demo/ucb1.json."

test: .venv/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2

slow: .venv/tested
	$(BIN)/python -m pytest -m "slow and not cluster" --durations=0

gpu: .venv/tested
	$(BIN)/python -m pytest -m gpu -rs --durations=10

cluster: .venv/clustered
	$(BIN)/python -m pytest -m "cluster and not slow" --durations=5

cluster-slow: .venv/clustered
	$(BIN)/python -m pytest -m "cluster and slow" --durations=5

audit: .venv/clustered
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/pip-audit --skip-editable

benchmark: .venv/tested
	$(BIN)/python benchmarks/throughput.py

growth: .venv/tested
	$(BIN)/python benchmarks/growth.py

pools: .venv/tested
	$(BIN)/python benchmarks/pools.py

soak: .venv/tested
	$(BIN)/python benchmarks/soak.py $(MINUTES)

MINUTES ?= 60

tuners: pools
	$(BIN)/python benchmarks/tuners.py paper

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/tested: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch .venv/installed $@

.venv/clustered: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[cluster-test]"
	@touch .venv/installed .venv/tested $@

clean:
	rm -rf .venv demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
