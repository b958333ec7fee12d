"""What is looked at before the first machine is touched, for each installer."""

from __future__ import annotations

import pytest

from rackwright.install.handover.requests import SAMPLE, Site, made
from rackwright.install.handover.run import Handovers
from rackwright.install.installers import validate
from rackwright.model.install import BootWay, DiskRule, Install, Installer
from rackwright.model.settings import Mirrors
from rackwright.osfamily.known import os_release
from rackwright.status import Status
from tests.unit.install.handover.test_files import EL, UBUNTU, make
from tests.unit.install.site import make_site, make_worker

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPk5tZOUybMSrPOOTAVmWKNCUykzK2rjVMXdGZJkJNRP admin"
ISO = "http://10.9.0.10/ubuntu-24.04-live-server-amd64.iso"


def site(node, **mirrors):
    cluster = make_site(node).model_copy(update={"mirrors": Mirrors(**mirrors)})
    return Site(cluster, cluster.boot_network, KEY)


def installed(folder, os, installer, **changes):
    settings = {
        "installer": installer,
        "installer_files": folder,
        "disk": DiskRule(serials=("DISK-1",)),
        **changes,
    }
    return make_worker(os=os_release(os), install=Install(**settings))


@pytest.fixture
def ubuntu(tmp_path):
    make(tmp_path / "iso", UBUNTU)
    return installed(tmp_path / "iso", "ubuntu-24.04", Installer.AUTOINSTALL, installer_media=ISO)


@pytest.fixture
def rocky(tmp_path):
    make(tmp_path / "iso", EL)
    return installed(tmp_path / "iso", "rocky-9", Installer.KICKSTART)


@pytest.fixture
def ksvalidator(monkeypatch):
    """Stands for pykickstart, which the fast tests do without."""
    monkeypatch.setattr(validate.shutil, "which", lambda *_, **__: "/bin/true")
    monkeypatch.setattr(validate, "_run", lambda file, argv, name: validate.Finding(file, Status.PASS, name))


def test_ubuntu(ubuntu):
    assert Handovers(site(ubuntu)).problems([ubuntu]) == []
    _, answers = made(
        site(ubuntu), ubuntu, "run1", [{"path": "/dev/sda", "serial": "DISK-1"}], SAMPLE, SAMPLE
    )
    assert f"url={ISO}" in answers.kernel_arguments.split()
    assert f"ds=nocloud-net;s=http://127.0.0.1:8480/{SAMPLE}/" in answers.kernel_arguments.split()


def test_rocky(rocky, ksvalidator):
    assert Handovers(site(rocky, dnf="http://mirror.example.com/rocky")).problems([rocky]) == []


def test_rocky_without_a_mirror_and_without_a_validator(rocky, monkeypatch):
    monkeypatch.setattr(validate.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr("rackwright.install.handover.media.require_programs", lambda: None)
    assert Handovers(site(rocky)).problems([rocky]) == [
        "Installing worker1 needs a mirror of rocky-9 (set `mirrors: {dnf: http://mirror.example.com/os}`)"
    ]
    (unknown,) = Handovers(site(rocky, dnf="http://mirror.example.com/rocky")).problems([rocky])
    assert unknown == (
        "The answers for worker1 could not be validated: ks.cfg: not validated: ksvalidator is missing; "
        "pip install 'rackwright[install]'"
    )


def test_ubuntu_over_the_network_needs_another_grub(ubuntu):
    node = ubuntu.model_copy(update={"install": ubuntu.install.model_copy(update={"boot": BootWay.PXE})})
    (wrong,) = Handovers(site(node)).problems([node])
    assert "lacks: signed grub (grubnetx64.efi.signed or grubnetx64.efi)" in wrong


def test_a_node_with_an_image_is_not_looked_at():
    node = make_worker()
    assert Handovers(site(node)).problems([node]) == []
