"""Filesystems of the cluster file in the health check: expected by themselves, and no node blamed for a server."""

from __future__ import annotations

import pytest

from rackwright.catalog.read import catalogue
from rackwright.health.declare import expected_of
from rackwright.health.expected import Expected, ExpectedMount
from rackwright.health.judge import judge
from rackwright.health.options import HealthOptions, RequiredMount
from rackwright.health.verdict import Action
from rackwright.model.storage import FilesystemKind
from rackwright.model.types import NodeRole, Platform
from rackwright.roles.nfs_client.options import NfsClientOptions
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from rackwright.status import Status
from tests.factories import make_address, make_cluster, make_node
from tests.unit.health.fake_node import HANGS, document
from tests.unit.health.faults import command, edit, log
from tests.unit.health.healthy import healthy
from tests.unit.roles.nfs_sites import nfs

SKU = catalogue()["t4-4x"]
LAYOUT = StorageLayoutOptions.model_validate(
    {"disks": {"a": {"slot": "0000:01:00.0"}}, "filesystems": {"/scratch": {"on": "a"}}}
)
HOME = nfs(nodes=("gpu001",))
SCRATCH = nfs(name="scratch", kind="local", purpose="scratch", path="/scratch", servers=(), automount=False,
              nodes=("gpu001",))  # fmt: skip
STAT = "stat -f -c %b %f %a %c %d "
LINE = "10.9.0.10:/srv/home /home nfs4 rw,relatime 0 0\n"


def expected(*filesystems, served=(), **health):
    node = make_node(
        "gpu001",
        11,
        NodeRole.WORKER,
        sku=SKU,
        platform=Platform.BARE_METAL,
        addresses=(make_address("management", "10.9.0.11"),),
        filesystems=filesystems,
        served=served,
        options={
            "health": HealthOptions(**health),
            "nfs_client": NfsClientOptions(),
            "storage_layout": LAYOUT,
        },
    )
    return expected_of(make_cluster(make_node("head1", 10, NodeRole.HEAD), node), node)


def test_declared_filesystems_are_expected_by_themselves():
    assert expected(HOME, SCRATCH).mounts == (
        ExpectedMount("/"),
        ExpectedMount("/home", "10.9.0.10:/srv/home", "nfs4", shared=True, automount=True),
        ExpectedMount("/scratch", None, "xfs"),
    )


def test_what_a_node_serves_or_reads_alone():
    software = HOME.model_copy(update={"name": "sw", "path": "/sw", "read_only": True, "automount": False})
    (_, mount) = expected(software).mounts
    assert (mount.writable, mount.automount) == (False, False)
    own = nfs(servers=(HOME.servers[0].model_copy(update={"name": "gpu001"}),), nodes=("gpu001",))
    assert expected(own, served=(own,)).mounts == (ExpectedMount("/"),)


def test_a_list_of_the_role_adds_no_second_entry():
    found = expected(HOME, mounts=(RequiredMount(target="/home", type="nfs4"), RequiredMount(target="/opt")))
    assert found.mounts == (
        ExpectedMount("/"),
        ExpectedMount("/home", None, "nfs4", shared=True, automount=True),
        ExpectedMount("/opt"),
    )


def test_it_travels_to_the_node_and_back():
    wanted = expected(HOME, SCRATCH)
    assert Expected.from_json(wanted.to_json()).mounts == wanted.mounts


def test_a_kind_that_shows_several_sources_is_compared_by_none():
    class Anywhere(NfsClientOptions):
        mounts_kinds = frozenset({FilesystemKind.LUSTRE})

        def mount_of(self, node, filesystem):
            from rackwright.model.storage import Mount

            return Mount(
                filesystem, "a:/b", "lustre", sources=("a:/b", "c:/b"), types=("lustre", "lustre_tgt")
            )

    node = make_node(
        "gpu001", 11, NodeRole.WORKER, sku=SKU, platform=Platform.BARE_METAL,
        filesystems=(nfs(name="l", kind="lustre", path="/l", nodes=("gpu001",)),), options={"any": Anywhere()},
    )  # fmt: skip
    found = expected_of(make_cluster(make_node("head1", 10, NodeRole.HEAD), node), node).mounts[-1]
    assert (found.target, found.source, found.type, found.shared) == ("/l", None, None, True)


def judged(wanted, *mutations):
    machine = healthy(SKU, wanted)
    for mutate in mutations:
        machine = machine.with_fault(mutate)
    return {one.check: one for one in judge(wanted, document(machine)) if one.check.startswith("fs-")}


def test_a_healthy_node_passes():
    found = judged(expected(HOME, SCRATCH))
    assert {one.status for one in found.values()} <= {Status.PASS, Status.OUT_OF_SCOPE}


STALE = (1, "", "stat: cannot read file system information for '/home': Stale file handle")


@pytest.mark.parametrize("answer", [HANGS, STALE])
def test_a_server_that_is_away_fails_and_drains_nothing(answer):
    found = judged(expected(HOME, SCRATCH), command(STAT + "/home", answer))["fs-answers"]
    assert (found.status, found.action) == (Status.FAIL, Action.NONE)


def test_a_node_s_own_drive_that_hangs_drains_it():
    found = judged(expected(HOME, SCRATCH), command(STAT + "/scratch", HANGS))["fs-answers"]
    assert (found.status, found.action) == (Status.FAIL, Action.DRAIN)


@pytest.mark.parametrize(("automount", "action"), [(True, Action.DRAIN), (False, Action.NONE)])
def test_what_waits_for_its_server_is_no_fault_of_the_node_and_a_missing_automounter_is(automount, action):
    home = HOME.model_copy(update={"automount": automount})
    found = judged(expected(home), edit("/proc/self/mounts", LINE, ""))["fs-mounted"]
    assert (found.status, found.action) == (Status.FAIL, action)
    assert found.evidence == "/home is not mounted"


def test_an_automounter_that_waits_is_enough():
    waits = edit("/proc/self/mounts", LINE, "systemd-1 /home autofs rw,relatime 0 0\n")
    found = judged(expected(HOME), waits)
    assert (found["fs-mounted"].status, found["fs-source"].status) == (Status.PASS, Status.PASS)


def test_another_server_is_told_and_drains_nothing():
    found = judged(expected(HOME), edit("/proc/self/mounts", "10.9.0.10:/srv", "10.9.0.99:/srv"))["fs-source"]
    assert (found.status, found.action) == (Status.FAIL, Action.NONE)


SILENT = "nfs: server {} not responding, still trying"


def test_a_server_that_the_kernel_calls_silent_drains_nothing():
    found = judged(expected(HOME), log(SILENT.format("10.9.0.10")))["fs-stalled"]
    assert (found.status, found.action) == (Status.FAIL, Action.NONE)
    listed = expected(HOME, mounts=(RequiredMount(target="/old", source="nas:/old", type="nfs4"),))
    found = judged(listed, log(SILENT.format("nas")))["fs-stalled"]
    assert (found.status, found.action) == (Status.FAIL, Action.DRAIN)
