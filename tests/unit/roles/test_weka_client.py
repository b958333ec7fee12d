"""The weka_client role. `weka local status` is as WEKA's documentation prints it ("Add clients", 4.2), and the line of
/proc/mounts as a sample in a public check script for WEKA has it; both read 2026-11-26.
"""

from __future__ import annotations

import subprocess
import tarfile

import pytest

from rackwright.model.settings import Mirrors
from rackwright.model.storage import FilesystemKind
from rackwright.model.types import Platform
from rackwright.mounts import differences, mount_text, parse_mountinfo
from rackwright.osfamily.known import RELEASES
from rackwright.roles.weka_client import texts, verify
from rackwright.roles.weka_client.options import TOKEN, WekaClientOptions
from rackwright.roles.weka_client.verify import CHECKS
from rackwright.secrets.store import Secret
from tests.factories import RunsSlurm
from tests.unit.roles.fake_facts import file, unit
from tests.unit.roles.fake_host import claimed, commands, errors_in, planned
from tests.unit.roles.mount_sites import filesystem, mounting_site, verdict
from tests.unit.roles.sites import worker

NAMES = [check.name for check in CHECKS]
AGENT, VERSION, CGROUPS, TOKENS = NAMES[:4]
CONTAINER, LOADED = NAMES[-2:]
DIGEST = "a" * 64
FIELDS = {"version": "4.2.0", "sha256": DIGEST}
PLAIN = WekaClientOptions.model_validate(
    {**FIELDS, "net": ["ib0", "ib1"], "cores": [62, 63], "memory_mib": 2800}
)
UDP = WekaClientOptions.model_validate({**FIELDS, "network_mode": "udp"})
SCRATCH = filesystem(FilesystemKind.WEKA, "10.11.9.1", "10.11.9.2", fsname="default")
MIRRORS = Mirrors(files="http://m/files")


class _Store:
    def get(self, name):
        return Secret(name, '{"access_token": "x"}')


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    monkeypatch.setattr(verify, "store_of", lambda cluster: _Store())


def weka_site(given=PLAIN, fs=SCRATCH, options=None, **changes):
    return mounting_site({"weka_client": given, **(options or {})}, fs, **{"mirrors": MIRRORS, **changes})


def problems(given=PLAIN, fs=SCRATCH, **changes):
    return list(given.problems(weka_site(given, fs, **changes)))


def test_the_mount_joins_the_cluster():
    mount = PLAIN.mount_of(worker(weka_site()), SCRATCH)
    assert mount.what == "10.11.9.1,10.11.9.2/default"
    assert mount.options == (
        *("nosuid", "nodev", "noatime", "core=62", "core=63", "net=ib0", "net=ib1"),
        *("mgmt_ip=10.11.0.11+10.11.1.11", "memory_mb=2800"),
    )
    text = mount_text(mount)
    assert "\nType=wekafs\n" in text
    assert "\nRequires=weka-agent.service\n" in text


def test_without_cores_of_its_own():
    given = UDP.model_copy(update={"stored_as": "weka_token", "traces_mib": 1024})
    assert given.mount_of(worker(weka_site(given)), SCRATCH).options[3:] == (
        *("num_cores=0", "net=udp", "traces_capacity_mb=1024", f"auth_token_path={TOKEN}"),
    )
    assert given.supplied_secrets == ("weka_token",)
    assert (UDP.taken_cores, PLAIN.taken_cores) == (0, 2)


def test_what_the_kernel_shows():
    fs = SCRATCH.model_copy(update={"options": ("readcache", "relatime")})
    mount = PLAIN.mount_of(worker(weka_site()), fs)
    shown = (
        "rw,writecache,inode_bits=auto,readahead_kb=32768,dentry_max_age_positive=1000,container_name=client"
    )
    table = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"2 1 0:50 / /scratch rw,nosuid,nodev,relatime - wekafs 10.11.9.1,10.11.9.2/default {shown}\n"
    )
    assert list(differences(mount, table["/scratch"][0])) == ["lacks readcache"]


def test_refused():
    assert errors_in(WekaClientOptions, FIELDS) == ["DPDK needs the devices that WEKA drives."]
    assert errors_in(WekaClientOptions, {**FIELDS, "network_mode": "udp", "cores": [1]}) == [
        "With UDP, WEKA takes neither devices nor cores."
    ]
    assert errors_in(WekaClientOptions, {**FIELDS, "net": ["ib0"], "cores": [2, 2]}) == [
        "A core is listed twice."
    ]
    assert errors_in(WekaClientOptions, {**FIELDS, "net": ["ib0"], "cores": [0]})
    assert errors_in(WekaClientOptions, {**FIELDS, "net": ["ib0,core=1"]})
    assert problems() == []
    assert [one[1] for one in problems(mirrors=Mirrors())] == [
        "weka-4.2.0.tar comes from the site's mirror, but `mirrors.files` is not declared."
    ]
    far = PLAIN.model_copy(update={"cores": (500,)})
    assert [one[1] for one in problems(far)] == ["gpu1 has CPUs 0 to 223, not 500."]
    own = SCRATCH.model_copy(update={"options": ("num_cores=4",)})
    assert problems(fs=own) == [
        ("", "`num_cores` of scratch is not declared as a mount option.", "see `roles.weka_client`")
    ]
    assert [one[1] for one in problems(platform=Platform.CONTAINER)] == [
        "gpu1 cannot mount scratch: a container neither mounts nor serves network filesystems."
    ]


def test_cores_of_jobs():
    greedy = weka_site(options={"slurm_stand_in": RunsSlurm()})
    assert list(PLAIN.warnings(greedy)) == [
        (
            "cores",
            "WEKA polls on 2 cores of gpu1; jobs get all but 0.",
            "set `roles.slurm.core_spec_count: 2`, and `cores` to the last ones of the node",
        )
    ]
    kept = weka_site(options={"slurm_stand_in": RunsSlurm(core_spec_count=2)})
    assert list(PLAIN.warnings(kept)) == []
    assert list(UDP.warnings(greedy)) == []


def test_memory_of_jobs():
    assert PLAIN.reserved_mib(worker(weka_site())) == 2800
    assert UDP.reserved_mib(worker(weka_site())) == 1400


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    given = PLAIN.model_copy(update={"stored_as": "weka_token"})
    cluster = weka_site(given, os=os)
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    (fetch,) = commands(plan, "Fetch the WEKA client")
    assert "http://m/files/weka-4.2.0.tar" in fetch
    assert DIGEST in fetch
    assert commands(plan, "Install the WEKA client") == (texts.install(given),)
    order = [one.name for one in plan.operations if one.role == "weka_client"]
    assert (
        order.index("Install the WEKA client")
        < order.index("Start the WEKA agent")
        < order.index("Mount /scratch")
    )


@pytest.mark.parametrize("code", [0, 3])
def test_the_shell_runs_the_installer_of_the_tarball(tmp_path, code):
    script = tmp_path / "install.sh"
    script.write_text(f'#!/bin/sh\necho "$PWD $WEKA_CGROUPS_MODE" >{tmp_path}/ran\nexit {code}\n')
    script.chmod(0o755)
    with tarfile.open(tmp_path / PLAIN.tarball, "w") as tarball:
        tarball.add(script, "weka-4.2.0/install.sh")
    shell = texts.install(PLAIN).replace(texts.DOWNLOADS, str(tmp_path))
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False, timeout=20)
    folder, mode = (tmp_path / "ran").read_text().split()
    assert (done.returncode, mode) == (code, "none")
    assert subprocess.run(["ls", folder], capture_output=True, check=False).returncode != 0


def test_the_shell_reads_and_writes_the_settings(tmp_path):
    conf = tmp_path / "service.conf"
    conf.write_text("[os]\ncgroup_mode = auto\nisolate=1\n")
    for shell, printed in (
        (texts.READ_CGROUPS, "auto\n"),
        (texts.WRITE_CGROUPS, ""),
        (texts.READ_CGROUPS, "none\n"),
    ):
        command = shell.replace(texts.CONF, str(conf))
        assert (
            subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
            == printed
        )
    assert conf.read_text() == "[os]\nisolate=1\ncgroup_mode=none\n"
    tool = tmp_path / "weka"
    tool.write_text(f"#!/bin/sh\ncat <<'E'\n{GOOD}E\n")
    tool.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", texts.READ_VERSION], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout == "4.2.0\n"


GOOD = """\
Weka v4.2.0 (CLI build 4.2.0)
Cgroups: mode=none, enabled=false

Containers: 1/1 running (1 weka)
Nodes: 2/2 running (2 READY)
Mounts: 1
"""
HEALTHY = {
    texts.STATUS: GOOD,
    "cat /proc/modules": "wekafsio 1241088 1 - Live 0x0\n",
    **unit("weka-agent.service"),
    **file(TOKEN, '{"access_token": "x"}', "600", digest_only=True),
}
CASES = [
    (AGENT, {}, "PASS", "weka-agent.service is active and enabled"),
    (AGENT, unit("weka-agent.service", active="failed"), "FAIL", "weka-agent.service is failed"),
    (VERSION, {}, "PASS", "WEKA 4.2.0"),
    (
        VERSION,
        {texts.STATUS: GOOD.replace("build 4.2.0", "build 4.1.2")},
        "FAIL",
        "WEKA 4.1.2 is installed, not 4.2.0",
    ),
    (
        VERSION,
        {texts.STATUS: GOOD.replace("Weka v4.2.0", "Weka v4.2.5")},
        "WARN",
        "the backends' version 4.2.5 runs, but 4.2.0 is declared",
    ),
    (VERSION, {texts.STATUS: "error: the agent does not run\n"}, "UNKNOWN", None),
    (VERSION, {texts.STATUS: (124, "", "")}, "UNKNOWN", None),
    (CGROUPS, {}, "PASS", "none"),
    (CGROUPS, {texts.STATUS: GOOD.replace("mode=none", "mode=force_v2")}, "FAIL", None),
    (CONTAINER, {}, "PASS", "1 of 1 containers are running"),
    (CONTAINER, {texts.STATUS: GOOD.replace("1/1 running", "0/1 running")}, "FAIL", None),
    (CONTAINER, {texts.STATUS: GOOD.replace("Containers: 1/1", "Containers: 0/0")}, "FAIL", None),
    (LOADED, {}, "PASS", "wekafsio is loaded"),
    (LOADED, {"cat /proc/modules": "xfs 1 0 - Live 0x0\n"}, "FAIL", "the module wekafsio is not loaded"),
    (TOKENS, {}, "PASS", TOKEN),
    (TOKENS, file(TOKEN, "{}", "600", digest_only=True), "FAIL", f"{TOKEN} is not as declared"),
    (TOKENS, file(TOKEN, '{"access_token": "x"}', "644", digest_only=True), "FAIL", None),
]


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_a_check(name, changes, status, evidence):
    given = PLAIN.model_copy(update={"stored_as": "weka_token"})
    found = verdict("weka_client", CHECKS, name, weka_site(given), {**HEALTHY, **changes})
    assert found.status == status, found.evidence
    if evidence is not None:
        assert found.evidence == evidence


@pytest.mark.parametrize("name", NAMES)
def test_a_node_that_answers_nothing_passes_nothing(name):
    given = PLAIN.model_copy(update={"stored_as": "weka_token"})
    assert verdict("weka_client", CHECKS, name, weka_site(given), {}).status == "UNKNOWN"


def test_claims():
    assert TOKENS not in claimed("weka_client", CHECKS, worker(weka_site()))
    assert [one.program for one in PLAIN.listeners(worker(weka_site()))] == ["wekanode", "wekanode"]
