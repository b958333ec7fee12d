"""The apptainer role: options, where it comes from, files, and its checks. Never run: no package of it here."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from rackwright.osfamily.known import os_release
from rackwright.roles.apptainer import texts
from rackwright.roles.apptainer.options import ApptainerOptions
from rackwright.roles.apptainer.verify import CHECKS
from tests.unit.roles.container_site import changed, never_passes, runtimes, sentences, user_folder_answers
from tests.unit.roles.fake_facts import file
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, worker

DEB, SUID = "apptainer_1.4.5_amd64.deb", "apptainer-suid_1.4.5_amd64.deb"
OPTIONS = ApptainerOptions(version="1.4.5", sha256={DEB: "a" * 64, SUID: "b" * 64})
SITE = runtimes(apptainer=OPTIONS)
GPU = worker(SITE)
EPEL = ApptainerOptions(source="epel", setuid=True)
FINGERPRINT = "0123456789ABCDEF0123456789ABCDEF01234567"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "Packages of a release need its version, e.g. 1.4.5."),
        ({"source": "ppa"}, "The PPA needs the fingerprint of its key, as its page on Launchpad shows it."),
        ({"version": "latest"}, "String should match pattern '^[0-9]+\\.[0-9]+\\.[0-9]+$'"),
        ({"source": "epel", "sessiondir_max_mib": 1}, "Input should be greater than or equal to 16"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(ApptainerOptions, given) == [sentence]


@pytest.mark.parametrize(
    ("os", "options", "problem"),
    [
        (os_release("debian-13"), OPTIONS, None),
        (os_release("rocky-9"), EPEL, None),
        (
            os_release("debian-13"),
            EPEL,
            ("source", "gpu1 is debian-13, which has no source epel.", "use release"),
        ),
        (
            os_release("rhel-9"),
            OPTIONS,
            ("source", "gpu1 is rhel-9, which has no source release.", "use epel"),
        ),
        (
            os_release("debian-12"),
            ApptainerOptions(source="ppa", ppa_fingerprint=FINGERPRINT),
            ("source", "gpu1 is debian-12, and a PPA is for Ubuntu.", "use release"),
        ),
        (
            os_release("debian-13"),
            ApptainerOptions(version="1.4.5"),
            ("sha256", f"gpu1 needs {DEB}, whose SHA-256 is not declared.", None),
        ),
    ],
)
def test_problems(os, options, problem):
    assert sentences(runtimes(os=os, apptainer=options), "apptainer") == ([problem] if problem else [])


def test_files():
    assert texts.declared(OPTIONS) == {texts.CONF: expected("apptainer/plain.conf")}
    options = OPTIONS.model_copy(
        update={
            "bind_paths": ("/scratch",),
            "cache_root": "/scratch/apptainer",
            "setuid": True,
            "always_nv": True,
        }
    )
    assert texts.declared(options) == {
        texts.CONF: expected("apptainer/setuid.conf"),
        texts.PROFILE: expected("apptainer/profile.sh"),
    }


def test_packages_of_a_release():
    plan = planned(SITE, GPU)
    assert changed(plan, "apptainer", "package") == ["curl", "apptainer"]
    (fetch,) = commands(plan, f"Fetch {DEB}")
    assert f"https://github.com/apptainer/apptainer/releases/download/v1.4.5/{DEB}" in fetch
    assert f'[ "$found" = {"a" * 64} ]' in fetch
    (install,) = commands(plan, f"Install {DEB}")
    assert f"install /var/cache/rackwright/{DEB}" in install
    mirrored = runtimes(files="http://m/files/", apptainer=OPTIONS.model_copy(update={"setuid": True}))
    plan = planned(mirrored, worker(mirrored))
    assert changed(plan, "apptainer", "package") == ["curl", "apptainer", "apptainer-suid"]
    assert f"http://m/files/{SUID}" in commands(plan, f"Fetch {SUID}")[0]


def test_packages_of_epel_and_of_the_ppa():
    made = runtimes(os=os_release("rocky-9"), apptainer=EPEL)
    assert changed(planned(made, worker(made)), "apptainer", "package") == ["apptainer", "apptainer-suid"]
    ppa = ApptainerOptions(source="ppa", ppa_fingerprint=FINGERPRINT)
    made = runtimes(os=os_release("ubuntu-24.04"), apptainer=ppa)
    plan = planned(made, worker(made))
    assert content(plan, "/etc/apt/sources.list.d/apptainer.sources") == expected("apptainer/ppa.sources")
    (fetch,) = commands(plan, "Fetch the PPA key")
    assert f"search=0x{FINGERPRINT}" in fetch
    assert f'[ "$found" = {FINGERPRINT} ]' in fetch


def _sourced(root, tmp_path):
    text = texts.declared(OPTIONS.model_copy(update={"cache_root": str(root)}))[texts.PROFILE]
    (tmp_path / "profile.sh").write_text(text)
    script = f". {tmp_path}/profile.sh; echo ${{APPTAINER_CACHEDIR-none}} ${{rackwright_folder-unset}}"
    ran = subprocess.run(
        ["sh", "-euc", script], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}
    )
    return ran.stdout.strip(), ran.stderr


def test_a_session_uses_its_own_folder_and_no_other(tmp_path):
    root = tmp_path / "scratch"
    own = root / str(os.getuid())
    root.mkdir()
    assert _sourced(root, tmp_path) == ("none unset", "")
    own.mkdir()
    assert _sourced(root, tmp_path) == (f"{own}/cache unset", "")
    (tmp_path / "planted").mkdir()
    shutil.rmtree(own)
    own.symlink_to(tmp_path / "planted")
    where, printed = _sourced(root, tmp_path)
    assert where == "none unset"
    assert printed == f"apptainer: {own} belongs to another user and is not used; ask the operators\n"
    assert list((tmp_path / "planted").iterdir()) == []


CACHED = runtimes(apptainer=OPTIONS.model_copy(update={"cache_root": "/scratch/apptainer"}))


@pytest.mark.parametrize(
    ("found", "status", "evidence"),
    [
        ("3000 700 d 3000", "PASS", "1 folders in /scratch/apptainer"),
        (
            "3001 700 d 3000",
            "FAIL",
            "/scratch/apptainer/3000 has mode 700 and belongs to uid 3001, not 700 and uid 3000",
        ),
        ("rubbish", "UNKNOWN", "the folders in /scratch/apptainer cannot be read: 'rubbish'"),
    ],
)
def test_users_folders(found, status, evidence):
    node = worker(CACHED)
    host = FakeHost(user_folder_answers(node, texts.folders(node.options["apptainer"]), found))
    name = "users' Apptainer folders are private"
    result = judged("apptainer", CHECKS, name, CACHED, node, host)
    assert (result.status, result.evidence) == (status, evidence)
    assert judged("apptainer", CHECKS, name, CACHED, node, FakeHost({})).status == "UNKNOWN"


CONF = texts.declared(OPTIONS)[texts.CONF]
STARTER = "/usr/libexec/apptainer/bin/starter-suid"
THERE = file(STARTER, b"\x7fELF", mode="4755", digest_only=True)
GONE = file(STARTER, None, digest_only=True)
MOST = "cat /proc/sys/user/max_user_namespaces"
SWITCHES = (
    "sh -c 'for f in /proc/sys/kernel/unprivileged_userns_clone "
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns; do [ -e $f ] && cat $f || echo none; done'"
)
RELEASE, ONLY_IF = "apptainer is the declared release", "the setuid starter exists only if declared"
NAMESPACES = "users may create user namespaces"


def test_no_check_passes_without_knowing():
    never_passes("apptainer", CHECKS, SITE, GPU)


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (RELEASE, {"apptainer version": "1.4.5\n"}, "PASS", "apptainer 1.4.5"),
        (RELEASE, {"apptainer version": "1.4.5-2.el9\n"}, "PASS", "apptainer 1.4.5-2.el9"),
        (RELEASE, {"apptainer version": "1.3.0\n"}, "FAIL", "apptainer 1.3.0 is installed, not 1.4.5"),
        (RELEASE, {"apptainer version": "?\n"}, "UNKNOWN", "`apptainer version` printed '?'"),
        (
            "apptainer's files are as declared",
            file(texts.CONF, CONF),
            "PASS",
            texts.CONF,
        ),
        (
            "apptainer's files are as declared",
            file(texts.CONF, CONF.replace("setuid = no", "setuid = yes")),
            "FAIL",
            f"{texts.CONF} is not as declared: allow setuid = yes",
        ),
        (ONLY_IF, GONE, "PASS", "no setuid program"),
        (
            ONLY_IF,
            THERE,
            "FAIL",
            "/usr/libexec/apptainer/bin/starter-suid is there (4755 root), and setuid is not declared",
        ),
        (NAMESPACES, {MOST: "63459\n", SWITCHES: "1\nnone\n"}, "PASS", "user.max_user_namespaces is 63459"),
        (
            NAMESPACES,
            {MOST: "0\n"},
            "FAIL",
            "user.max_user_namespaces is 0: no user may create a user namespace",
        ),
        (
            NAMESPACES,
            {MOST: "9\n", SWITCHES: "0\nnone\n"},
            "FAIL",
            "kernel.unprivileged_userns_clone is 0: no user may create a user namespace",
        ),
        (
            NAMESPACES,
            {MOST: "9\n", SWITCHES: "none\n1\n"},
            "FAIL",
            "AppArmor restricts user namespaces, and the profile apptainer that allows them is missing",
        ),
        (
            NAMESPACES,
            {MOST: "9\n", SWITCHES: "none\n1\n", "test -e /etc/apparmor.d/apptainer": ""},
            "PASS",
            "user.max_user_namespaces is 9",
        ),
        (
            NAMESPACES,
            {MOST: "9\n", SWITCHES: "1\n"},
            "UNKNOWN",
            "the kernel's user namespace settings cannot be read",
        ),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("apptainer", CHECKS, name, SITE, GPU, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)


def test_with_setuid():
    made = runtimes(os=os_release("rocky-9"), apptainer=EPEL)
    assert NAMESPACES not in claimed("apptainer", CHECKS, worker(made))
    for answers, status, evidence in (
        (THERE, "PASS", "the setuid starter is there"),
        (GONE, "FAIL", "/usr/libexec/apptainer/bin/starter-suid is missing, not 4755 root"),
    ):
        found = judged("apptainer", CHECKS, ONLY_IF, made, worker(made), FakeHost(answers))
        assert (found.status, found.evidence) == (status, evidence)
