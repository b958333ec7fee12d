"""The lustre_client role. Texts of `lnetctl net show` and `lfs check servers` are as public logs and Lustre's sources have
them (whamcloud/integrated-manager's tests; AWS' ParallelCluster documentation; lustre/utils/liblustreapi.c), read 2026-11-26.
"""

from __future__ import annotations

import subprocess

import pytest

from rackwright.model.storage import FilesystemKind
from rackwright.model.types import LinkKind, Platform
from rackwright.mounts import mount_text
from rackwright.osfamily.known import RELEASES
from rackwright.roles.lustre_client import texts
from rackwright.roles.lustre_client.options import LustreClientOptions
from rackwright.roles.lustre_client.verify import CHECKS
from tests.unit.roles.fake_facts import files, unit
from tests.unit.roles.fake_host import claimed, commands, content, errors_in, planned
from tests.unit.roles.mount_sites import KERNEL, filesystem, mounting_site, verdict
from tests.unit.roles.sites import head, worker
from tests.unit.roles.stack_tools import installed

NAMES = [check.name for check in CHECKS]
INSTALLED, BUILT, AT_BOOT, NIDS = NAMES[:4]
LOADED, SERVERS = NAMES[-2:]
PLAIN = LustreClientOptions(version="2.15.8-1")
SCRATCH = filesystem(FilesystemKind.LUSTRE, "10.11.9.1@o2ib", "10.11.9.2@o2ib", fsname="lscratch")
ARCHIVE = {"url": "http://m/lustre/", "key_url": "http://m/lustre.asc", "fingerprint": "A" * 40}


def lustre_site(given=PLAIN, fs=SCRATCH, **changes):
    return mounting_site({"lustre_client": given}, fs, **changes)


def problems(given=PLAIN, fs=SCRATCH, **changes):
    return list(given.problems(lustre_site(given, fs, **changes)))


def test_it_runs_where_lustre_is_mounted():
    cluster = lustre_site()
    assert "lustre_client" in worker(cluster).options
    assert "lustre_client" not in head(cluster).options
    assert PLAIN.unit_files(worker(cluster)) == (
        "/etc/systemd/system/scratch.mount",
        "/etc/systemd/system/scratch.automount",
    )


def test_the_mount():
    mount = PLAIN.mount_of(worker(lustre_site()), SCRATCH)
    assert mount.what == "10.11.9.1@o2ib:10.11.9.2@o2ib:/lscratch"
    assert mount.options == ("nosuid", "nodev", "noatime", "flock")
    assert mount.shown == {"nosuid": None, "nodev": None, "noatime": None, "flock": None}
    text = mount_text(mount)
    assert "\nRequires=lnet.service\n" in text
    assert "\nType=lustre\n" in text


def test_a_declared_option_takes_the_place_of_ours():
    fs = SCRATCH.model_copy(update={"options": ("localflock", "atime", "suid")})
    assert PLAIN.mount_of(worker(lustre_site()), fs).options == ("nodev", "localflock", "atime", "suid")


@pytest.mark.parametrize(
    ("address", "rdma", "nid"),
    [
        ("10.0.0.5", False, "10.0.0.5@tcp"),
        ("10.0.0.5", True, "10.0.0.5@o2ib"),
        ("10.0.0.5@o2ib0", False, "10.0.0.5@o2ib"),
        ("10.0.0.5@tcp10", False, "10.0.0.5@tcp10"),
    ],
)
def test_nids_as_lnet_prints_them(address, rdma, nid):
    assert PLAIN.nids(filesystem(FilesystemKind.LUSTRE, address, rdma=rdma)) == (nid,)


def test_lnet_has_every_rail():
    cluster = lustre_site()
    assert texts.conf(cluster, worker(cluster), PLAIN).splitlines()[1:] == [
        "net:",
        "    - net type: o2ib",
        "      local NI(s):",
        "        - interfaces:",
        "              0: rail0",
        "        - interfaces:",
        "              0: rail1",
    ]
    assert [one.nid for one in PLAIN.interfaces(cluster, worker(cluster))] == [
        "10.11.0.11@o2ib",
        "10.11.1.11@o2ib",
    ]


def test_declared_networks_and_interfaces():
    given = LustreClientOptions(
        version="2.15.8-1",
        networks={
            "tcp0": {"network": "storage", "interfaces": ["eno2"]},
            "o2ib": {"network": "fabric", "interfaces": ["ib0", "ib1"]},
        },
    )
    cluster = lustre_site(given, named=False)
    found = [(one.nid, one.name) for one in given.interfaces(cluster, worker(cluster))]
    assert found == [("10.10.0.11@tcp", "eno2"), ("10.11.0.11@o2ib", "ib0"), ("10.11.1.11@o2ib", "ib1")]
    assert problems(given, named=False) == []


def test_refused():
    assert errors_in(LustreClientOptions, {}) == ["Field required"]
    assert errors_in(LustreClientOptions, {"version": "2.15.8-1", "networks": {"gni": {"network": "fabric"}}})
    assert problems() == []
    assert problems(kind=LinkKind.ETHERNET) == [
        (
            "networks.o2ib",
            "LNet's network o2ib needs RDMA, but fabric is ethernet.",
            "e.g. `networks: {o2ib: {network: fabric}}`",
        )
    ]
    assert [one[:2] for one in problems(named=False)] == [
        ("networks.o2ib", "The interface that has 10.11.0.11 on gpu1 is not declared."),
        ("networks.o2ib", "The interface that has 10.11.1.11 on gpu1 is not declared."),
    ]
    named = filesystem(FilesystemKind.LUSTRE, "mgs.example.com@o2ib", fsname="lscratch")
    assert [one[1] for one in problems(fs=named)] == [
        "mgs.example.com@o2ib of scratch is a DNS name, but the kernel shows the address instead."
    ]
    prebuilt = PLAIN.model_copy(update={"modules": "prebuilt"})
    assert [one[1] for one in problems(prebuilt, kernel=None)] == [
        "Prebuilt modules fit one kernel, but gpu1 declares none."
    ]
    assert problems(platform=Platform.CONTAINER) == [
        (
            "",
            "gpu1 cannot mount scratch: a container neither mounts nor serves network filesystems.",
            "remove it from `storage.scratch.nodes`",
        )
    ]
    nowhere = PLAIN.model_copy(
        update={
            "networks": LustreClientOptions(
                version="2.15.8-1", networks={"tcp": {"network": "nowhere"}}
            ).networks
        }
    )
    assert [one[1] for one in problems(nowhere)] == ["There is no network nowhere."]
    unused = mounting_site({"lustre_client": PLAIN})
    assert [one[1] for one in PLAIN.warnings(unused)] == ["No node mounts a lustre filesystem."]


def test_one_lnet_network_is_on_one_network():
    second = filesystem(
        FilesystemKind.LUSTRE, "10.10.9.1@o2ib", fsname="l2", name="data", path="/data", network="storage"
    )
    cluster = mounting_site({"lustre_client": PLAIN}, SCRATCH, second)
    assert list(PLAIN.problems(cluster)) == [
        (
            "networks.o2ib",
            "LNet's network o2ib is on storage for data, but on fabric for another one.",
            "declare it, e.g. `networks: {o2ib: {network: storage}}`",
        )
    ]


def test_what_is_planned():
    cluster = lustre_site(LustreClientOptions(version="2.15.8-1", archive=ARCHIVE))
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    (install,) = commands(plan, "Install the Lustre client")
    assert "lustre-client-modules-dkms=2.15.8-1 lustre-client-utils=2.15.8-1" in install
    assert "apt-mark hold lustre-client-modules-dkms lustre-client-utils" in install
    (build,) = commands(plan, "Build the Lustre modules")
    assert "for conf in /usr/src/lustre-client-modules-2.15.8*; do" in build
    assert f"for kernel in {KERNEL}; do" in build
    (there,) = commands(plan, "Check that the module lustre exists")
    assert f"depmod {KERNEL}; " in there
    assert "Signed-By: /etc/apt/keyrings/rackwright-lustre.asc" in (
        content(plan, "/etc/apt/sources.list.d/rackwright-lustre.sources") or ""
    )
    interfaces = PLAIN.interfaces(cluster, worker(cluster))
    assert commands(plan, "Bring up the LNet networks") == (texts.bring_up(interfaces),)
    order = [one.name for one in plan.operations if one.role == "lustre_client"]
    assert (
        order.index("Build the Lustre modules")
        < order.index("Configure LNet at boot")
        < order.index("Mount /scratch")
    )


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
@pytest.mark.parametrize("modules", ["dkms", "prebuilt"])
def test_it_is_planned_on_every_release(os, modules):
    given = LustreClientOptions(version="2.15.8-1", modules=modules, archive=ARCHIVE)
    cluster = lustre_site(given, os=os)
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    (install,) = commands(plan, "Install the Lustre client")
    assert all(one.partition("=")[0] in install for one in given.packages(cluster, worker(cluster)))


def test_headers_come_with_a_declared_kernel():
    names = [one.name for one in planned(lustre_site(), worker(lustre_site())).operations]
    assert "Install kernel headers" not in names
    free = lustre_site(kernel=None)
    assert "Install kernel headers" in [one.name for one in planned(free, worker(free)).operations]


def test_the_shell_reads_only_declared_nids(tmp_path):
    tool = tmp_path / "lnetctl"
    tool.write_text("#!/bin/sh\ncat <<'E'\n" + SHOWN.replace("10.11.1.11@o2ib", "10.11.1.11@o2ib1") + "E\n")
    tool.chmod(0o755)
    shell = texts.read_up(("10.11.0.11@o2ib", "10.11.1.11@o2ib"))
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, check=True, env=env, timeout=30
    )
    assert done.stdout == "10.11.0.11@o2ib\n"


@pytest.mark.parametrize(("fails", "status"), [(False, 0), (True, 1)])
def test_a_new_rail_is_added_to_the_running_lnet(tmp_path, fails, status):
    """`lnetctl import` stops at the first interface that LNet has: the second rail would never come."""
    shown = SHOWN.partition("        - nid: 10.11.1.11@o2ib")[0]
    tool = tmp_path / "lnetctl"
    tool.write_text(
        f"#!/bin/sh\n[ \"$2\" != show ] || {{ cat <<'E'\n{shown}E\nexit 0; }}\n"
        f'echo "$*" >>{tmp_path}/calls\nexit {status}\n'
    )
    tool.chmod(0o755)
    cluster = lustre_site()
    shell = texts.bring_up(PLAIN.interfaces(cluster, worker(cluster)))
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, check=False, env=env, timeout=30
    )
    assert (done.returncode != 0) is fails
    assert (tmp_path / "calls").read_text() == "net add --net o2ib --if rail1\n"


SHOWN = """\
net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          status: up
    - net type: o2ib
      local NI(s):
        - nid: 10.11.0.11@o2ib
          status: up
          interfaces:
              0: rail0
        - nid: 10.11.1.11@o2ib
          status: up
          interfaces:
              0: rail1
"""
ANSWERS = """\
lscratch-MDT0000-mdc-ffff88003bfbd000 active.
lscratch-OST0000-osc-ffff88003bfbd000 active.
lscratch-OST000b-osc-ffff88003bfbd000 active.
MGC10.11.9.1@o2ib active.
"""
BROKEN = "lfs check: error: check 'lscratch-OST000b-osc-ffff88003bfbd000': Input/output error (5)\n"
CONF = "/etc/lnet.conf"
MODINFO = f"modinfo -k {KERNEL} -F version lustre"
PACKAGES = ("lustre-client-modules-dkms", "lustre-client-utils")
HEALTHY = {
    MODINFO: "2.15.8\n",
    "cat /proc/modules": "lustre 1241088 0 - Live 0x0\nlnet 724992 9 osc, Live 0x0\n",
    "cat /sys/module/lustre/version": "2.15.8\n",
    texts.SHOW: SHOWN,
    texts.CHECK: ANSWERS,
    **files({CONF: texts.conf(lustre_site(), worker(lustre_site()), PLAIN)}),
    **unit("lnet.service"),
}
CASES = [
    (BUILT, {}, "PASS", f"lustre 2.15.8 for {KERNEL}"),
    (BUILT, {MODINFO: "2.15.7\n"}, "FAIL", f"modprobe would load lustre 2.15.7 on {KERNEL}, not 2.15.8"),
    (
        BUILT,
        {MODINFO: (1, "", "modinfo: ERROR: Module lustre not found.\n")},
        "FAIL",
        f"module lustre does not exist for kernel {KERNEL}",
    ),
    (BUILT, {MODINFO: (1, "", "modinfo: ERROR: could not open /lib/modules")}, "UNKNOWN", None),
    (BUILT, {MODINFO: "\n"}, "UNKNOWN", None),
    (LOADED, {}, "PASS", "lustre 2.15.8 is loaded"),
    (LOADED, {"cat /proc/modules": "xfs 1 0 - Live 0x0\n"}, "FAIL", "the module lustre is not loaded"),
    (
        LOADED,
        {"cat /sys/module/lustre/version": "2.15.7\n"},
        "FAIL",
        "lustre 2.15.7 is loaded, not 2.15.8: a reboot replaces it",
    ),
    (LOADED, {"cat /sys/module/lustre/version": "\n"}, "UNKNOWN", None),
    (AT_BOOT, {}, "PASS", None),
    (AT_BOOT, files({CONF: "net:\n"}), "FAIL", None),
    (AT_BOOT, unit("lnet.service", active="failed"), "FAIL", "lnet.service is failed"),
    (AT_BOOT, unit("lnet.service", active=""), "UNKNOWN", None),
    (NIDS, {}, "PASS", "10.11.0.11@o2ib, 10.11.1.11@o2ib"),
    (
        NIDS,
        {texts.SHOW: SHOWN.replace("10.11.1.11@o2ib", "10.11.1.99@o2ib")},
        "FAIL",
        "LNet lacks 10.11.1.11@o2ib: see `journalctl -u lnet.service` and `dmesg`",
    ),
    (
        NIDS,
        {texts.SHOW: SHOWN.replace("11@o2ib\n          status: up", "11@o2ib\n          status: down", 1)},
        "FAIL",
        "10.11.0.11@o2ib is down",
    ),
    (
        NIDS,
        {texts.SHOW: SHOWN + "        - nid: 10.9.0.11@tcp\n          status: up\n"},
        "WARN",
        "LNet also has 10.9.0.11@tcp, which is not declared; a reboot removes it",
    ),
    (NIDS, {texts.SHOW: "show:\n    - net:\n          errno: -100\n"}, "UNKNOWN", None),
    (SERVERS, {}, "PASS", "4 servers answer"),
    (
        SERVERS,
        {texts.CHECK: (5, ANSWERS.replace("lscratch-OST000b-osc-ffff88003bfbd000 active.\n", ""), BROKEN)},
        "FAIL",
        "lscratch-OST000b-osc-ffff88003bfbd000: Input/output error (5)",
    ),
    (
        SERVERS,
        {
            texts.CHECK: ANSWERS.replace(
                "OST0000-osc-ffff88003bfbd000 active", "OST0000-osc-ffff88003bfbd000 inactive"
            )
        },
        "FAIL",
        "lscratch-OST0000-osc-ffff88003bfbd000: inactive",
    ),
    (
        SERVERS,
        {texts.CHECK: (124, "", "")},
        "UNKNOWN",
        "`lfs check servers` did not end within 40 s: a server hangs",
    ),
    (SERVERS, {texts.CHECK: ""}, "UNKNOWN", None),
    (
        SERVERS,
        {texts.CHECK: (2, ANSWERS.partition("\n")[0], "lfs check: cannot check target 'servers'\n")},
        "UNKNOWN",
        "`lfs check servers` exited 2 after 1 servers: lfs check: cannot check target 'servers'",
    ),
]


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_a_check(name, changes, status, evidence):
    found = verdict("lustre_client", CHECKS, name, lustre_site(), {**HEALTHY, **changes})
    assert found.status == status, found.evidence
    if evidence is not None:
        assert found.evidence == evidence


def test_packages_are_held():
    cluster = lustre_site()
    whole = installed(dict.fromkeys(PACKAGES, "2.15.8-1"))
    assert verdict("lustre_client", CHECKS, INSTALLED, cluster, whole).status == "PASS"
    older = installed(dict.fromkeys(PACKAGES, "2.15.7-1"))
    assert verdict("lustre_client", CHECKS, INSTALLED, cluster, older).status == "FAIL"


@pytest.mark.parametrize("name", [name for name in NAMES if name != AT_BOOT])
def test_a_node_that_answers_nothing_passes_nothing(name):
    cluster = lustre_site()
    assert verdict("lustre_client", CHECKS, name, cluster, {}).status == "UNKNOWN"


def test_claims():
    cluster = lustre_site()
    assert claimed("lustre_client", CHECKS, worker(cluster)) == tuple(NAMES)
    boxed = lustre_site(platform=Platform.CONTAINER)
    assert verdict("lustre_client", CHECKS, NIDS, boxed, {}).status == "OUT OF SCOPE"
