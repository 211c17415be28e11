# Every target first sets up what it needs, which takes no time once it is done.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo check test lint types imports format bench lock docs golden clean java jars

# Connectors that Spark 4.3 does not include and that tests of tables and formats need. Iceberg has no build for it yet.
JARS         ?= $(HOME)/.cache/clew/jars
CONNECTORS   := org.postgresql:postgresql:42.7.14 io.delta:delta-spark_4.2_2.13:4.4.0 io.delta:delta-storage:4.4.0
SPARK_HAS    := io.netty,org.slf4j,commons-codec,commons-logging,org.apache.httpcomponents
MAVEN_COPIES := org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r target meaning; do printf '  make %-9s %s\n' "$$target" "$$meaning"; done

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Clew needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.11 ..."; exit 1; }
	@echo "Setting up $(VENV) (about a minute the first time; PySpark is large) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "$(PYTHON) cannot create virtual environments; Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

setup: $(STAMP) ## create .venv with everything in it, at the pinned versions

java:
	@command -v java >/dev/null 2>&1 || { echo "Java 17 or newer is missing: install it (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"; exit 1; }
	@major=$$(java -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -1); test "$${major:-0}" -ge 17 || \
		{ echo "Java $${major:-?} is too old: install Java 17 or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"; exit 1; }

demo: java $(STAMP) ## a tour of the sample workspace
	@$(BIN)/python demo/run.py

check: $(STAMP) lint types imports ## style, types, imports, and the tests that need no JVM, database server or browser
	@echo "Running the tests that need no JVM, database server or browser; 'make test' runs all ..."
	@$(BIN)/python -m pytest -n 2 -m 'not (spark or postgres or browser or slow)' --hypothesis-profile=quick

test: java $(STAMP) lint types imports ## everything that must pass: style, types, imports, all tests
	@echo "Running all tests ..."
	@$(BIN)/python -m pytest -n 2

lint: $(STAMP) ## style
	@echo "Checking style (ruff) ..."
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .

types: $(STAMP) ## types
	@echo "Checking types (mypy --strict) ..."
	@$(BIN)/mypy

imports: $(STAMP) ## which package may import which
	@echo "Checking the import contract ..."
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo

format: $(STAMP) ## rewrite the code in the house style
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

bench: java $(STAMP) ## measure, print ratios, write benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks

jars: ## drivers, formats and S3 for Spark that some tests use, into ~/.cache/clew/jars
	@command -v mvn >/dev/null 2>&1 || { echo "Maven is missing: install it (Debian and Ubuntu: apt-get install maven; macOS: brew install maven)"; exit 1; }
	@mkdir -p $(JARS)
	@for artifact in $(CONNECTORS); do \
		file=$$(echo $$artifact | sed -E 's/.*:(.*):(.*)/\1-\2.jar/'); test -s $(JARS)/$$file && continue; \
		echo "Fetching $$file ..."; mvn -q -B $(MAVEN_COPIES) -Dartifact=$$artifact -DoutputDirectory=$(JARS) || exit 1; done
	@test -n "$$(ls $(JARS)/s3/hadoop-aws-*.jar 2>/dev/null)" || { echo "Fetching S3 for Spark ..."; \
		mvn -q -B -f tools/s3_jars/pom.xml $(MAVEN_COPIES)-dependencies -DoutputDirectory=$(JARS)/s3 -DexcludeGroupIds=$(SPARK_HAS); }

docs: $(STAMP) ## regenerate the reference pages from the declarations
	@$(BIN)/python -m tools.reference_pages
	@$(BIN)/python -m tools.command_pages

golden: $(STAMP) ## rewrite the golden files of the tests, on purpose
	@$(BIN)/python -m pytest -n 2 --update-golden

lock: $(STAMP) ## rewrite constraints.txt from what is installed
	@$(BIN)/python -m pip freeze --exclude-editable --disable-pip-version-check | sort -f > constraints.new
	@{ echo "# Exact versions of everything that is installed. Written by 'make lock'."; grep -E '^[A-Za-z0-9._-]+==' constraints.new; echo "hatchling==1.33.0"; } > constraints.txt
	@rm constraints.new

clean: ## remove what was built
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
