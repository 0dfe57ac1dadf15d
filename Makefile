# Orienteer: `make demo` to see it, `make test` to check it.  Each target makes its own environment in .venv.
.PHONY: demo test rehearse rehearse-memory lint docs bench bench-all format clean help
.DEFAULT_GOAL := help
VENV := .venv/bin
# Workers and the many programs that tests start take what is compiled already, also where containers keep nothing.
test rehearse rehearse-memory: export PYTHONDONTWRITEBYTECODE =
# Many tests wait for programs that they have started: two more than there are cores.
WORKERS := $(shell expr $$(nproc) + 2)

help:                ## show this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

demo:                ## the whole way: simulate a virus, find its density blind, validate, report (five minutes on two cores)
	@tools/environment
	@$(VENV)/orienteer demo --out demo

test:                ## run the tests (GPU and slow ones are skipped and say why)
	@tools/environment dev
	@$(VENV)/python -m pytest -n $(WORKERS) --dist loadgroup $(TESTS)

rehearse:            ## run the tests for the GPU without one: NumPy behind CuPy's rules, CUDA sources compiled by g++
	@tools/environment dev
	@$(VENV)/python -m pytest -m gpu --rehearse -n $(shell nproc) --dist loadgroup $(TESTS)

rehearse-memory:     ## the same, and kernels are watched for memory that is not theirs (several times as slow)
	@tools/environment dev
	@LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so.6)" \
		ASAN_OPTIONS=detect_leaks=0 \
		$(VENV)/python -m pytest -s -m gpu --rehearse -n $(shell nproc) --dist loadgroup $(TESTS)

lint:                ## style (ruff) and types (mypy, strict)
	@tools/environment dev
	@$(VENV)/ruff check .
	@$(VENV)/ruff format --check .
	@$(VENV)/mypy

docs:                ## build the documentation into site/ (warnings are errors)
	@tools/environment dev
	@NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

bench:               ## three minutes: ratios of times, and a blind run, beside the kept ones; says what differs
	@tools/environment dev
	@$(VENV)/python bench/small.py

bench-all:           ## run every command of docs/reference/benchmarks.md that this machine can (many hours); keeps what they find
	@tools/environment dev
	@$(VENV)/python bench/all.py

format:              ## let ruff rewrite the sources in the house style
	@tools/environment dev
	@$(VENV)/ruff check --fix --quiet . ; $(VENV)/ruff format .

clean:               ## remove everything that make produced
	rm -rf .venv demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis
