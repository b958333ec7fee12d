"""Each validator, seen to refuse."""

from __future__ import annotations

import copy
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from rackwright.errors import InstallError
from rackwright.install.installers import kickstart, validate
from rackwright.install.installers.answers import make
from rackwright.install.installers.autoinstall_schema import mistakes
from rackwright.install.installers.request import Answers
from rackwright.install.installers.validate import Finding, of_kickstart, of_preseed, of_scripts
from rackwright.status import Status
from tests.unit.install.installers.made import make_request

UBUNTU = yaml.safe_load(
    make(make_request("ubuntu-24.04", mirror=True, volumes="lvm", encryption="tpm2")).files["user-data"]
)
EL = make_request("rocky-9", volumes="lvm")
KS, STORAGE = make(EL).files["ks.cfg"], kickstart.sample(kickstart.storage(EL))
PRESEED = make(make_request("debian-12")).files["preseed.cfg"]


def _changed(change):
    document = copy.deepcopy(UBUNTU)
    change(document["autoinstall"])
    return mistakes("#cloud-config\n" + yaml.safe_dump(document, sort_keys=False))


def _action(autoinstall, name):
    return next(one for one in autoinstall["storage"]["config"] if one["id"] == name)


def _set(name, **values):
    return lambda autoinstall: _action(autoinstall, name).update(values)


def _without(name, key):
    return lambda autoinstall: _action(autoinstall, name).pop(key)


def _rename(old, new):
    def change(autoinstall):
        autoinstall[new] = autoinstall.pop(old)

    return change


def _move_first(name):
    def change(autoinstall):
        config = autoinstall["storage"]["config"]
        config.insert(0, config.pop(next(place for place, one in enumerate(config) if one["id"] == name)))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_rename("late-commands", "late-command"), "autoinstall.late-commands: Field required"),
        (_rename("keyboard", "keybord"), "autoinstall.keybord: Extra inputs are not permitted"),
        (_set("root0", type="partiton"), "Input tag 'partiton' found using 'type' does not match"),
        (
            _set("root0", sise=1),
            "autoinstall.storage.config.3.partition.sise: Extra inputs are not permitted",
        ),
        (_without("root0", "size"), "autoinstall.storage.config.3.partition.size: Field required"),
        (_set("root0", size="all"), "partition.size.constrained-str: String should match pattern"),
        (_set("root0", size=True), "partition.size"),
        (_set("md-root", raidlevel="1"), "raid.raidlevel: Input should be 1"),
        (_set("md-root", devices=["root0"]), "raid.devices: List should have at least 2 items"),
        (_set("crypt", key="secret"), "dm_crypt.key: Extra inputs are not permitted"),
        (_set("crypt", volume="md-rot"), "storage: crypt refers to md-rot, which is not defined before it"),
        (
            _set("group", devices=["md-gone"]),
            "storage: group refers to md-gone, which is not defined before it",
        ),
        (_move_first("md-boot"), "storage: md-boot refers to boot0, which is not defined before it"),
        (_set("esp1", id="esp0"), "storage: the id esp0 appears twice"),
        (_set("disk0", match={}), "storage: disk0 matches any disk"),
        (_without("disk0", "match"), "disk.match: Field required"),
        (_set("disk0", match={"ssd": True}), "disk.match.ssd: Extra inputs are not permitted"),
        (_set("disk1", match={"path": "rackwright-disk-0"}), "storage: two disks have the same match"),
        (
            _set("esp0", grub_device=False),
            "storage: disk0 needs one EFI partition with grub_device, but has: none",
        ),
        (
            _set("boot0", grub_device=True),
            "storage: disk0 needs one EFI partition with grub_device, but has: esp0, boot0",
        ),
        (
            _set("boot0", size=-1),
            "storage: a partition of disk0 takes the remaining space, but is not the last",
        ),
        (_set("esp0-mount", path="/boot"), "storage: the mount points are /, /boot, /boot, but must be"),
        (lambda a: a["network"]["ethernets"]["port0"].pop("match"), "ethernets.port0.match: Field required"),
        (
            lambda a: a["network"]["ethernets"]["port0"].update(addresses=[]),
            "network: 0 interfaces have an address",
        ),
        (
            lambda a: a["network"]["ethernets"]["port0"].update(addresses=["10.9.0.300/24"]),
            "network: '10.9.0.300/24'",
        ),
        (lambda a: a["ssh"].update({"allow-pw": True}), "autoinstall.ssh.allow-pw: Input should be False"),
        (lambda a: a.update(shutdown="reboot"), "autoinstall.shutdown: Input should be 'poweroff'"),
        (lambda a: a.update(version="1"), "autoinstall.version: Input should be 1"),
    ],
)
def test_autoinstall_is_refused(change, message):
    found = _changed(change)
    assert any(message in one for one in found), found


def test_user_data_that_is_none():
    assert mistakes("autoinstall: {}\n") == ["the first line is not #cloud-config"]
    assert mistakes("#cloud-config\na: [\n")[0].startswith("not YAML: ")
    assert _changed(lambda autoinstall: None) == []


@pytest.mark.parametrize(
    ("text", "storage", "message"),
    [
        (KS.replace("rootpw --lock", "rootpwd --lock"), STORAGE, "Unknown command: rootpwd"),
        (
            KS.replace("--interpreter=/bin/sh", "--interpretor=/bin/sh"),
            STORAGE,
            "ksvalidator -v RHEL9 refuses it",
        ),
        (KS, STORAGE.replace("--grow", "--grwo"), "--grwo"),
        (
            KS,
            f"{STORAGE}raid / --device=x --level=RAID1 raid.1 raid.2\n",
            "raid refers to raid.1, which is not defined",
        ),
        (KS, STORAGE.replace("--size=4096", "--size=all"), "--size"),
        (KS, STORAGE.replace("--vgname=system", "--vgname=sytem"), "logvol refers to sytem, which is not"),
        (KS.replace("%end\n\n%pre", "\n%pre"), STORAGE, "ksvalidator -v RHEL9 refuses it"),
        (
            KS,
            STORAGE.replace("disk/by-id/sample-0", "sda"),
            "ondisk names sda, which may be another disk after a reboot",
        ),
    ],
)
def test_kickstart_is_refused(text, storage, message):
    found = [one.message for one in of_kickstart(text, storage, "RHEL9") if one.status is Status.FAIL]
    assert any(message in one for one in found), found


def test_validators_leave_no_file_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # where TMPDIR says
    findings = [*of_kickstart(KS, STORAGE, "RHEL9"), *of_preseed(PRESEED)]
    assert {one.status for one in findings} == {Status.PASS}
    assert list(tmp_path.iterdir()) == []


def test_kickstart_of_a_release_that_ksvalidator_does_not_know():
    assert [one.status for one in of_kickstart(KS, STORAGE, "RHEL99")] == [Status.PASS, Status.FAIL]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("partman/confirm boolean", "partman/confrim boolean", "partman/confrim is not a known question"),
        (
            "partman/confirm boolean",
            "partman/confirm bolean",
            "partman/confirm has the type boolean, not bolean",
        ),
        (
            "make-user boolean false",
            "make-user boolean no",
            "passwd/make-user is no, but must be true or false",
        ),
        (
            "bootdev string default",
            "bootdev string /dev/sda",
            "grub-installer/bootdev names a disk, which may be another one after a reboot",
        ),
        ("d-i time/zone string Etc/UTC", "d-i", "debconf-set-selections --checkonly refuses it"),
    ],
)
def test_preseed_is_refused(old, new, message):
    assert old in PRESEED
    found = [one.message for one in of_preseed(PRESEED.replace(old, new)) if one.status is Status.FAIL]
    assert any(message in one for one in found), found


def test_a_script_that_no_shell_can_parse():
    assert [one.status for one in of_scripts("x", ["if true; then\n"])] == [Status.FAIL]


def test_without_the_validators_it_is_not_known(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert of_kickstart(KS, STORAGE, "RHEL9")[1:] == (
        Finding(
            "ks.cfg",
            Status.UNKNOWN,
            "not validated: ksvalidator is missing; pip install 'rackwright[install]'",
        ),
    )
    assert of_preseed(PRESEED)[1:] == (
        Finding(
            "preseed.cfg",
            Status.UNKNOWN,
            "not validated: debconf-set-selections is missing; apt-get install debconf",
        ),
    )


def test_what_is_refused_is_not_served():
    answers = make(EL)
    broken = Answers({**answers.files, "ks.cfg": KS.replace("rootpw --lock", "rootpwd --lock")}, "")
    with pytest.raises(
        InstallError, match=r"^The answers for worker1 are invalid, so nothing was served: ks\.cfg: "
    ):
        validate.require_valid(EL, broken)


@pytest.mark.skipif(shutil.which("debconf-set-selections") is None, reason="debconf is Debian's")
def test_preseed_files_of_many_nodes_are_judged_at_the_same_time():
    """By default each run locks the host's database, and the others fail without a word."""
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(of_preseed, ["d-i partman/confirm boolean true\n"] * 8))
    assert {one.status for findings in found for one in findings} == {Status.PASS}
