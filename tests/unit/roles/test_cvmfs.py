"""The cvmfs role: settings, units, problems and checks. No package of CernVM-FS is here: the client's answers are made up."""

from __future__ import annotations

import shlex

import pytest

from rackwright.claims import patient
from rackwright.facts.mounts import MountTable
from rackwright.osfamily.known import RELEASES
from rackwright.osfamily.names import names
from rackwright.roles.cvmfs import texts, verify
from rackwright.roles.cvmfs.options import CvmfsOptions
from rackwright.roles.cvmfs.verify import CHECKS
from rackwright.roles.proxy.options import ProxyOptions
from tests.factories import DEBIAN_13
from tests.unit.roles.fake_facts import asked, files, installed, unit
from tests.unit.roles.fake_host import FakeHost, content, errors_in, judged, planned
from tests.unit.roles.sites import site, worker
from tests.unit.roles.storage_sites import nfs, with_storage

FILES, SETTINGS, ANSWERS = (check.name for check in CHECKS)
EESSI = "software.eessi.io"
PATH = f"/cvmfs/{EESSI}"
GIVEN = {"eessi": True, "proxies": ["http://10.9.0.10:3128", "http://10.9.0.11:3128"]}
OWN = {"servers": ["http://s1.example.com/cvmfs/@fqrn@"], "keys": "/etc/cvmfs/keys/example.com"}


def cvmfs_site(given=None, *filesystems, os=DEBIAN_13, **roles):
    options = {"cvmfs": CvmfsOptions.model_validate(given or GIVEN), **roles}
    return with_storage(site({}, os=os), *filesystems, options=options)


def options(made):
    return worker(made).options["cvmfs"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "No repository is declared."),
        ({"repositories": {"EESSI": {}}}, None),
        ({**GIVEN, "proxies": ["10.9.0.10"]}, "'10.9.0.10' is not the address of a proxy."),
        (
            {"repositories": {"a.example.com": {**OWN, "servers": ["http://x/cvmfs/'"]}}},
            '"http://x/cvmfs/\'" is not the URL of a replica.',
        ),
        (
            {"repositories": {"a.example.com": {"servers": OWN["servers"]}}},
            "`servers` and `keys` belong together: set both, or neither where a package has them.",
        ),
    ],
)
def test_options_that_are_refused(given, message):
    (found,) = errors_in(CvmfsOptions, given)
    assert message in (None, found)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (cvmfs_site(), None),
        (cvmfs_site({"eessi": True, "direct": True}), None),
        (cvmfs_site({"eessi": True}, proxy=ProxyOptions(http="http://proxy.example.com:3128")), None),
        (
            cvmfs_site({"eessi": True}),
            (
                "proxies",
                "head1 has no proxy for CernVM-FS.",
                "e.g. `proxies: [http://10.0.0.10:3128]`; for a few nodes `direct: true`",
            ),
        ),
        (
            cvmfs_site({**GIVEN, "cache": "/shared/cvmfs"}, nfs("data", "/shared", nodes=("gpu1",))),
            (
                "cache",
                "/shared/cvmfs is on data, which nodes share: each node needs a separate cache.",
                "e.g. `cache: /scratch/cvmfs` on the node's own drives",
            ),
        ),
    ],
)
def test_problems(made, problem):
    assert list(options(made).problems(made)) == ([problem] if problem is not None else [])


def test_settings():
    made = cvmfs_site(
        {**GIVEN, "direct": True, "repositories": {"a.example.com": OWN}, "cache": "/scratch/cvmfs"}
    )
    found = texts.files(made, worker(made), options(made))
    assert found[texts.LOCAL].splitlines()[1:] == [
        f"CVMFS_REPOSITORIES={EESSI},a.example.com",
        "CVMFS_HTTP_PROXY='http://10.9.0.10:3128|http://10.9.0.11:3128;DIRECT'",
        "CVMFS_CACHE_BASE=/scratch/cvmfs",
        "CVMFS_QUOTA_LIMIT=20000",
        "CVMFS_TIMEOUT=5",
        "CVMFS_TIMEOUT_DIRECT=10",
    ]
    assert found["/etc/cvmfs/config.d/a.example.com.local"].splitlines()[1:] == [
        "CVMFS_SERVER_URL='http://s1.example.com/cvmfs/@fqrn@'",
        "CVMFS_KEYS_DIR=/etc/cvmfs/keys/example.com",
    ]
    mount = found[f"/etc/systemd/system/cvmfs-{EESSI}.mount"]
    assert "RequiresMountsFor=/scratch/cvmfs\n" in mount
    assert f"[Mount]\nWhat={EESSI}\nWhere={PATH}\nType=cvmfs\nOptions=ro,nodev,nosuid\n" in mount
    assert set(options(made).unit_files(worker(made))) == {
        path for path in found if path.startswith("/etc/systemd")
    }
    proxied = cvmfs_site({"eessi": True}, proxy=ProxyOptions(http="http://proxy.example.com:3128"))
    assert texts.proxy(proxied, worker(proxied), options(proxied)) == "http://proxy.example.com:3128"


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_whole(os):
    made = cvmfs_site(os=os)
    plan = planned(made, worker(made))
    assert plan.error is None
    steps = [op.name for op in plan.operations if op.role == "cvmfs"]
    assert steps[:4] == [
        "Install CernVM-FS",
        "Install repository addresses and keys",
        "Create /var/lib/cvmfs",
        f"Write {texts.LOCAL}",
    ]
    assert steps[-1] == f"Mount {EESSI} on first use"
    assert content(plan, texts.LOCAL) == texts.default_local(made, worker(made), options(made))


# Checks

SHOWN = f"""\
CVMFS_REPOSITORY_NAME={EESSI}
CVMFS_CACHE_BASE=/var/lib/cvmfs    # from /etc/cvmfs/default.local
CVMFS_HTTP_PROXY='http://10.9.0.10:3128|http://10.9.0.11:3128'    # from /etc/cvmfs/default.local
CVMFS_QUOTA_LIMIT=20000    # from /etc/cvmfs/default.local
"""
TABLE = f"0 0 0:0 / / rw - ext4 /dev/vda rw\n0 0 0:0 / {PATH} ro - fuse cvmfs2 ro\n"


def result(name, given, always=None):
    made = cvmfs_site()
    return judged("cvmfs", CHECKS, name, made, worker(made), FakeHost(given, always))


def answers(probe=f"Probing {PATH}... OK\n", table=TABLE, seen='{"reading": 4}', shown=SHOWN):
    words = (patient.PROGRAM, "20", verify._LOOK, PATH)
    return {
        f"timeout -s KILL 60 cvmfs_config probe {EESSI}": probe,
        f"timeout -s KILL 30 cvmfs_config showconfig {EESSI}": shown,
        asked(MountTable().command((PATH,))): table,
        f"python3 -IS -c {' '.join(map(shlex.quote, words))}": seen,
    }


@pytest.mark.parametrize(
    ("name", "changes", "status", "evidence"),
    [
        (ANSWERS, {}, "PASS", f"{PATH} (4 entries)"),
        (ANSWERS, {"probe": (1, f"Probing {PATH}... Failed!\n", "")}, "FAIL",
         f"{PATH} cannot be mounted: `cvmfs_config probe` fails"),
        (ANSWERS, {"table": TABLE.splitlines()[0] + "\n"}, "FAIL", f"{PATH} is not mounted"),
        (ANSWERS, {"table": TABLE.replace("fuse cvmfs2", "nfs4 a:/b")}, "FAIL", f"{PATH} is nfs4 from a:/b, not a repository"),
        (ANSWERS, {"seen": '{"error": "ENOTCONN", "text": "x"}'}, "FAIL", f"{PATH} cannot be read: ENOTCONN (x)"),
        (ANSWERS, {"probe": (137, "", "Killed")}, "UNKNOWN", f"{EESSI} does not answer within 60 s"),
        (ANSWERS, {"seen": '{"hangs": true}'}, "UNKNOWN", f"{PATH} does not answer within 20 s"),
        (ANSWERS, {"probe": (127, "", "timeout: cvmfs_config: not found")}, "UNKNOWN", None),
        (SETTINGS, {}, "PASS", None),
        (SETTINGS, {"shown": SHOWN.replace("0.10:3128|", "0.99:3128|")}, "FAIL",
         (f"{EESSI} has CVMFS_HTTP_PROXY http://10.9.0.99:3128|http://10.9.0.11:3128, not "
         "http://10.9.0.10:3128|http://10.9.0.11:3128")),
        (SETTINGS, {"shown": SHOWN.replace("CVMFS_QUOTA_LIMIT=20000", "X=1")}, "FAIL",
         f"{EESSI} has CVMFS_QUOTA_LIMIT unset, not 20000"),
        (SETTINGS, {"shown": "nothing\n"}, "UNKNOWN", f"`cvmfs_config showconfig {EESSI}` prints no settings"),
    ],
)  # fmt: skip
def test_a_check(name, changes, status, evidence):
    one = result(name, answers(**changes))
    assert (one.status, evidence in (None, one.evidence)) == (status, True), one


def test_the_client_and_its_files():
    made = cvmfs_site()
    family = worker(made).family
    wanted = (*names(family, "cvmfs").packages, "cvmfs-config-default", "cvmfs-config-eessi")
    there = {
        **installed(family, wanted),
        **unit(texts.automount(EESSI)),
        **files(texts.files(made, worker(made), options(made))),
    }
    assert result(FILES, there).status == "PASS"
    assert (
        result(FILES, there | installed(family, wanted, missing=("cvmfs",))).evidence
        == "not installed: cvmfs"
    )
    assert result(FILES, there | unit(texts.automount(EESSI), active="inactive")).status == "FAIL"
    for name in (FILES, SETTINGS, ANSWERS):
        assert result(name, {}).status == "UNKNOWN"
        for rubbish in ("", "command not ready\n"):
            assert result(name, {}, always=rubbish).status not in ("PASS", "WARN")
