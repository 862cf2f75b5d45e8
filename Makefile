# Three commands do everything from a fresh clone: `make demo`, `make test` and `make docs`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
STAMP := .venv/.installed
DEV_STAMP := .venv/.installed-dev

.PHONY: demo test check format fuzz docs bench browser clean

demo: $(STAMP)  ## the model that ships on the classic examples, and a picture of senses
	@$(BIN)/polyseme demo --plot demo.png

test: check browser  ## what CI runs
	@$(BIN)/pytest -n 2

check: $(DEV_STAMP)  ## style, types, architecture
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-cache

format: $(DEV_STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

fuzz: $(DEV_STAMP)  ## every parser against hostile input, for an hour or so; FUZZ_EXAMPLES=200000 tries more, FUZZ="-k conll" less
	@HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -n 2 --timeout 0 tests/fuzz $(FUZZ)

docs: $(DEV_STAMP)  ## the documentation as a site in site/; a dead link or a missing reference is an error
	@$(BIN)/python -m zensical build --strict
	@echo "site/index.html written; to search it too: $(BIN)/python -m http.server --directory site"

bench: $(STAMP)  ## speed on this CPU, beside what else is there; options in BENCH, see benchmarks/speed.py
	@$(BIN)/python benchmarks/speed.py $(BENCH)

# Debian's own, for the tests of the page; where it cannot be installed they are skipped, with the reason.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  echo "Installing a browser for the tests of the page (once; some minutes) ..." && \
	  { timeout 120 apt-get -qq update; DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq -y --no-install-recommends install chromium; } >/dev/null 2>&1; \
	} || true

# constraints.txt pins what was tested; the package itself asks only for lower bounds.
$(STAMP): pyproject.toml constraints.txt hatch_build.py polyseme/kernels/native.c
	@echo "Setting up .venv (once; a few minutes) ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) "pip>=25.1"
	@$(PIP) -c constraints.txt -e '.[all]'
	@touch $@

# What only developers need is installed apart, so that the demo does not wait for it.
$(DEV_STAMP): $(STAMP)
	@echo "Installing what tests and documentation need (once; a minute or so) ..."
	@$(PIP) -c constraints.txt --group dev
	@touch $@

clean:
	rm -rf .venv build dist site
