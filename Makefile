# `make demo` and `make test` do all the set-up on a fresh Debian 12 machine (root, Python 3.11).
# `make check` is the fast part alone (no lab, install or slow test): no root, no network once the
# virtual environment exists.

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Each file in one process: what a file builds once is built once.
BY_FILE := --dist loadfile
# python3 in a test is the one that runs it, not a shim that first looks for one.
TEST_PATH := PATH="$(abspath $(BIN)):$$PATH"
LAB_PYTEST = $(BIN)/pytest -q -m "lab and not proof" --durations=15

# Records a part's duration in the file RACKWRIGHT_DURATIONS (.ci/run sets it): $(TIMED) PART COMMAND
TIMED := .ci/timed

# Without compiled files every start would compile everything again, the lab's programs included.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-kubernetes demo-ray test check lint types fast-tests unit-tests slurm-rack plain-rack other-racks bench setup system clean
.PHONY: docs proof proof-status proof-pages system-vm system-fabric system-baremetal

demo: setup system
	$(BIN)/rackwright lab up inventory/lab.yaml
	$(BIN)/rackwright accept inventory/lab.yaml --yes

# A control plane and two workers; the first time Kubernetes is built from Debian's source, which takes 10 to 20 minutes.
demo-kubernetes: setup system
	$(BIN)/rackwright lab up inventory/kubernetes.yaml
	$(BIN)/rackwright accept inventory/kubernetes.yaml --yes

# Ray on a head and two workers; nodes take its wheels from a page on the rack's bridge.
demo-ray: setup system
	$(BIN)/rackwright lab up inventory/ray.yaml
	$(BIN)/python -m tests.ray_wheels lab-ray 10.78.0.1 $(BIN)/rackwright apply inventory/ray.yaml --yes
	$(BIN)/rackwright verify inventory/ray.yaml --role ray

# Lab tests mostly wait, so all parts run at once; the two longest have CPU priority.
test: setup system
	$(MAKE) --no-print-directory -j5 --output-sync=target slurm-rack plain-rack other-racks unit-tests types

# Type checks run beside the tests. Tests that take seconds without a lab are marked slow and run in `make test`.
check: lint
	$(MAKE) --no-print-directory -j2 --output-sync=target types fast-tests

lint: setup
	$(TIMED) format $(BIN)/ruff format --check rackwright roles deploys tests
	$(TIMED) lint $(BIN)/ruff check rackwright roles deploys tests

types: setup
	$(TIMED) types nice $(BIN)/mypy

fast-tests: setup
	$(TEST_PATH) $(TIMED) fast-tests $(BIN)/pytest -q -n 3 $(BY_FILE) -m "not lab and not install and not slow and not proof"

# Everything that needs no lab and is not part of a proof suite, collected once.
unit-tests: lint
	$(TEST_PATH) $(TIMED) unit-tests nice -n 3 $(BIN)/pytest -q -n 2 $(BY_FILE) -m "not lab and not proof"

slurm-rack: setup system
	$(TIMED) slurm-rack $(LAB_PYTEST) tests/racks/slurm

# Two racks of one kind: its tests wait most of the time.
plain-rack: setup system
	$(TIMED) plain-rack $(LAB_PYTEST) -n 2 $(BY_FILE) tests/racks/plain

other-racks: setup system
	$(TIMED) other-racks nice -n 3 $(LAB_PYTEST) --ignore tests/racks/slurm --ignore tests/racks/plain tests/racks

# Suites of tests that are too long for `make test`; results go to docs/proof.json and the pages made from it.
# One part: make proof SUITE=dkms; SMOKE=1; SMOKE=1 SINCE=origin/main. AGAIN=1 repeats what has passed.
proof: setup system system-vm system-fabric system-baremetal
	$(BIN)/python -m tests.proof run $(SUITE) $(if $(SMOKE),--smoke) $(if $(SINCE),--since $(SINCE)) $(if $(AGAIN),--again)

# The age of each suite's last result.
proof-status: setup
	$(BIN)/python -m tests.proof status

# docs/proof.md and README's table, from docs/proof.json.
proof-pages: setup
	$(BIN)/python -m tests.proof pages

# The same no-change job by rackwright, pyinfra and Ansible; results go to docs/benchmarks.json.
# One part: make bench BENCH="--sizes 1,10 --rounds 1 --endpoints 0 --only rackwright"
bench: setup system
	$(BIN)/python -m tests.bench.run $(BENCH)
	$(BIN)/python -m tests.bench.checks
	RACKWRIGHT_TEST_NODES=100 $(BIN)/pytest -q -s tests/racks/many

setup: $(STAMP)

$(STAMP): pyproject.toml requirements-dev.txt
	.ci/bootstrap venv $(PYTHON) $(VENV)
	touch $(STAMP)

# The documentation as a site, below build/site: it opens from the disk, and searches there too. A link or an anchor
# that leads nowhere ends the build.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet -f docs/site/mkdocs.yml
	@echo "build/site/index.html"

# What the lab needs on the host; quick when already installed.
system:
	.ci/bootstrap system

# What its virtual machines need in addition: `make proof` boots some, `make test` none.
system-vm:
	.ci/bootstrap vm

system-fabric:
	.ci/bootstrap fabric

system-baremetal:
	.ci/bootstrap baremetal

clean:
	rm -rf $(VENV) .cache build dist reports
