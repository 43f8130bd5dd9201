# make bench [TIER=small|core|full] [ONLY=softmax]   measure, print the speedup table
# make test                                          lint, types, tests: what CI runs
# make gpu-test                                      the tests that need a GPU
# make dash [PORT=8050]                              the dashboard
# make gate [BASE=origin/main]                       judge the working tree against BASE
# make soak-gate [RUNS=10] [BUDGET=9m] [SOAK='...']   the gate on identical code, again and again: docs/gating.md
# make soak [TRIALS=50] [SEED=0]                     kill any one process of a fleet, and look for what is lost or twice
# make gate-trials [ROUNDS=1] [BUDGET=9m]            plant slowdowns of known size, count which the gate finds
# make table                                         the speedup table of the newest results again
# make readme                                        write README's speed table anew from results/
PYTHON ?= python3
VENV ?= .venv
TIER ?= small
ONLY ?=
BASE ?= origin/main
PORT ?= 8050
RUNS ?= 10
TRIALS ?= 50
SEED ?= 0
ROUNDS ?= 1
BUDGET ?= 9m
SOAK ?= --tier core --skip 'torch_compile*'
CUDA ?= cuda
PYTEST_ARGS ?=

# The environment's interpreter; $(1) are the extras to install. It is instant when nothing changed.
environment = $(PYTHON) tools/environment.py --venv $(VENV) --cuda $(CUDA) --extras "$(1)"

.PHONY: bench test gpu-test dash gate soak soak-gate gate-trials table readme clean

bench:
	@python=$$($(call environment,)) && $$python -m groundspeed run --tier $(TIER) $(if $(ONLY),--only $(ONLY))

test:
	@bash tools/test.sh $(call environment,dev) -- $(PYTEST_ARGS)

gpu-test:
	@python=$$($(call environment,dev)) && $$python -m pytest -m gpu $(PYTEST_ARGS)

dash:
	@python=$$($(call environment,dashboard)) && $$python -m groundspeed dash --port $(PORT)

gate:
	@python=$$($(call environment,)) && $$python -m groundspeed gate --base $(BASE)

soak:
	@python=$$($(call environment,fleet)) && $$python -m groundspeed.fleet.kill_trials --trials $(TRIALS) --seed $(SEED)

soak-gate:
	@python=$$($(call environment,)) && $$python -m groundspeed.gate.soak --runs $(RUNS) --budget $(BUDGET) $(SOAK)

gate-trials:
	@python=$$($(call environment,)) && $$python -m groundspeed.gate.trials --rounds $(ROUNDS) --budget $(BUDGET)

table:
	@python=$$($(call environment,)) && $$python -m groundspeed table

readme:
	@python=$$($(call environment,)) && $$python -m groundspeed table --readme

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
