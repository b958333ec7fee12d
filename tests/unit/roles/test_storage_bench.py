"""The storage_bench role."""

from __future__ import annotations

import shlex

import pytest

from rackwright.model.cluster import Cluster
from rackwright.model.storage import Filesystem
from rackwright.osfamily.known import RELEASES
from rackwright.osfamily.names import names
from rackwright.roles.storage_bench.options import StorageBenchOptions
from rackwright.roles.storage_bench.verify import ASK_TORCH, CHECKS, ENGINES
from tests.unit.roles.fake_facts import installed
from tests.unit.roles.fake_host import FakeHost, claimed, commands, errors_in, judged, planned
from tests.unit.roles.sites import site, worker

ROLE = "storage_bench"
PACKAGES, FIO, TORCH = (check.name for check in CHECKS)
EACH = pytest.mark.parametrize("os", RELEASES.values(), ids=str)
LISTED = "Available IO engines:\n\tmmap\n\tsync\n\tpsync\n\tlibaio\n"
OWN = "/software/torch/bin/python"


def filesystem(**changes):
    fields = {"name": "data", "kind": "nfs", "purpose": "data", "path": "/data", "export": "/srv"}
    return Filesystem(**{**fields, **changes})


def bench_site(options=None, *, one=None, **changes) -> Cluster:
    """gpu1 and gpu2 use a filesystem."""
    given = {ROLE: options or StorageBenchOptions()}
    cluster = site({}, **changes)
    one = one or filesystem()
    nodes = [
        node.model_copy(update={"filesystems": () if node.primary else (one,)}).with_options(given)
        for node in cluster.nodes
    ]
    return cluster.model_copy(update={"nodes": tuple(nodes), "storage": {one.name: one}})


def test_it_runs_on_workers_with_a_filesystem_to_write_to():
    assert [node.name for node in bench_site().running(ROLE)] == ["gpu1", "gpu2"]
    assert bench_site(one=filesystem(read_only=True)).running(ROLE) == ()
    assert site({ROLE: StorageBenchOptions()}).running(ROLE) == ()


@EACH
def test_it_is_planned_on_every_release(os):
    cluster = bench_site(os=os)
    [operation] = [one for one in planned(cluster, worker(cluster)).operations if one.role == ROLE]
    assert operation.name == "Install the storage benchmark tools"
    assert "fio" in commands(planned(cluster, worker(cluster)), operation.name)[0]


@EACH
def test_pytorch_is_the_oss_where_it_has_one(os):
    options = StorageBenchOptions(torch=True)
    cluster = bench_site(options, os=os)
    own = names(os.family, "torch").packages
    assert options.packages(worker(cluster)) == (*names(os.family, "fio").packages, *own)
    found = list(options.problems(cluster))
    assert (found == []) is bool(own)
    if found:
        assert found == [
            (
                "torch",
                f"{os} has no PyTorch package (gpu1).",
                "install it into a folder and name its Python, e.g. `python: /software/torch/bin/python`",
            )
        ]
    assert list(StorageBenchOptions().problems(cluster)) == []


def test_ports():
    cluster = bench_site(StorageBenchOptions(port=4000))
    [listener] = cluster.by_name["gpu1"].options[ROLE].listeners(worker(cluster))
    assert (listener.program, listener.ports) == ("python3", (4000, 4001))
    assert errors_in(StorageBenchOptions, {"port": 65535}) == ["Input should be less than or equal to 65534"]


def result(check, replies, options=None, one=None):
    cluster = bench_site(options, one=one)
    found = judged(ROLE, CHECKS, check, cluster, worker(cluster), FakeHost(replies))
    return found.status.value, found.evidence


def test_packages_are_installed():
    family = worker(bench_site()).family
    there = installed(family, ("fio",))
    assert result(PACKAGES, there) == ("PASS", "1 packages")
    assert result(PACKAGES, installed(family, ("fio",), missing=("fio",))) == ("FAIL", "not installed: fio")
    assert result(PACKAGES, {})[0] == "UNKNOWN"


def test_fio_has_the_declared_engines():
    assert result(FIO, {ENGINES: LISTED}) == ("PASS", "fio has psync")
    uring = filesystem(bench={"engine": "io_uring"})
    assert result(FIO, {ENGINES: LISTED}, one=uring) == ("FAIL", "fio has no engine io_uring")
    assert result(FIO, {ENGINES: "usage\n"}) == ("UNKNOWN", "`fio --enghelp` lists no engine")
    assert result(FIO, {})[0] == "UNKNOWN"


def test_pytorch_can_save_checkpoints():
    asks = f"timeout 120 {OWN} -I -c {shlex.quote(ASK_TORCH)}"
    own = StorageBenchOptions(python=OWN)
    assert result(TORCH, {asks: "2.6.0+debian True True\n"}, own) == ("PASS", "torch 2.6.0+debian")
    assert result(TORCH, {asks: "1.13.1 True False\n"}, own)[0] == "FAIL"
    assert result(TORCH, {asks: "2.6.0 False True\n"}, own) == ("FAIL", "torch 2.6.0 lacks gloo")
    assert result(TORCH, {asks: "hello\n"}, own)[0] == "UNKNOWN"
    assert result(TORCH, {asks: (1, "", "ModuleNotFoundError: No module named 'torch'")}, own)[0] == "UNKNOWN"
    slow = result(TORCH, {asks: (124, "", "")}, own)
    assert slow == ("UNKNOWN", f"{OWN} did not load torch within 120 s")
    assert TORCH not in claimed(ROLE, CHECKS, worker(bench_site()))
    assert TORCH in claimed(ROLE, CHECKS, worker(bench_site(own)))
