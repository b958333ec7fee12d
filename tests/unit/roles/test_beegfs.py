"""The beegfs role's client. /proc/fs/beegfs is as client_module/source/filesystem/ProcFsHelper.c and
common/nodes/TargetStateStore.c of BeeGFS 8.3.1 print it (read 2026-11-26); no client was at hand.
"""

from __future__ import annotations

import pytest

from rackwright.model.storage import FilesystemKind
from rackwright.model.types import Platform
from rackwright.mounts import mount_text
from rackwright.osfamily.known import RELEASES
from rackwright.roles.beegfs import readings, texts, verify
from rackwright.roles.beegfs.options import AUTH, BeegfsOptions
from rackwright.roles.beegfs.verify import CHECKS
from rackwright.secrets.store import Secret
from tests.unit.roles.fake_facts import file, files
from tests.unit.roles.fake_host import claimed, commands, content, errors_in, planned
from tests.unit.roles.mount_sites import KERNEL, filesystem, mounting_site, verdict
from tests.unit.roles.sites import head, worker
from tests.unit.roles.stack_tools import installed

NAMES = [check.name for check in CHECKS]
INSTALLED, SETTINGS, SECRET, RUN, PREPARED, BUILT = NAMES[:6]
LOADED, TARGETS, RDMA = NAMES[-3:]
PLAIN = BeegfsOptions(version="20:8.3.1")
OLD = BeegfsOptions(version="20:7.4.7")
SCRATCH = filesystem(FilesystemKind.BEEGFS, "10.0.0.5", rdma=True)
CONF = "/etc/beegfs/rackwright-scratch.conf"
ARCHIVE = {
    "url": "http://m/beegfs",
    "suite": "trixie",
    "components": ["non-free"],
    "key_url": "http://m/k",
    "fingerprint": "A" * 40,
}


class _Store:
    def get(self, name):
        return Secret(name, "shared")


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    monkeypatch.setattr(verify, "store_of", lambda cluster: _Store())


def bee_site(given=PLAIN, *fs, **changes):
    return mounting_site({"beegfs": given}, *(fs or (SCRATCH,)), **changes)


def problems(given=PLAIN, *fs, **changes):
    return list(given.problems(bee_site(given, *fs, **changes)))


def test_it_runs_where_beegfs_is_mounted():
    cluster = bee_site()
    assert "beegfs" in worker(cluster).options
    assert "beegfs" not in head(cluster).options
    assert not PLAIN.goes_first(worker(cluster))


def test_the_mount():
    mount = PLAIN.mount_of(worker(bee_site()), SCRATCH)
    assert (mount.what, mount.type) == ("beegfs_nodev", "beegfs")
    assert mount.options == ("nosuid", "nodev", "noatime", f"cfgFile={CONF}")
    assert mount.shown["cfgFile"] == CONF
    assert "\nWhat=beegfs_nodev\n" in mount_text(mount)


def test_settings_of_version_8():
    cluster = bee_site()
    found = texts.client_files(cluster, worker(cluster), PLAIN)
    assert found[CONF].splitlines()[1:] == [
        "sysMgmtdHost = 10.0.0.5",
        "connAuthFile = /etc/beegfs/conn.auth",
        "connClientPort = 8004",
        "connMgmtdPort = 8008",
        "connUseRDMA = true",
        "connInterfacesFile = /etc/beegfs/rackwright-scratch.interfaces",
        "connRDMAInterfacesFile = /etc/beegfs/rackwright-scratch.interfaces",
    ]
    assert found["/etc/beegfs/rackwright-scratch.interfaces"] == "rail0\nrail1\n"


def test_settings_of_version_7():
    given = OLD.model_copy(update={"settings": {"tuneFileCacheType": "native"}})
    plain = SCRATCH.model_copy(update={"rdma": False})
    cluster = bee_site(given, plain, named=False)
    assert texts.client_files(cluster, worker(cluster), given)[CONF].splitlines()[1:] == [
        "sysMgmtdHost = 10.0.0.5",
        "connAuthFile = /etc/beegfs/conn.auth",
        "connClientPortUDP = 8004",
        "connMgmtdPortTCP = 8008",
        "connMgmtdPortUDP = 8008",
        "logType = syslog",
        "connUseRDMA = false",
        "tuneFileCacheType = native",
    ]


def test_each_mount_has_a_port():
    second = filesystem(FilesystemKind.BEEGFS, "10.0.0.6", name="data", path="/data")
    cluster = bee_site(PLAIN, SCRATCH, second)
    assert PLAIN.client_port(worker(cluster), second) == 8104
    found = [(one.ports[0], one.protocol) for one in PLAIN.listeners(worker(cluster))]
    assert found == [(8004, "udp"), (8104, "udp")]


def test_refused():
    assert errors_in(BeegfsOptions, {}) == ["Field required"]
    assert errors_in(BeegfsOptions, {"version": "20:8.3.1", "settings": {"sysMgmtdHost": "x"}}) == [
        "`sysMgmtdHost` is set by this role."
    ]
    assert errors_in(BeegfsOptions, {"version": "20:8.3.1", "settings": {"tuneX": "a b"}})
    assert problems() == []
    assert [one[1] for one in problems(BeegfsOptions(version="20:7.3.2"))] == [
        "BeeGFS 7.3.2 is neither 7.4 nor 8."
    ]
    named = SCRATCH.model_copy(
        update={"servers": filesystem(FilesystemKind.BEEGFS, "mgmtd.example.com").servers}
    )
    assert problems(PLAIN, named) == []
    assert [one[1] for one in problems(OLD, named)] == [
        "mgmtd.example.com of scratch is a DNS name, which the client of BeeGFS 7.4 does not resolve."
    ]
    assert [one[1] for one in problems(named=False)] == [
        "The interfaces of gpu1 on fabric, by which scratch uses RDMA, are not declared."
    ]
    assert [one[1] for one in problems(platform=Platform.CONTAINER)] == [
        "gpu1 cannot mount scratch: a container neither mounts nor serves network filesystems."
    ]


def test_whose_secret_it_is():
    assert PLAIN.supplied_secrets == PLAIN.secrets == ("beegfs_conn_auth",)


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
@pytest.mark.parametrize("version", ["20:8.3.1", "20:7.4.7"])
def test_it_is_planned_on_every_release(os, version):
    given = BeegfsOptions.model_validate(
        {"version": version, "archive": ARCHIVE, "ofed_include": "/usr/src/ofa/include"}
    )
    cluster = bee_site(given, os=os)
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    (install,) = commands(plan, "Install BeeGFS")
    assert "beegfs-client-dkms" in install
    (build,) = commands(plan, "Build the BeeGFS module")
    assert f"/usr/src/beegfs-{version.partition(':')[2]}*" in build
    assert f"for kernel in {KERNEL}; do" in build
    assert "OFED_INCLUDE_PATH=/usr/src/ofa/include" in (content(plan, texts.BUILD) or "")
    order = [one.name for one in plan.operations if one.role == "beegfs"]
    assert (
        order.index(f"Write {texts.BUILD}")
        < order.index("Build the BeeGFS module")
        < order.index("Mount /scratch")
    )


MODINFO = f"modinfo -k {KERNEL} -F version beegfs"
STATES, NODES = (f"sh -c '{command}'" for command in (readings.STATES, readings.NODES))
GOOD_STATES = (
    "[Target ID: 1] @ meta1 [ID: 1]: Online / Good \n[Target ID: 101] @ stor1 [ID: 1]: Online / Good \n"
)
GOOD_NODES = """\
meta1 [ID: 1]
   Root: <yes>
   Connections: RDMA: 1 (10.11.0.5:8005); 
stor1 [ID: 1]
   Connections: RDMA: 2 (10.11.0.6:8003); 
stor2 [ID: 2]
   Connections: <none>
"""
HEALTHY = {
    MODINFO: "8.3.1\n",
    "cat /proc/modules": "beegfs 1241088 1 - Live 0x0\n",
    "cat /sys/module/beegfs/version": "8.3.1\n",
    STATES: GOOD_STATES,
    NODES: GOOD_NODES,
    **files(texts.client_files(bee_site(), worker(bee_site()), PLAIN)),
    **file(AUTH, "shared", "400", digest_only=True),
    **installed({"beegfs-client-dkms": "20:8.3.1"}),
}
CASES = [
    (INSTALLED, {}, "PASS", "beegfs-client-dkms 20:8.3.1, held"),
    (INSTALLED, installed({"beegfs-client-dkms": "20:8.3.0"}), "FAIL", None),
    (SETTINGS, {}, "PASS", None),
    (SETTINGS, files({CONF: "sysMgmtdHost = 10.0.0.9\n"}), "FAIL", None),
    (SECRET, {}, "PASS", AUTH),
    (
        SECRET,
        file(AUTH, "shared", "644", digest_only=True),
        "FAIL",
        f"{AUTH} is 644 root:root, not 400 root:root",
    ),
    (SECRET, file(AUTH, "other", "400", digest_only=True), "FAIL", f"{AUTH} is not as declared"),
    (BUILT, {}, "PASS", f"beegfs 8.3.1 for {KERNEL}"),
    (BUILT, {MODINFO: (1, "", "modinfo: ERROR: Module beegfs not found.")}, "FAIL", None),
    (LOADED, {}, "PASS", "beegfs 8.3.1 is loaded"),
    (LOADED, {"cat /sys/module/beegfs/version": "8.2.2\n"}, "FAIL", None),
    (TARGETS, {}, "PASS", "2 targets"),
    (
        TARGETS,
        {
            STATES: GOOD_STATES.replace(
                "stor1 [ID: 1]: Online / Good", "stor1 [ID: 1]: Offline / Needs-resync"
            )
        },
        "FAIL",
        "101 @ stor1 [ID: 1] is Offline / Needs-resync",
    ),
    # Two filesystems, each with the target 101 of a server that BeeGFS named itself; the second one is well.
    (
        TARGETS,
        {STATES: GOOD_STATES.replace("Online / Good", "Offline / Good") + GOOD_STATES},
        "FAIL",
        "1 @ meta1 [ID: 1] is Offline / Good; 101 @ stor1 [ID: 1] is Offline / Good",
    ),
    (TARGETS, {STATES: "\n"}, "UNKNOWN", None),
    (TARGETS, {STATES: "rubbish\n"}, "UNKNOWN", None),
    (TARGETS, {STATES: (1, "", "cat: '/proc/fs/beegfs/*/meta_target_state': No such file")}, "UNKNOWN", None),
    (RDMA, {}, "PASS", "meta1, stor1"),
    (
        RDMA,
        {NODES: GOOD_NODES.replace("RDMA: 2 (10.11.0.6:8003)", "TCP: 2 (10.9.0.6:8003 [fallback route])")},
        "FAIL",
        "TCP to stor1, where RDMA is declared",
    ),
    # A host that serves metadata, over TCP, and data: BeeGFS 7.4 has the host's name for both.
    (
        RDMA,
        {
            NODES: "host1 [ID: 1]\n   Root: <yes>\n   Connections: TCP: 1 (10.9.0.5:8005); \n"
            "host1 [ID: 1]\n   Connections: RDMA: 2 (10.11.0.5:8003); \n"
        },
        "FAIL",
        "TCP to host1, where RDMA is declared",
    ),
    (
        RDMA,
        {NODES: "host1 [ID: 1]\n   Connections: RDMA: 2 (10.11.0.5:8003); \n" * 2},
        "PASS",
        "host1",
    ),
    (RDMA, {NODES: "stor2 [ID: 2]\n   Connections: <none>\n"}, "UNKNOWN", None),
    (RDMA, {NODES: "rubbish\n"}, "UNKNOWN", None),
]


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_a_check(name, changes, status, evidence):
    found = verdict("beegfs", CHECKS, name, bee_site(), {**HEALTHY, **changes})
    assert found.status == status, found.evidence
    if evidence is not None:
        assert found.evidence == evidence


@pytest.mark.parametrize("name", [INSTALLED, SETTINGS, SECRET, BUILT, LOADED, TARGETS, RDMA])
def test_a_node_that_answers_nothing_passes_nothing(name):
    assert verdict("beegfs", CHECKS, name, bee_site(), {}).status == "UNKNOWN"


def test_claims():
    found = claimed("beegfs", CHECKS, worker(bee_site()))
    assert RUN not in found
    assert RDMA in found
    tcp = bee_site(PLAIN, SCRATCH.model_copy(update={"rdma": False}))
    assert RDMA not in claimed("beegfs", CHECKS, worker(tcp))
