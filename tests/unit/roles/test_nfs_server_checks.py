"""What verify claims of an NFS server: each claim holds, is false, and cannot be known."""

from __future__ import annotations

import shlex

import pytest

from rackwright.facts.mounts import MountTable
from rackwright.model.types import Platform
from rackwright.roles.nfs_server import texts
from rackwright.roles.nfs_server.options import EXPORTS, NfsServerOptions
from rackwright.roles.nfs_server.verify import CHECKS
from tests.factories import DEBIAN_13
from tests.unit.roles.fake_facts import asked, file, files, installed, unit
from tests.unit.roles.fake_host import FakeHost, judged, planned
from tests.unit.roles.nfs_sites import ARRAY, nfs, served
from tests.unit.roles.sites import head

ROOT = "0 0 0:0 / / rw - ext4 /dev/vda1 rw\n"
SRV = "0 0 0:0 / /srv rw,noatime - xfs /dev/md127 rw,attr2\n"


def judge(name, replies, cluster=None):
    cluster = cluster or served(nfs())
    result = judged("nfs_server", CHECKS, name, cluster, head(cluster), FakeHost(replies))
    return str(result.status), result.evidence


def read(path, printed):
    return {f"cat {shlex.quote(path)}": printed}


RUNS = "the NFS server is installed and running"
UNITS = unit("nfs-server.service") | unit("nfsdcld.service", state="static")
THERE = installed(DEBIAN_13.family, ("nfs-kernel-server",))


def test_the_server_runs():
    whole = THERE | UNITS | unit("nfs-mountd.service", state="static")
    assert judge(RUNS, whole) == (
        "PASS",
        (
            "1 packages; nfs-server.service is active and enabled, nfs-mountd.service is active and enabled, "
            "nfsdcld.service is active and enabled"
        ),
    )
    assert judge(RUNS, whole | unit("nfs-mountd.service", "failed", "static")) == (
        "FAIL",
        "nfs-mountd.service is failed",
    )
    assert judge(RUNS, THERE | UNITS)[0] == "UNKNOWN"


FILES = "the NFS server's files are as declared"


def test_files_are_compared():
    cluster = served(nfs())
    wanted = texts.files(cluster, head(cluster), NfsServerOptions())
    assert judge(FILES, files(wanted))[0] == "PASS"
    assert judge(FILES, files(wanted | {EXPORTS: "/ *(rw,no_root_squash)\n"})) == (
        "FAIL",
        f"{EXPORTS} is not as declared: / *(rw,no_root_squash)",
    )
    assert judge(FILES, {})[0] == "UNKNOWN"


MASKED = "rpcbind and rpc.statd are masked"


def test_masked_units():
    masked = {
        key: text for name in texts.MASKED for key, text in unit(name, "inactive", "masked", "masked").items()
    }
    assert judge(MASKED, masked)[0] == "PASS"
    assert judge(MASKED, masked | unit("rpc-statd.service", state="static"))[0] == "FAIL"
    assert judge(MASKED, {})[0] == "UNKNOWN"


THREADS = "the NFS server has its declared threads"


@pytest.mark.parametrize(
    ("printed", "result"),
    [
        ("64\n", ("PASS", "64 threads")),
        ("8\n", ("FAIL", "the server has 8 threads, not 64")),
        ("\n", ("UNKNOWN", "the kernel prints '' for the number of threads")),
    ],
)
def test_threads(printed, result):
    assert judge(THREADS, read("/proc/fs/nfsd/threads", printed)) == result


def test_threads_of_a_server_that_has_no_filesystem_of_the_kernel_s():
    missing = {
        "cat /proc/fs/nfsd/threads": (1, "", "cat: /proc/fs/nfsd/threads: No such file or directory\n")
    }
    assert judge(THREADS, missing)[0] == "UNKNOWN"


VERSIONS = "only NFS 4.1 and 4.2 are served"


@pytest.mark.parametrize(
    ("printed", "result"),
    [
        ("-3 +4 -4.0 +4.1 +4.2\n", ("PASS", "-3 +4 -4.0 +4.1 +4.2")),
        ("-2 -3 +4 -4.0 +4.1 +4.2\n", ("PASS", "-2 -3 +4 -4.0 +4.1 +4.2")),
        ("+4 -4.0 +4.1 +4.2\n", ("PASS", "+4 -4.0 +4.1 +4.2")),
        ("-3 +4 +4.1 +4.2\n", ("FAIL", "NFS version 4.0 is on")),
        ("+3 +4 +4.0 +4.1 -4.2\n", ("FAIL", "NFS version 3 is on, 4.0 is on, 4.2 is off")),
        ("\n", ("UNKNOWN", "the kernel prints '' for its versions")),
        ("nfsd\n", ("UNKNOWN", "the kernel prints 'nfsd' for its versions")),
    ],
)
def test_versions(printed, result):
    assert judge(VERSIONS, read("/proc/fs/nfsd/versions", printed)) == result


EXPORTED = "only declared folders are exported, as declared"


def test_exports():
    cluster = served(nfs())
    wanted = texts.in_force(cluster, head(cluster), NfsServerOptions())
    ask = f"sh -c {shlex.quote(texts.read_exports())}"
    assert judge(EXPORTED, {ask: f"{wanted}\n"}) == ("PASS", wanted)
    rooted = wanted.replace("root_squash", "no_root_squash")
    assert judge(EXPORTED, {ask: f"{rooted}\n"}) == (
        "FAIL",
        f"{wanted} is not exported; the export {rooted} is not declared",
    )
    assert judge(EXPORTED, {ask: f"{wanted}\n/opt * rw sync\n"}) == (
        "FAIL",
        "the export /opt * rw sync is not declared",
    )
    assert judge(EXPORTED, {ask: ""})[0] == "FAIL"
    assert judge(EXPORTED, {ask: (3, "", "")})[0] == "UNKNOWN"


FOLDERS = "exported folders are on their declared filesystems"


def folder(mode="755"):
    line = next(iter(file("/srv/home", None, digest_only=True)))
    return {line: f"directory|{mode}|root|root|4096\n"}


def table(*paths, text=ROOT):
    return {asked(MountTable().command(paths)): text}


BOUND = unit("home.mount") | {"stat -c %d:%i /srv/home /home": "2049:128\n2049:128\n"}


def test_folders_on_the_system_s_disk():
    whole = table() | folder() | BOUND
    assert judge(FOLDERS, whole) == ("PASS", "/srv/home on the system disk, /home is /srv/home")
    assert judge(FOLDERS, whole | folder("1777"))[0] == "FAIL"
    other = {"stat -c %d:%i /srv/home /home": "2049:128\n2049:2\n"}
    assert judge(FOLDERS, whole | other) == ("FAIL", "/home is not /srv/home")
    assert judge(FOLDERS, folder() | BOUND)[0] == "UNKNOWN"


def test_folders_on_an_array():
    cluster = served(nfs(nodes=("gpu1",)), others={"storage_layout": ARRAY})
    assert judge(FOLDERS, table("/srv", text=ROOT + SRV) | folder(), cluster) == ("PASS", "/srv/home on /srv")
    assert judge(FOLDERS, table("/srv") | folder(), cluster) == (
        "FAIL",
        "/srv is not mounted: /srv/home is on the system disk",
    )
    assert judge(FOLDERS, table("/srv", text=""), cluster)[0] == "UNKNOWN"


LISTENS = "the NFS server listens on its declared addresses"
TCP = "LISTEN 0 64 0.0.0.0:2049 0.0.0.0:*\nLISTEN 0 64 [::]:2049 [::]:*\n"


def sockets(tcp=TCP, udp="", ports="tcp 2049\n"):
    return {
        "ss -Hlnt 'sport = :2049'": tcp,
        "ss -Hlnu 'sport = :2049'": udp,
        **read("/proc/fs/nfsd/portlist", ports),
    }


@pytest.mark.parametrize(
    ("replies", "result"),
    [
        (sockets(), ("PASS", "TCP port 2049")),
        (sockets(tcp=""), ("FAIL", "nothing listens on port 2049")),
        (sockets(udp="UNCONN 0 0 0.0.0.0:2049 0.0.0.0:*\n"), ("FAIL", "UDP port 2049 is open")),
        (
            sockets(ports="rdma 20049\ntcp 2049\n"),
            ("FAIL", "the server listens for RDMA (rdma 20049), but no filesystem declares RDMA"),
        ),
    ],
)
def test_it_listens(replies, result):
    assert judge(LISTENS, replies) == result


def test_it_listens_for_rdma_where_that_is_declared():
    cluster = served(nfs(rdma=True))
    assert judge(LISTENS, sockets(ports="rdma 20049\ntcp 2049\n"), cluster) == (
        "PASS",
        "TCP port 2049, rdma 20049",
    )
    assert judge(LISTENS, sockets(), cluster) == ("FAIL", "the server does not listen for RDMA")
    assert judge(LISTENS, {}, cluster)[0] == "UNKNOWN"


def test_a_container_is_out_of_scope():
    cluster = served(nfs(), platform=Platform.CONTAINER)
    assert judge(THREADS, {}, cluster)[0] == "OUT OF SCOPE"


def test_a_second_filesystem_adds_no_second_server():
    cluster = served(nfs(), nfs(name="data", path="/data", export="/srv/data"))
    names = [operation.name for operation in planned(cluster, head(cluster)).operations]
    assert names.count("Start the NFS server with its settings") == 1
