# Orienteer: `make demo` to see it, `make test` to check it.  Each target makes its own environment in .venv.
.PHONY: demo test lint docs bench format clean help
.DEFAULT_GOAL := help
VENV := .venv/bin

help:                ## show this list
	@grep -hE '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

demo:                ## the whole way: simulate a virus, find its density blind, validate, report (five minutes on two cores)
	@tools/environment
	@$(VENV)/orienteer demo --out demo

test:                ## run the tests (GPU and slow ones are skipped and say why)
	@tools/environment dev
	@$(VENV)/python -m pytest -n auto --dist loadgroup $(TESTS)

lint:                ## style (ruff) and types (mypy, strict)
	@tools/environment dev
	@$(VENV)/ruff check .
	@$(VENV)/ruff format --check .
	@$(VENV)/mypy

docs:                ## build the documentation into site/ (warnings are errors)
	@tools/environment dev
	@NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

bench:               ## measure the figures in bench/ here (minutes; not the studies blind and dirt); keeps bench/results/*.json and writes docs/reference/benchmarks.md
	@tools/environment dev
	@for figure in $(filter-out bench/machine.py bench/made_up_logs.py bench/blind.py bench/dirt.py,$(wildcard bench/*.py)); do echo "== $$figure"; $(VENV)/python $$figure --keep || exit 1; done

format:              ## let ruff rewrite the sources in the house style
	@tools/environment dev
	@$(VENV)/ruff check --fix --quiet . ; $(VENV)/ruff format .

clean:               ## remove everything that make produced
	rm -rf .venv demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis
