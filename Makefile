# make demo   set up a virtual environment and run the main job
# make test   set up and pass the tests
# make browser  the tests in Chromium: pictures and pages as they are drawn
# make spark  the audits on a real local Spark (Java)
# make harm   wrong calls, kills, interrupts, hostile files: all of them (long)
# make check  lint, format and types
# make docs   write the generated pages and build the documentation site into build/site
# make pages  run every command of the how-to pages (long)
# make package  build the sdist and the wheel, install that, and use it
# make trackers  the tests against the real tracker libraries, in an environment of their own (a gigabyte)
# make matrix   the quick tests over versions of Python and torch (long, gigabytes)
# make bench  the scored run over lab and corpus, and the overhead table (long)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
IN_BROWSER := tests/report/test_report_browser.py tests/page/test_page_browser.py
ON_SPARK := tests/audits/test_spark.py
LEFT_OUT := --ignore tests/harm $(patsubst %,--ignore %,$(IN_BROWSER) $(ON_SPARK))

.PHONY: demo test browser spark harm check pages package trackers matrix bench format docs clean

demo: $(STAMP)
	$(BIN)/sawbones diagnose examples/translate.py || test $$? -eq 1  # 1: sick, as it should be
	$(BIN)/sawbones fix examples/translate.py || test $$? -eq 1  # 1: there is a patch

# Tests of hangs, kills and time-outs depend on when processes get their turn: what fails beside others is judged once more, alone.
# What needs a browser or Java is not among them: make browser spark, and CI after these.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope $(LEFT_OUT) || { test $$? -eq 1 && \
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(LEFT_OUT) --last-failed --last-failed-no-failures none --maxfail 3; }

browser: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(IN_BROWSER) -n 2

spark: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[spark]"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(ON_SPARK)

harm: $(STAMP)
	SAWBONES_HARM=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/harm -n 2 --timeout 900 -vv --durations 20

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

pages: $(STAMP)
	SAWBONES_PAGES=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/docs/test_walk_through.py -n 2 --timeout 900

package: $(STAMP)
	.ci/package

trackers:
	.ci/trackers

# CELLS="3.11:2.6.0 3.12:newest" chooses.
matrix:
	.ci/matrix $(CELLS)

bench: $(STAMP)
	$(BIN)/sawbones lab bench --out benchmarks/results/lab.md
	$(BIN)/python benchmarks/detection.py --out benchmarks/results/detection.md
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/trainer.py

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	$(BIN)/python docs/generate_optimizers.py
	$(BIN)/python docs/generate_catalogue.py
	$(BIN)/python docs/generate_symptoms.py
	$(BIN)/python docs/generate_texts.py
	$(BIN)/python docs/generate_api.py
	$(BIN)/python docs/build_site.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Two installs: the first pins torch's CPU build before anything that depends on torch is resolved.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Sawbones needs Python 3.11 or newer; this is " + sys.version)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib src > /dev/null || true  # on all cores; some packages hold files for other Pythons
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
