"""Whole files for each installer and layout, and what of them is secret."""

from __future__ import annotations

import os
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.install.installers.answers import make
from rackwright.install.installers.request import ONCE, OsDisk
from rackwright.install.installers.validate import require_valid, validate
from rackwright.model.settings import Mirrors, Ssh
from rackwright.status import Status
from tests.unit.install.installers.made import FOLDER, HOSTILE, RECOVERY, SESSION, make_request

GOLDEN = Path(__file__).with_name("golden")
BOND = ("52:54:00:77:00:12",)
TANG = {"encryption": "tang", "tang": "http://10.9.0.5"}
FOUND = (
    OsDisk(
        "/dev/sda",
        "SN-A",
        ("/dev/sda:gpt:", "/dev/sda1:vfat:EFI", "/dev/sda2:ext4:old root"),
        "pci-0000:00:17.0-ata-1",
    ),
)
SITE = {
    "ssh": Ssh(user="admin", port=2222),
    "mirrors": Mirrors(
        apt="https://mirror.example.com/archive",
        apt_security="http://mirror.example.com/security",
        apt_proxy="http://10.9.0.10:3142",
        dnf="http://mirror.example.com/os",
    ),
    "nameservers": (IPv4Address("10.9.0.2"), IPv4Address("10.9.0.3")),
    "mtu": 9000,
    "kernel_arguments": ("iommu=pt",),
}
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "autoinstall-plain": ("ubuntu-22.04", {"disks": FOUND}),
    "autoinstall-lvm": ("ubuntu-24.04", {"volumes": "lvm", **SITE}),
    "autoinstall-mirror": ("ubuntu-24.04", {"mirror": True, "gateway": None}),
    "autoinstall-mirror-lvm-tpm2": ("ubuntu-24.04", {"mirror": True, "volumes": "lvm", "encryption": "tpm2"}),
    "autoinstall-tang-bond": ("ubuntu-24.04", {**TANG, "bond": BOND, "media": "http://10.9.0.10/ubuntu.iso"}),
    "kickstart-plain": ("rocky-9", {"disks": FOUND}),
    "kickstart-lvm": ("rhel-10", {"volumes": "lvm", **SITE}),
    "kickstart-mirror": ("almalinux-9", {"mirror": True, "gateway": None}),
    "kickstart-mirror-lvm-tpm2": ("rocky-9", {"mirror": True, "volumes": "lvm", "encryption": "tpm2"}),
    "kickstart-tang-bond-vlan": (
        "rocky-10",
        {**TANG, "bond": BOND, "vlan": 12, "media": "http://10.9.0.10/el/"},
    ),
    "preseed-plain": ("debian-12", {"disks": FOUND}),
    "preseed-lvm": ("debian-13", {"volumes": "lvm", **SITE}),
    "preseed-mirror": ("debian-12", {"mirror": True, "gateway": None}),
    "preseed-mirror-lvm": ("debian-12", {"mirror": True, "volumes": "lvm", "bond": BOND}),
    "preseed-lvm-tang": ("debian-13", {"volumes": "lvm", **TANG}),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_files_of_a_layout(name):
    """RACKWRIGHT_GOLDEN=write writes the files anew, to be read in a diff."""
    release, changes = LAYOUTS[name]
    answers = make(make_request(release, **changes))
    text = f"kernel: {answers.kernel_arguments}\n"
    text += "".join(f"=== {file}\n{content}" for file, content in answers.files.items())
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("RACKWRIGHT_GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()


def test_no_golden_file_is_left_over():
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(LAYOUTS)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_files_of_a_layout_are_valid(name):
    release, changes = LAYOUTS[name]
    request = make_request(release, **changes)
    found = validate(request, make(request))
    assert [str(one) for one in found if one.status is Status.FAIL] == []
    assert require_valid(request, make(request)) == tuple(
        one for one in found if one.status is Status.UNKNOWN
    )


@pytest.mark.parametrize("release", ["ubuntu-24.04", "rocky-9", "debian-12"])
def test_secrets_are_in_the_file_that_is_served_once_alone(release):
    request = make_request(release, encryption="tpm2", volumes="lvm")
    answers = make(request)
    assert answers.files[ONCE] == f"{SESSION}\n{RECOVERY}\n"
    others = [text for name, text in answers.files.items() if name != ONCE]
    for secret in (SESSION, RECOVERY):
        assert all(secret not in text for text in (*others, answers.kernel_arguments, repr(request)))


@pytest.mark.parametrize("release", ["ubuntu-24.04", "rocky-9", "debian-12"])
def test_the_installed_system_boots_without_the_random_folder(release):
    answers = make(make_request(release))
    assert answers.kernel_arguments.count(FOLDER) == 1
    # curtin and d-i keep what follows `---`, Anaconda what its own list names
    assert "---" not in answers.kernel_arguments
    assert "rackwright.run=" not in answers.kernel_arguments
    assert sum("rackwright.run=k3x9ab12" in text for text in answers.files.values()) == 1


@pytest.mark.parametrize("release", ["ubuntu-24.04", "rocky-9", "debian-12"])
def test_a_hostile_key_stays_a_key(release):
    request = make_request(release, admin_key=HOSTILE)
    answers = make(request)
    assert [str(one) for one in validate(request, answers) if one.status is Status.FAIL] == []
    if release == "ubuntu-24.04":
        late = yaml.safe_load(answers.files["user-data"])["autoinstall"]["late-commands"][0]
        assert late.count("RACKWRIGHT_FILE\n") % 2 == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"admin_key": "ssh-ed25519 AAAA x"}, "The ssh-ed25519 key data does not match its type"),
        ({"admin_key": f"{HOSTILE}\nroot"}, "The administrator's key contains a line break."),
        ({"disks": (OsDisk("/dev/sda", "a'b"),)}, '"a\'b" is not a valid disk serial number'),
    ],
)
def test_what_no_caller_may_pass(change, message):
    with pytest.raises(ValueError, match=message):
        make_request("debian-12", **change)


def test_the_recovery_key_goes_with_an_encrypted_root():
    with pytest.raises(ValueError, match="a recovery key needs an encrypted root"):
        make_request("debian-12", encryption="tpm2", volumes="lvm").__class__(
            **{**vars(make_request("debian-12")), "recovery": RECOVERY}
        )


def test_a_secret_of_a_wrong_form_is_not_repeated():
    request = make_request("debian-12")
    with pytest.raises(ValueError, match=r"^session is malformed$"):
        request.__class__(**{**vars(request), "session": "two\nlines"})
