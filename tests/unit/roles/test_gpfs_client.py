"""The gpfs_client role. What commands print with -Y is as the tests of treydock/gpfs_exporter and of a public Python wrapper
have it, and `mount` as IBM's StorageScaleVagrant prints it; read 2026-11-26.
"""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from rackwright.model.settings import Mirrors
from rackwright.model.storage import FilesystemKind
from rackwright.model.types import Platform
from rackwright.mounts import differences, mount_text, parse_mountinfo
from rackwright.osfamily.known import RELEASES
from rackwright.roles.gpfs_client import readings
from rackwright.roles.gpfs_client.options import GpfsClientOptions
from rackwright.roles.gpfs_client.verify import CHECKS
from tests.unit.roles.fake_facts import unit
from tests.unit.roles.fake_host import claimed, commands, errors_in, planned
from tests.unit.roles.mount_sites import KERNEL, filesystem, mounting_site, verdict
from tests.unit.roles.sites import worker
from tests.unit.roles.stack_tools import installed

NAMES = [check.name for check in CHECKS]
INSTALLED, BUILT, AT_BOOT, DAEMON, MEMBER, POOL = NAMES[:6]
LOADED = NAMES[-1]


def packages(ending="deb"):
    return {
        f"{package}_5.2.3-1_amd64.{ending}": {"package": package, "version": "5.2.3-1", "sha256": "a" * 64}
        for package in ("gpfs.gskit", "gpfs.base", "gpfs.gpl")
    }


PLAIN = GpfsClientOptions.model_validate(
    {"packages": packages(), "cluster_name": "gpfs.domain", "pagepool_mib": 4096}
)
SCRATCH = filesystem(FilesystemKind.GPFS, fsname="fs1")
MIRRORS = Mirrors(files="http://m/files/")


def scale_site(given=PLAIN, fs=SCRATCH, **changes):
    return mounting_site({"gpfs_client": given}, fs, **{"mirrors": MIRRORS, **changes})


def problems(given=PLAIN, **changes):
    return list(given.problems(scale_site(given, **changes)))


def test_the_mount():
    mount = PLAIN.mount_of(worker(scale_site()), SCRATCH)
    assert (mount.what, mount.type, mount.options) == ("fs1", "gpfs", ("nosuid", "nodev", "dev=fs1"))
    assert "\nRequires=gpfs.service\n" in mount_text(mount)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [("fs1", []), ("/dev/fs1", []), ("fs2", ["comes from fs2, not from fs1 or /dev/fs1"])],
)
def test_what_the_kernel_shows(source, wrong):
    """`fs1 on /ibm/fs1 type gpfs (rw,relatime,seclabel)`."""
    mount = PLAIN.mount_of(worker(scale_site()), SCRATCH)
    table = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"2 1 0:50 / /scratch rw,nosuid,nodev,relatime - gpfs {source} rw,seclabel\n"
    )
    assert list(differences(mount, table["/scratch"][0])) == wrong


def test_refused():
    assert errors_in(GpfsClientOptions, {"packages": {}})
    assert problems() == []
    assert [one[1] for one in problems(mirrors=Mirrors())] == [
        "IBM's packages come from the site's mirror, but `mirrors.files` is not declared."
    ]
    rpms = PLAIN.model_copy(update={"packages": GpfsClientOptions(packages=packages("rpm")).packages})
    assert [one[1] for one in problems(rpms)] == [
        "gpu1 is debian-13, which cannot install gpfs.gskit_5.2.3-1_amd64.rpm."
    ]
    less = GpfsClientOptions.model_validate({"packages": dict(list(packages().items())[:1])})
    assert [one[1] for one in problems(less)] == ["gpfs.base is not among the packages."]
    assert [one[1] for one in problems(platform=Platform.CONTAINER)] == [
        "gpu1 cannot mount scratch: a container neither mounts nor serves network filesystems."
    ]


def test_what_others_ask():
    node = worker(scale_site())
    assert PLAIN.reserved_mib(node) == 4096
    assert PLAIN.held_packages(node) == ("gpfs.gskit", "gpfs.base", "gpfs.gpl")
    assert [one.ports for one in PLAIN.listeners(node)] == [(1191, 1191)]


@pytest.mark.parametrize("release", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(release):
    ending = release.family.package_file("x", "1", "x86_64").rpartition(".")[2]
    given = GpfsClientOptions.model_validate({"packages": packages(ending)})
    cluster = scale_site(given, os=release)
    assert list(given.problems(cluster)) == []
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    (fetch,) = commands(plan, f"Fetch gpfs.base_5.2.3-1_amd64.{ending}")
    assert f"http://m/files/gpfs.base_5.2.3-1_amd64.{ending}" in fetch
    (build,) = commands(plan, "Build Storage Scale's kernel layer")
    assert build.endswith("\n/usr/lpp/mmfs/bin/mmbuildgpl")
    order = [one.name for one in plan.operations if one.role == "gpfs_client"]
    assert (
        order.index("Install gpfs.gskit")
        < order.index("Install gpfs.base")
        < order.index("Hold Storage Scale")
    )
    assert order.index("Build Storage Scale's kernel layer") < order.index("Mount /scratch")


def test_nothing_is_built_for_another_kernel(tmp_path):
    cluster = scale_site(kernel="0.0.1-other")
    (build,) = commands(planned(cluster, worker(cluster)), "Build Storage Scale's kernel layer")
    tool = tmp_path / "mmbuildgpl"
    tool.write_text(f"#!/bin/sh\n: >{tmp_path}/ran\n")
    tool.chmod(0o755)
    for kernel, built in (("0.0.1-other", False), ('"$(uname -r)"', True)):
        shell = build.replace("/usr/lpp/mmfs/bin", str(tmp_path)).replace("0.0.1-other", kernel)
        done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False, timeout=20)
        assert (done.returncode == 0, (tmp_path / "ran").exists()) == (built, built), done.stderr


@pytest.mark.parametrize("package", ["dpkg", "rpm", None])
@pytest.mark.parametrize("rebuilt", [True, False])
def test_an_upgrade_makes_the_kernel_layer_older_than_its_sources(tmp_path, package, rebuilt):
    module, listing = tmp_path / "mmfs26.ko", tmp_path / "gpfs.gpl.list"
    module.touch()
    os.utime(module, (2000, 2000) if rebuilt else (1000, 1000))
    installed_at = 1500
    if package == "dpkg":
        listing.touch()
        os.utime(listing, (installed_at, installed_at))
    replies = {
        "modinfo": f'[ "$*" = "-k {KERNEL} -F filename mmfs26" ] && echo {module}',
        "rpm": f"printf {installed_at}" if package == "rpm" else "echo package not installed; exit 1",
    }
    for name, text in replies.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    shell = readings.layer(KERNEL).replace("/var/lib/dpkg/info", str(tmp_path))
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, check=True, env=env, timeout=20
    )
    assert done.stdout.strip() == ("built" if rebuilt or package is None else "older")
    (tmp_path / "modinfo").write_text("#!/bin/sh\nexit 1\n")
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False, env=env)
    assert done.stdout == ""


STATE = """\
mmgetstate::HEADER:version:reserved:reserved:nodeName:nodeNumber:state:quorum:nodesUp:totalNodes:remarks:cnfsState:
mmgetstate::0:1:::gpu1:11:active:4:7:1122::(undefined):
"""
CLUSTER = """\
mmlscluster:clusterSummary:HEADER:version:reserved:reserved:clusterName:clusterId:uidDomain:rshPath:rshSudoWrapper:
mmlscluster:clusterNode:HEADER:version:reserved:reserved:nodeNumber:daemonNodeName:ipAddress:
mmlscluster:clusterSummary:0:1:::gpfs.domain:123456789:gpfs.domain:/usr/bin/ssh:no:
mmlscluster:clusterNode:0:1:::1:nsd1:10.0.0.1:
"""
CONFIG = """\
mmdiag:config:HEADER:version:reserved:reserved:name:value:changed:
mmdiag:config:0:1:::opensslLibName:/usr/lib64/libssl.so.10%3A/usr/lib64/libssl.so.6::
mmdiag:config:0:1:::pagepool:4294967296:static:
mmdiag:config:0:1:::pagepoolMaxPhysMemPct:75::
"""
OUTSIDE = (1, "", "mmgetstate: This node does not belong to a GPFS cluster.\nmmgetstate: Command failed.\n")
MODINFO = f"modinfo -k {KERNEL} -F filename mmfs26"
LAYER = f"sh -c {shlex.quote(f'({readings.layer(KERNEL)}) 2>/dev/null')}"
VERSIONS = dict.fromkeys(("gpfs.gskit", "gpfs.base", "gpfs.gpl"), "5.2.3-1")
HEALTHY = {
    readings.STATE: STATE,
    readings.CLUSTER: CLUSTER,
    readings.CONFIG: CONFIG,
    MODINFO: "/lib/modules/x/extra/mmfs26.ko\n",
    LAYER: "built\n",
    "cat /proc/modules": "mmfs26 1241088 1 - Live 0x0\n",
    **unit("gpfs.service"),
    **installed(VERSIONS),
}
CASES = [
    (INSTALLED, {}, "PASS", "gpfs.base 5.2.3-1 and 2 more, held"),
    (INSTALLED, installed({**VERSIONS, "gpfs.gpl": "5.2.2-1"}), "FAIL", "gpfs.gpl is 5.2.2-1, not 5.2.3-1"),
    (BUILT, {}, "PASS", f"mmfs26 for {KERNEL}"),
    (BUILT, {MODINFO: (1, "", "modinfo: ERROR: Module mmfs26 not found.")}, "FAIL", None),
    (
        BUILT,
        {LAYER: "older\n"},
        "FAIL",
        f"mmfs26 for {KERNEL} is older than its sources, gpfs.gpl: rebuild it with mmbuildgpl",
    ),
    (BUILT, {LAYER: "\n"}, "UNKNOWN", None),
    (AT_BOOT, {}, "PASS", "gpfs.service is enabled"),
    (AT_BOOT, unit("gpfs.service", state="disabled"), "FAIL", None),
    (DAEMON, {}, "PASS", "gpu1 is active"),
    (
        DAEMON,
        {readings.STATE: STATE.replace(":active:", ":arbitrating:")},
        "FAIL",
        "the daemon is arbitrating, not active: see `mmgetstate` and /var/adm/ras/mmfs.log.latest",
    ),
    (
        DAEMON,
        {readings.STATE: STATE.replace(":active:", ":unknown:")},
        "UNKNOWN",
        "mmgetstate does not report the daemon's state: see `mmgetstate -v`",
    ),
    (DAEMON, {readings.STATE: OUTSIDE}, "FAIL", None),
    (DAEMON, {readings.STATE: (1, "", "mmgetstate: something else\n")}, "UNKNOWN", None),
    (DAEMON, {readings.STATE: "rubbish\n"}, "UNKNOWN", None),
    (
        DAEMON,
        {readings.STATE: STATE.replace(":state:", ":other:")},
        "UNKNOWN",
        "the header has no field state",
    ),
    (MEMBER, {}, "PASS", "gpfs.domain"),
    (
        MEMBER,
        {readings.CLUSTER: CLUSTER.replace("gpfs.domain", "other.domain")},
        "FAIL",
        "the node belongs to the Storage Scale cluster other.domain, not gpfs.domain",
    ),
    (MEMBER, {readings.CLUSTER: (124, "", "")}, "UNKNOWN", None),
    (POOL, {}, "PASS", "4096 MiB"),
    (POOL, {readings.CONFIG: CONFIG.replace("4294967296", "1073741824")}, "FAIL", None),
    (POOL, {readings.CONFIG: CONFIG.replace(":pagepool:", ":pool:")}, "UNKNOWN", None),
    (POOL, {readings.CONFIG: CONFIG.replace("4294967296", "dynamic")}, "UNKNOWN", None),
    (LOADED, {}, "PASS", "mmfs26 is loaded"),
    (LOADED, {"cat /proc/modules": "xfs 1 0 - Live 0x0\n"}, "FAIL", "the module mmfs26 is not loaded"),
]


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_a_check(name, changes, status, evidence):
    found = verdict("gpfs_client", CHECKS, name, scale_site(), {**HEALTHY, **changes})
    assert found.status == status, found.evidence
    if evidence is not None:
        assert found.evidence == evidence


@pytest.mark.parametrize("name", NAMES)
def test_a_node_that_answers_nothing_passes_nothing(name):
    assert verdict("gpfs_client", CHECKS, name, scale_site(), {}).status == "UNKNOWN"


def test_claims():
    bare = GpfsClientOptions.model_validate({"packages": packages()})
    found = claimed("gpfs_client", CHECKS, worker(scale_site(bare)))
    assert MEMBER not in found
    assert POOL not in found
    assert DAEMON in found


def test_values_are_decoded():
    found = {row["name"]: row["value"] for row in readings.rows(CONFIG, "config")}
    assert found["opensslLibName"] == "/usr/lib64/libssl.so.10:/usr/lib64/libssl.so.6"
