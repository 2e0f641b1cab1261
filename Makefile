# One command each. `make help` lists them.
#
# Everything is installed into $(VENV); stamps in it remember what was done, so that a second run
# starts at once. pip's own settings (PIP_INDEX_URL, PIP_FIND_LINKS, …) are respected.

VENV   ?= .venv
ARGS   ?=
SEED   ?=
TARGET ?= connection
FUZZ   ?= $(VENV)/fuzz
# The first of these that is Python 3.11 or later; `make PYTHON=/path/to/python …` decides itself.
PYTHON ?= $(shell for name in python3 python3.11 python3.12 python3.13 python3.14; do \
              command -v $$name >/dev/null 2>&1 || continue; \
              $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
              echo $$name; break; done)

BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet install
# A test that is marked `timing` may have a second try, which is listed at the end. RERUNS=0 allows
# none.
RERUNS ?= 1
SECOND_TRIES := $(if $(filter 0,$(RERUNS)),-p no:rerunfailures)
PYTEST := $(BIN)/python -m pytest $(SECOND_TRIES)
# Files of tests that run at once, more than there are cores: tests of servers mostly wait. WORKERS=0
# is one after another in one process, for a debugger.
WORKERS  ?= 4
# conftest.py puts the long files first; xdist would put those with the most tests first. Expanded
# where it is used, as a target may have WORKERS of its own.
PARALLEL  = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Brokers, clients and Spark find the disk that their users have; see tests/folders.py.
ON_DISK := TMPDIR=$${TMPDIR:-/tmp}
# Every worker loads all tests, and hundreds of tests start a server: with this set, as in many
# images, each of them would compile its sources anew. Empty is the same as not set.
export PYTHONDONTWRITEBYTECODE :=
STAMPS := $(VENV)/stamps
# Reads what pip says of a build, and its status: tells each module, or all of it where it fails.
define TELL_COMPILED
/^status [0-9]+$$/ { if ($$2) { printf "%s", said; exit $$2 } exit }
{ said = said $$0 "\n" }
/building .* extension/ { print "make:   " $$2; fflush() }
endef
export TELL_COMPILED
# Spark's tests run in an environment that has the built wheel, beside the packages of $(VENV).
SPARK_PYTHON := $(VENV)/spark/bin/python
SPARK_TESTS   = $(ON_DISK) $(SPARK_PYTHON) -m pytest $(PARALLEL) $(SECOND_TRIES)
PACKAGES      := gateway hutch pyspark_hutch store
WHEEL_SOURCES  = pyproject.toml setup.py $(shell find $(PACKAGES) -name '*.py' -o -name '*.pxd')
# What is compiled: gateway/kernels.py knows, and can be asked before anything is installed.
ASKED         := $(or $(wildcard $(BIN)/python),$(PYTHON))
COMPILED      := $(if $(ASKED),$(shell $(ASKED) -c 'from gateway.kernels import HOT_OBJECTS, KERNELS; print(*(name.replace(".", "/") for name in KERNELS + HOT_OBJECTS))'))
KERNEL_SOURCES = setup.py gateway/kernels.py hutch/bytes.pxd $(wildcard $(COMPILED:=.py) $(COMPILED:=.pxd))
# Whatever was compiled: a module that is no longer would still be loaded from its file.
remove_compiled = find $(PACKAGES) '(' -name '*.so' -o -name '*.c' -o -name '*.html' ')' -delete
# One of pyproject's lists, as it was locked: what a changed file or an unknown version is refused by.
LOCKED := --no-deps --require-hashes -r compat/locks

# What is built from sources is packed into a wheel and unpacked at once. Spark is 400 MB of archives,
# and most of the time would be spent on making them no smaller.
BUILT_QUICKLY := --no-build-isolation --config-settings=--build-option=--compression=stored

# What the libraries of the server are for: HTTP, TLS, passwords, patterns, settings.
NEWEST_TESTS := $(addprefix tests/unit/gateway/,broker/access management/http network/test_certificate.py settings) \
                $(addprefix tests/integration/,test_management.py test_management_hostile.py test_management_strict.py test_tls.py)

# What takes longer than a cup of coffee is asked for by name.
BY_HAND := bench or compat or soak or spark
NOT_QUICK := $(BY_HAND) or integration or search or simulation or slow

.DELETE_ON_ERROR:
.SUFFIXES:
# Each target that `make help` lists is a command, and no file.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*[#][#] .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ------------------------------------------------------------------------------------ running it

run: $(STAMPS)/kernel ## install, build, and serve on port 5552 (ARGS="--port 6000 …")
	@exec $(BIN)/hutch serve $(ARGS)

setup: $(STAMPS)/dev $(STAMPS)/kernel ## install everything for development, build the kernels

# ---------------------------------------------------------------------------------------- testing

test: $(STAMPS)/test $(STAMPS)/kernel ## every test but those that need a real broker or a long time
	$(PYTEST) $(PARALLEL) -m "not ($(BY_HAND))" $(ARGS)

quick: $(STAMPS)/test $(STAMPS)/kernel ## the tests that take seconds
	$(PYTEST) $(PARALLEL) -q -m "not ($(NOT_QUICK))" $(ARGS)

test-both: $(STAMPS)/test ## the quick tests with the kernels uncompiled, then compiled
	@$(MAKE) --no-print-directory kernel-clean
	$(PYTEST) $(PARALLEL) -q -m "not ($(NOT_QUICK))" $(ARGS)
	@$(MAKE) --no-print-directory quick

slowest: $(STAMPS)/test $(STAMPS)/kernel ## every test, and then what each file took, its processes' CPU time included
	$(PYTEST) -p tests.slowest $(PARALLEL) -q -m "not ($(BY_HAND))" $(ARGS)

uncompiled: $(STAMPS)/test $(STAMPS)/kernel ## the tests of hot objects on the sources as they stand
	$(BIN)/python -m tests.uncompiled $(SECOND_TRIES) $(PARALLEL) -q $(ARGS)

integration: $(STAMPS)/test $(STAMPS)/kernel ## a running server, real sockets
	$(PYTEST) -m integration $(ARGS)

coverage: $(STAMPS)/test-spark ## how much of each module the tests of its room reach
	$(BIN)/python -m tests.coverage $(SECOND_TRIES) $(PARALLEL) $(ARGS)

flaky: $(STAMPS)/test $(STAMPS)/kernel ## what failed in the last run, or ARGS="tests/…", fifty times on a busy machine
	$(BIN)/python -m tests.flaky $(ARGS)

# Both go on where they were stopped. ARGS="search bench" runs these parts, ARGS=--list shows all.
night: $(STAMPS)/dev $(STAMPS)/kernel ## everything else, in at most 100 minutes (table: build/night.md)
	$(BIN)/python -m tests.night $(ARGS)

long: $(STAMPS)/dev $(STAMPS)/kernel ## what takes hours: the searches of the night, much longer
	$(BIN)/python -m tests.night --long $(ARGS)

sim: $(STAMPS)/test $(STAMPS)/kernel ## the simulation; SEED=n replays one history
	$(if $(SEED),HUTCH_TEST_SEED=$(SEED)) $(PYTEST) -m "simulation and not soak" $(ARGS)

cluster: $(STAMPS)/test $(STAMPS)/kernel ## two members and three servers of their log on this machine (docs/cluster.md)
	@$(BIN)/python -m tests.integration.cluster $(ARGS)

cluster-test: $(STAMPS)/test $(STAMPS)/kernel ## clusters, and the store on a log of three real servers
	HUTCH_CONFORMANCE_LOG=whole $(PYTEST) tests/integration/cluster tests/conformance $(ARGS)

cluster-faults: $(STAMPS)/test $(STAMPS)/kernel ## fifty faults of a cluster under clients that go on
	HUTCH_TEST_FACTOR=25 $(PYTEST) -s tests/integration/cluster/test_faults.py $(ARGS)

soak: $(STAMPS)/test $(STAMPS)/kernel ## minutes to hours: load, kills, restarts
	$(PYTEST) -m soak $(ARGS)

mewbase-kills: $(STAMPS)/test $(STAMPS)/kernel ## kill -9 in loops of 200: transactions of mewbase are whole, binders are their channels folded
	HUTCH_MEWBASE_KILLS=200 $(PYTEST) tests/integration/mewbase/test_kills.py tests/integration/mewbase/test_binders.py $(ARGS)

# Stopped by Ctrl-C and called again it goes on; remove the file to begin anew.
filter-rates: $(STAMPS)/test $(STAMPS)/kernel ## ten million look-ups of filter values, none may be missed
	$(BIN)/python -m tests.property.gateway.filter_rates --state $(VENV)/filter-rates.json $(ARGS)

damage: $(STAMPS)/test $(STAMPS)/kernel ## 20,000 damaged places in data directories, nothing wrong may be answered
	$(BIN)/python -m tests.damage --state $(VENV)/damage.json $(ARGS)

password-times: $(STAMPS)/test ## ten thousand refused logins of each kind, none may be told from another
	$(BIN)/python -m tests.property.gateway.password_times --state $(VENV)/password-times.json $(ARGS)

# These are stopped by Ctrl-C and go on where they were; remove $(FUZZ) to begin anew.
fuzz: $(STAMPS)/test $(STAMPS)/kernel ## any bytes at TARGET=frame|publish|chunk|definitions|request|connection|answers|pravega|pravega-early|mewbase
	$(BIN)/python -m tests.fuzz $(TARGET) --kept $(FUZZ) $(ARGS)

network-fuzz: $(STAMPS)/test $(STAMPS)/kernel ## ten minutes of damaged requests to a running store, then ten million frames to streams
	$(BIN)/python -m tests.integration.pravega.network_fuzz
	$(BIN)/python -m tests.integration.network_fuzz --state $(FUZZ)/network.json $(ARGS)

sanitize: $(STAMPS)/test ## compiled modules with checks of memory and arithmetic: tests, then damaged inputs
	$(BIN)/python -m tests.sanitize --folder $(VENV)/sanitize --kept $(FUZZ) $(ARGS)

dedup-schedules: $(STAMPS)/test $(STAMPS)/kernel ## ten thousand schedules of named publishers and restarts
	$(BIN)/python -m tests.property.gateway.dedup_schedules --state $(FUZZ)/schedules.json $(ARGS)

wheel: $(STAMPS)/wheel ## build dist/*.whl, which is what Spark's workers install
	@ls dist/*.whl

spark-setup: $(STAMPS)/spark-environment $(STAMPS)/oldest-spark-environment ## install what Spark's tests run in

# Each worker has a Spark of its own, whose tasks run two at once.
test-spark spark-both: WORKERS := 2
test-spark: $(STAMPS)/spark-environment $(STAMPS)/kernel ## the data source in a real Spark (needs Java 17 or later)
	$(SPARK_TESTS) -m "spark and not (bench or soak or rabbitmq)" tests/spark $(ARGS)

spark-both: $(STAMPS)/spark-environment $(STAMPS)/kernel ## the same, and on a real RabbitMQ what must hold there too
	$(SPARK_TESTS) -m "spark and not (bench or soak)" tests/spark $(ARGS)

spark-cluster: $(STAMPS)/spark-environment $(STAMPS)/kernel ## the same on a master and two workers, and by Spark Connect
	$(ON_DISK) $(SPARK_PYTHON) -m pytest $(SECOND_TRIES) -m spark tests/spark_cluster $(ARGS)

# ARGS="server in-reads --rows 100000" takes the cases that have one of the words in their names,
# ARGS=--short all of them with few rows.
spark-chaos: $(STAMPS)/spark-environment $(STAMPS)/kernel ## Spark copies a million rows through kills of each kind, none may be lost or doubled
	$(ON_DISK) $(SPARK_PYTHON) -m tests.spark.chaos $(ARGS)

test-oldest-spark: $(STAMPS)/oldest-spark-environment $(STAMPS)/kernel ## a round trip, and a job from the archive, with the oldest Spark that will do
	$(ON_DISK) $(VENV)/oldest-spark/bin/python -m pytest $(SECOND_TRIES) tests/spark/test_round_trip.py tests/spark/test_archive.py $(ARGS)

# In one process, which can print the tables; each of more workers starts a broker of its own.
compat: WORKERS := 0
compat: $(STAMPS)/test $(STAMPS)/kernel ## real clients, and the real broker side by side
	$(ON_DISK) $(PYTEST) $(PARALLEL) -m "compat and not (bench or soak)" $(ARGS)

# Stopped by Ctrl-C and called again it goes on; remove the file to begin anew.
differential: $(STAMPS)/test $(STAMPS)/kernel ## a hundred thousand drawn sequences, on RabbitMQ and Hutch
	$(BIN)/python -m compat.differential.generated --state $(VENV)/differential.json $(ARGS)

# The first word of ARGS names the suite, and the others are its run's.
suites: $(STAMPS)/test $(STAMPS)/kernel ## a client's own tests on Hutch: ARGS=go|java|node|rstream|rust|tutorials
	$(BIN)/python -m compat.suites get $(firstword $(ARGS))
	$(BIN)/python -m compat.suites $(ARGS)

# Each is built once, which takes a minute, and kept in $(VENV)/roots: a gigabyte each.
roots: $(STAMPS)/test ## make test as an ordinary user on bare Debian 12, 13 and testing (needs root)
	$(BIN)/python -m compat.roots --folder $(VENV)/roots $(ARGS)

broker: $(STAMPS)/test ## start a reference RabbitMQ and keep it until interrupted
	$(BIN)/python -m compat.broker $(ARGS)

bench: $(STAMPS)/bench $(STAMPS)/kernel ## Hutch against RabbitMQ, or AGAINST=COMMIT, on this machine (let it be quiet)
	$(BIN)/python -m compat.bench$(if $(AGAINST),.against $(AGAINST)) $(ARGS)

perf-test: $(STAMPS)/test $(STAMPS)/kernel ## the official stream-perf-test on both servers (HUTCH_PERF_TEST=its jar)
	$(BIN)/python -m compat.bench --no-pravega --only perf_test_20000 --only perf_test_full $(ARGS)

bench-spark: $(STAMPS)/spark-environment $(STAMPS)/kernel ## Spark on streams against its own Parquet (let the machine be quiet)
	$(SPARK_PYTHON) -m compat.spark_bench $(ARGS)

# --------------------------------------------------------------------------------------- checking

check: lint types imports quick ## lint, types, imports, sizes, documents and the quick tests

lint: $(STAMPS)/dev ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMPS)/dev ## mypy --strict
	$(BIN)/mypy

imports: $(STAMPS)/dev ## the import arrows
	$(BIN)/lint-imports

docs: $(STAMPS)/kernel ## write the generated pages anew (a tidy test fails while they are old)
	$(BIN)/hutch config --reference > docs/configuration.md.new
	@mv docs/configuration.md.new docs/configuration.md
	$(BIN)/python -m gateway.stream.document docs/protocol.md docs/protocol-pipeline.md
	$(BIN)/python -m gateway.pravega.document docs/pravega-wire.md docs/pravega-early.md
	$(BIN)/python -m pyspark_hutch.options.page docs/spark.md

proto: $(STAMPS)/test ## generate the messages of Pravega's controller anew from their source
	@$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. gateway/pravega/controller/rpc/controller.proto

lock: $(STAMPS)/test ## choose versions anew for what is installed, with hashes (compat/locks)
	@"$(PYTHON)" -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip --quiet install uv
	PATH="$(VENV)/lock/bin:$$PATH" $(BIN)/python -m compat.locks

# The newest releases are in no lock, so they have no hashes; only tests of what uses them run.
newest: $(STAMPS)/test $(STAMPS)/kernel ## the newest of what the server needs, also above its upper bounds
	@$(call overlay,$(VENV)/newest)
	@$(BIN)/python -m compat.locks --newest > $(VENV)/newest/wanted.txt
	@$(BIN)/python -m pip --disable-pip-version-check --quiet --python $(VENV)/newest/bin/python install --upgrade --upgrade-strategy eager -r $(VENV)/newest/wanted.txt
	@newer=$$($(BIN)/python -m pip freeze --path $(VENV)/newest/lib/python*/site-packages); \
	    if [ -z "$$newer" ]; then echo "make: nothing is newer than what is locked"; exit; fi; \
	    echo "make: trying" $$newer; \
	    $(VENV)/newest/bin/python -m pytest $(PARALLEL) -q $(NEWEST_TESTS) $(ARGS)

fmt: $(STAMPS)/dev ## ruff: format, and mend what can be mended
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# ---------------------------------------------------------------------------------------- kernels

kernel: $(STAMPS)/kernel ## compile the kernels in place

kernel-clean: ## back to the interpreted kernels
	@$(remove_compiled)
	@rm -f $(STAMPS)/kernel

clean: kernel-clean ## remove the environment and everything built (never data)
	@rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# ------------------------------------------------------------------------------------ environment

$(STAMPS)/venv:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or later on the PATH (Debian: apt install python3 python3-venv python3-dev; or make PYTHON=/path/to/python)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than Python 3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) cannot make virtual environments (Debian: apt install python3-venv)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import pathlib, sys, sysconfig; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' || { echo "make: $(PYTHON) has no Python.h, which the kernels are compiled against (Debian: apt install python3-dev)" >&2; exit 1; }
	@command -v $${CC:-gcc} >/dev/null 2>&1 || command -v cc >/dev/null 2>&1 || { echo "make: no C compiler for the kernels (Debian: apt install gcc libc6-dev)" >&2; exit 1; }
	@echo "make: creating $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/run: pyproject.toml $(wildcard compat/locks/*.txt) | $(STAMPS)/venv
	@echo "make: installing what the server and its build need"
	@$(PIP) $(LOCKED)/build.txt
	@$(PIP) $(LOCKED)/run.txt
	@touch $@

$(STAMPS)/test: $(STAMPS)/run
	@echo "make: installing what the tests need"
	@$(PIP) $(LOCKED)/bridge.txt
	@$(PIP) $(LOCKED)/test.txt
	@touch $@

$(STAMPS)/bench: $(STAMPS)/test
	@echo "make: installing what draws the bench's plots"
	@$(PIP) $(LOCKED)/bench.txt
	@touch $@

$(STAMPS)/test-spark: $(STAMPS)/bench
	@echo "make: installing Spark, which takes half a minute"
	@$(PIP) $(BUILT_QUICKLY) $(LOCKED)/test-spark.txt
	@touch $@

# What is compiled in place is the wheel's too: in the folder of the build, and newer than the C that
# it came from, it is not compiled again.
$(STAMPS)/wheel: $(WHEEL_SOURCES) $(STAMPS)/kernel
	@echo "make: building the wheel"
	@rm -rf build/lib* build/bdist* dist
	@library=build/$$($(BIN)/python -c 'import sys, sysconfig; print(f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}")') \
	    && mkdir -p $$library && find $(PACKAGES) -name '*.so' | tar -cf - -T - | tar -xmf - -C $$library
	@$(BIN)/python -m pip --disable-pip-version-check --quiet wheel --no-build-isolation --no-deps --wheel-dir dist .
	@touch $@

# Packages of $(VENV) come behind the environment's own.
overlay = rm -rf $(1) && $(BIN)/python -m venv --without-pip $(1) \
    && $(BIN)/python -c 'import pathlib, sysconfig; pathlib.Path("$(1)/lib", "python" + sysconfig.get_python_version(), "site-packages", "base.pth").write_text(sysconfig.get_path("purelib"))'
# Its own are the wheel, and another Spark if one is given.
spark_environment = $(call overlay,$(1)) && $(BIN)/python -m pip --disable-pip-version-check --quiet --python $(1)/bin/python install --no-deps dist/*.whl $(2)

$(STAMPS)/spark-environment: $(STAMPS)/test-spark $(STAMPS)/wheel
	@$(call spark_environment,$(VENV)/spark)
	@touch $@

$(STAMPS)/oldest-spark-environment: $(STAMPS)/test-spark $(STAMPS)/wheel
	@echo "make: installing the oldest Spark that will do"
	@$(call spark_environment,$(VENV)/oldest-spark,)
	@$(BIN)/python -m pip --disable-pip-version-check --quiet --python $(VENV)/oldest-spark/bin/python install $(BUILT_QUICKLY) $(LOCKED)/oldest-spark.txt
	@touch $@

$(STAMPS)/dev: $(STAMPS)/test-spark
	@echo "make: installing what development needs"
	@$(PIP) $(LOCKED)/dev.txt
	@touch $@

# An editable installation compiles in place. The old files are removed first: writing into one that
# a running server has mapped would kill it.
$(STAMPS)/kernel: $(KERNEL_SOURCES) $(STAMPS)/run
	@echo "make: compiling the kernels, which takes a minute or two"
	@$(remove_compiled)
	@{ $(BIN)/python -m pip --disable-pip-version-check install --verbose --no-build-isolation --no-deps --editable . 2>&1; \
	    echo "status $$?"; } | awk "$$TELL_COMPILED"
	@touch $@
