"""BeeGFS' servers on nodes of the cluster: head1 runs the management daemon, the workers metadata and storage."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.model.options import RoleOptions
from rackwright.model.storage import FilesystemKind, MakesFilesystems, Server
from rackwright.model.types import Platform
from rackwright.roles.beegfs import texts
from rackwright.roles.beegfs.options import BeegfsOptions
from rackwright.roles.beegfs.verify import CHECKS
from tests.unit.roles.fake_facts import file, unit
from tests.unit.roles.fake_host import FakeHost, commands, content, errors_in, judged, planned
from tests.unit.roles.mount_sites import filesystem, mounting_site
from tests.unit.roles.sites import head, worker

RUN, PREPARED = (check.name for check in CHECKS[3:5])
SERVER = {
    "meta": {"nodes": "gpu1", "folder": "/meta/beegfs"},
    "storage": {"nodes": "gpu[1-2]", "folders": ["/data1/beegfs", "/data2/beegfs"], "rdma": False},
    "tls": False,
}
GIVEN = BeegfsOptions.model_validate({"version": "20:8.3.1", "server": SERVER})
FS = filesystem(FilesystemKind.BEEGFS).model_copy(
    update={"servers": (Server(name="head1", address="10.9.0.10", node=True),), "network": "management"}
)


class Disks(RoleOptions, MakesFilesystems):
    """Stands for storage_layout."""

    paths: tuple[str, ...] = ("/meta", "/data1", "/data2")

    def made_filesystems(self, node):
        """On every node."""
        return dict.fromkeys(self.paths, "xfs")


DISKS = Disks()


def site(given=GIVEN, fs=FS, disks=DISKS, **changes):
    return mounting_site({"beegfs": given, "disks": disks}, fs, **changes)


def problems(given=GIVEN, **changes):
    return list(given.problems(site(given, **changes)))


def changed(**changes):
    return BeegfsOptions.model_validate({"version": "20:8.3.1", "server": {**SERVER, **changes}})


def test_who_serves_what():
    cluster = site()
    assert GIVEN.services(head(cluster)) == ("mgmtd",)
    assert GIVEN.services(worker(cluster)) == ("meta", "storage")
    assert GIVEN.goes_first(head(cluster))
    assert GIVEN.supplied_secrets == ()
    assert GIVEN.packages(head(cluster)) == ("beegfs-mgmtd=20:8.3.1",)
    assert GIVEN.packages(worker(cluster)) == (
        *("beegfs-client-dkms=20:8.3.1", "beegfs-meta=20:8.3.1", "beegfs-storage=20:8.3.1"),
        "libbeegfs-ib=20:8.3.1",
    )
    assert changed(mgmtd_version="8.3.1").packages(head(cluster)) == ("beegfs-mgmtd=8.3.1",)


def test_ports():
    cluster = site()
    found = [(one.program, one.ports[0], one.protocol) for one in GIVEN.listeners(head(cluster))]
    assert found == [
        ("beegfs-mgmtd", 8008, "tcp"),
        ("beegfs-mgmtd", 8008, "udp"),
        ("beegfs-mgmtd", 8010, "tcp"),
    ]


def test_files():
    cluster = site()
    assert texts.server_files(cluster, head(cluster), GIVEN)["/etc/beegfs/beegfs-mgmtd.toml"].splitlines()[
        1:
    ] == [
        "beemsg-port = 8008",
        "grpc-port = 8010",
        'auth-file = "/etc/beegfs/conn.auth"',
        "tls-disable = true",
    ]
    found = texts.server_files(cluster, worker(cluster), GIVEN)
    conf = found["/etc/beegfs/beegfs-storage.conf"].splitlines()
    assert "sysMgmtdHost = 10.9.0.10" in conf
    assert "storeStorageDirectory = /data1/beegfs,/data2/beegfs" in conf
    assert "storeAllowFirstRunInit = false" in conf
    assert "connUseRDMA = false" in conf
    drop = found["/etc/systemd/system/beegfs-storage.service.d/rackwright.conf"]
    assert "RequiresMountsFor=/data1/beegfs /data2/beegfs\n" in drop
    assert set(GIVEN.unit_files(worker(cluster))) >= {
        path for path in found if path.startswith("/etc/systemd")
    }


def test_tls_of_the_management_daemon():
    secure = changed(tls=True)
    cluster = site(secure)
    (one,) = secure.certificates(cluster, head(cluster))
    assert one.serves == ("10.9.0.10:8010",)
    assert secure.certificates(cluster, worker(cluster)) == ()
    toml = texts.server_files(cluster, head(cluster), secure)["/etc/beegfs/beegfs-mgmtd.toml"]
    assert 'tls-cert-file = "/etc/beegfs/cert.pem"\ntls-key-file = "/etc/beegfs/key.pem"\n' in toml


def test_refused():
    assert problems() == []
    assert errors_in(
        BeegfsOptions,
        {"version": "20:8.3.1", "server": {**SERVER, "meta": {"nodes": "m[", "folder": "/m/b"}}},
    )
    assert [one[1] for one in problems(changed(tls=True))] == ["No role issues a certificate for head1."]
    assert [one[1] for one in problems(disks=Disks(paths=("/meta", "/data1")))] == [
        "/data2/beegfs of gpu1 is not on a separate filesystem."
    ]
    unknown = changed(meta={"nodes": "gpu9", "folder": "/meta/beegfs"})
    assert [one[1] for one in problems(unknown)] == ["There is no node gpu9."]
    outside = filesystem(FilesystemKind.BEEGFS, "10.0.0.5")
    assert [one[1] for one in problems(fs=outside)] == [
        "These servers belong to one filesystem, but 0 name a node of the cluster as their server."
    ]
    old = BeegfsOptions.model_validate({"version": "20:7.4.7", "server": SERVER})
    assert [one[1] for one in problems(old)] == ["Servers are set up for BeeGFS 8 alone."]


def test_a_container_serves_nothing():
    elsewhere = FS.model_copy(update={"nodes": ()})
    found = [one[1] for one in problems(fs=elsewhere, platform=Platform.CONTAINER)]
    assert found == [
        "head1 cannot run BeeGFS' servers here: a container neither mounts nor serves network filesystems."
    ]


def test_what_is_planned():
    cluster = site()
    plan = planned(cluster, head(cluster))
    assert plan.error is None
    assert commands(plan, "Create the management daemon's database") == (
        "/opt/beegfs/sbin/beegfs-mgmtd --init",
    )
    assert content(plan, "/etc/beegfs/conn.auth") == "(secret beegfs_conn_auth)"
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    (prepare,) = commands(plan, "Prepare /data2/beegfs for BeeGFS")
    assert prepare.splitlines()[0].startswith("mountpoint -q /data2 || ")
    assert prepare.splitlines()[1] == "/opt/beegfs/sbin/beegfs-setup-storage -C -p /data2/beegfs -s 1 -i 102"
    order = [one.name for one in plan.operations if one.role == "beegfs"]
    assert (
        order.index("Prepare /data1/beegfs for BeeGFS")
        < order.index("Start beegfs-storage")
        < order.index("Mount /scratch")
    )


@pytest.mark.parametrize("mounted", [True, False])
def test_no_folder_is_prepared_on_another_disk(tmp_path, mounted):
    tool = tmp_path / "mountpoint"
    tool.write_text(f"#!/bin/sh\nexit {0 if mounted else 32}\n")
    setup = tmp_path / "setup"
    setup.write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/ran\n')
    for one in (tool, setup):
        one.chmod(0o755)
    cluster = site()
    (target,) = texts.targets(worker(cluster), GIVEN)["meta"]
    shell = texts.prepare("meta", target).replace("/opt/beegfs/sbin/beegfs-setup-meta", str(setup))
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, check=False, env=env, timeout=30
    )
    assert (done.returncode == 0) is mounted
    assert (tmp_path / "ran").exists() is mounted
    if mounted:
        assert (tmp_path / "ran").read_text() == "-C -p /meta/beegfs -s 1\n"
    else:
        assert done.stderr == "/meta is not mounted: /meta/beegfs would be on another disk\n"


FORMATS = [f"{folder}/format.conf" for folder in ("/meta/beegfs", "/data1/beegfs", "/data2/beegfs")]
HEALTHY = {
    **unit("beegfs-meta.service"),
    **unit("beegfs-storage.service"),
    **{
        line: answer
        for path in FORMATS
        for line, answer in file(path, "version=4\n", digest_only=True).items()
    },
}


@pytest.mark.parametrize(
    ("name", "changes", "status"),
    [
        (RUN, {}, "PASS"),
        (RUN, unit("beegfs-storage.service", active="failed"), "FAIL"),
        (RUN, unit("beegfs-storage.service", active=""), "UNKNOWN"),
        (PREPARED, {}, "PASS"),
        (PREPARED, file(FORMATS[2], None, digest_only=True), "FAIL"),
    ],
)
def test_a_check(name, changes, status):
    cluster = site()
    found = judged("beegfs", CHECKS, name, cluster, worker(cluster), FakeHost({**HEALTHY, **changes}))
    assert found.status == status, found.evidence


@pytest.mark.parametrize("name", [RUN, PREPARED])
def test_a_server_that_answers_nothing_passes_nothing(name):
    cluster = site()
    assert judged("beegfs", CHECKS, name, cluster, worker(cluster), FakeHost({})).status == "UNKNOWN"
