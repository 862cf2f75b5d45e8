# Two commands do everything from a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test check format bench clean

demo: $(STAMP)  ## the model that ships on the classic examples, and a picture of senses
	@$(BIN)/polyseme demo --plot demo.png

test: check  ## what CI runs
	@$(BIN)/pytest -n 2

check: $(STAMP)  ## style, types, architecture
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-cache

format: $(STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP)  ## speed on this CPU, beside what else is there; options in BENCH, see benchmarks/speed.py
	@$(BIN)/python benchmarks/speed.py $(BENCH)

# constraints.txt pins what was tested; the package itself asks only for lower bounds.
$(STAMP): pyproject.toml constraints.txt hatch_build.py polyseme/kernels/native.c
	@echo "Setting up .venv (once; a few minutes) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group dev -e '.[all]'
	@touch $@

clean:
	rm -rf .venv build dist
