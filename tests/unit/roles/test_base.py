"""The base role: options, the files it writes, and what it does on each family."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from rackwright.model.host_names import ExtraHost
from rackwright.model.settings import Mirrors
from rackwright.model.sku import Nvme
from rackwright.model.types import Platform
from rackwright.osfamily.known import os_release
from rackwright.render import render
from rackwright.roles.base import texts
from rackwright.roles.base.options import BaseOptions
from rackwright.roles.base.verify import parse_apt_config, parse_getent_hosts
from tests.unit.roles.fake_host import commands, errors_in, planned
from tests.unit.roles.sites import GPU_SKU, expected, site, worker

ROCKY_REPOSITORIES = "/etc/yum.repos.d/rocky.repo"
ROCKY_EXTRAS = "/etc/yum.repos.d/rocky-extras.repo"
ALMA = "/etc/yum.repos.d/almalinux-{}.repo"
STREAM_REPOSITORIES = "/etc/yum.repos.d/centos.repo"
STREAM_ADDONS = "/etc/yum.repos.d/centos-addons.repo"
RHEL_REPOSITORIES = "/etc/yum.repos.d/rackwright.repo"
OPTIONS = BaseOptions(
    packages=("htop",),
    extra_hosts=(ExtraHost(address=IPv4Address("192.0.2.7"), names=("license.example", "license")),),
)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"locale": "en_US.ISO-8859-1"},
            "'en_US.ISO-8859-1' is not a UTF-8 locale such as 'C.UTF-8' or 'en_US.UTF-8'.",
        ),
        (
            {"timezone": "../etc/shadow"},
            "'../etc/shadow' is not a zone name such as 'UTC' or 'Europe/Zurich'.",
        ),
        ({"packages": ["jq; reboot"]}, "'jq; reboot' is not a package name."),
        (
            {"extra_hosts": [{"address": "192.0.2.7", "names": ["a_b"]}]},
            "'a_b' is not a valid host name: use labels of letters, digits and hyphens, joined by dots.",
        ),
        ({"hostname": "x"}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(BaseOptions, given) == [sentence]


def test_hosts_is_the_same_text_for_every_node():
    cluster = site({"base": OPTIONS})
    assert texts.hosts(cluster, OPTIONS) == expected("base/hosts")


@pytest.mark.parametrize(
    ("os", "mirrors", "path", "file"),
    [
        (os_release("debian-12"), Mirrors(apt="http://m/debian"), texts.SOURCES, "apt-debian12"),
        (
            os_release("debian-13"),
            Mirrors(apt="http://m/debian/", apt_security="http://m/security"),
            texts.SOURCES,
            "apt-debian13",
        ),
        (os_release("ubuntu-22.04"), Mirrors(apt="http://m/ubuntu"), texts.SOURCES, "apt-ubuntu2204"),
        (
            os_release("ubuntu-24.04"),
            Mirrors(apt="http://m/ubuntu", apt_security="http://m/s"),
            texts.SOURCES,
            "apt-ubuntu2404",
        ),
        (os_release("ubuntu-26.04"), Mirrors(apt="http://m/ubuntu"), texts.SOURCES, "apt-ubuntu2604"),
        (os_release("debian-13"), Mirrors(apt_proxy="http://p:3142"), texts.APT_PROXY, "apt-proxy"),
        (os_release("rocky-9"), Mirrors(dnf="http://m/rocky/"), ROCKY_REPOSITORIES, "rocky.repo"),
        (os_release("rocky-9"), Mirrors(dnf="http://m/rocky/"), ROCKY_EXTRAS, "rocky-extras.repo"),
        (os_release("rhel-9"), Mirrors(dnf="http://m/rhel"), RHEL_REPOSITORIES, "rhel.repo"),
        (os_release("rocky-10"), Mirrors(dnf="http://m/rocky/"), ROCKY_REPOSITORIES, "rocky10.repo"),
        (os_release("rhel-10"), Mirrors(dnf="http://m/rhel"), RHEL_REPOSITORIES, "rhel10.repo"),
        (os_release("almalinux-9"), Mirrors(dnf="http://m/alma"), ALMA.format("baseos"), "alma-baseos.repo"),
        (os_release("almalinux-9"), Mirrors(dnf="http://m/alma"), ALMA.format("extras"), "alma-extras.repo"),
        (os_release("centos-stream-9"), Mirrors(dnf="http://m/s/"), STREAM_REPOSITORIES, "centos.repo"),
        (os_release("centos-stream-9"), Mirrors(dnf="http://m/s/"), STREAM_ADDONS, "centos-addons.repo"),
        (os_release("rocky-9"), Mirrors(pypi="http://m/simple"), texts.PIP, "pip.conf"),
    ],
)
def test_package_sources(os, mirrors, path, file):
    cluster = site({"base": OPTIONS}, os=os, mirrors=mirrors)
    assert texts.package_files(cluster, worker(cluster))[path] == expected(f"base/{file}")


@pytest.mark.parametrize(
    ("os", "absent"),
    [
        (os_release("debian-13"), {texts.PIP, texts.APT_PROXY, texts.SOURCES}),
        (os_release("rocky-9"), {texts.PIP}),
        (os_release("almalinux-9"), {texts.PIP}),
        (os_release("centos-stream-9"), {texts.PIP}),
        (os_release("rhel-9"), {texts.PIP, RHEL_REPOSITORIES}),
    ],
)
def test_without_mirrors_only_our_own_files_go(os, absent):
    cluster = site({"base": OPTIONS}, os=os)
    assert texts.package_files(cluster, worker(cluster)) == dict.fromkeys(absent)


@pytest.mark.parametrize(
    ("template", "variables", "file"),
    [
        ("locale.conf", {"locale": "en_US.UTF-8"}, "locale.conf"),
        ("locale.gen", {"locale": "en_US.UTF-8"}, "locale.gen"),
        ("cloud-init.cfg", {}, "cloud-init.cfg"),
        ("20auto-upgrades", {}, "20auto-upgrades"),
        ("needrestart.conf", {}, "needrestart.conf"),
        ("sources.list", {}, "sources.list"),
    ],
)
def test_whole_files(template, variables, file):
    assert render(f"base/{template}.j2", **variables) == expected(f"base/{file}")


def test_what_ubuntu_gets():
    cluster = site(
        {"base": BaseOptions(locale="en_US.UTF-8", packages=("htop",))},
        os=os_release("ubuntu-24.04"),
        mirrors=Mirrors(apt="http://m/ubuntu"),
    )
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    assert [operation.name for operation in plan.operations] == [
        "Write /etc/hosts",
        "Create the folder for cloud-init settings",
        "Keep cloud-init from renaming the node",
        "Write /etc/hostname",
        "Set the hostname",
        "Set apt's sources",
        "Empty the installer's sources.list",
        "Disable apt's periodic upgrades",
        "Mask apt's download timer",
        "Mask apt's upgrade timer",
        "Create the folder for needrestart settings",
        "Keep needrestart from prompting and restarting services",
        "Install the base packages",
        "Install the hardware tools",
        "Install the locale tools",
        "Write /etc/locale.gen",
        "Generate the locale",
        "Write /etc/locale.conf",
        "Link Debian's locale file",
        "Set the timezone",
        "Write /etc/timezone",
        "Set packet forwarding at boot",
        "Disable packet forwarding",
    ]
    assert commands(plan, "Set the hostname") == ("hostnamectl set-hostname gpu1",)
    assert commands(plan, "Generate the locale") == ("localedef -i en_US -f UTF-8 en_US.UTF-8",)
    (install,) = commands(plan, "Install the base packages")
    assert (
        " install ca-certificates ethtool jq less lsof numactl pciutils psmisc rsync tzdata curl iproute2 "
        "iputils-ping procps python3 htop\n"
    ) in install
    (mask,) = commands(plan, "Mask apt's upgrade timer")
    assert mask.startswith("systemctl mask --now apt-daily-upgrade.timer ")


def test_what_el9_gets():
    cluster = site({"base": OPTIONS}, os=os_release("rocky-9"), mirrors=Mirrors(dnf="http://m/rocky"))
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    assert [operation.name for operation in plan.operations][5:] == [
        "Set Rocky's repositories",
        "Set Rocky's extras",
        "Mask dnf's metadata timer",
        "Install the base packages",
        "Install the hardware tools",
        "Write /etc/locale.conf",
        "Set the timezone",
        "Set packet forwarding at boot",
        "Disable packet forwarding",
    ]
    (install,) = commands(plan, "Install the base packages")
    assert "dnf -q -y --setopt=install_weak_deps=False install ca-certificates ethtool jq" in install
    assert " iproute iputils procps-ng python3 htop" in install
    (mask,) = commands(plan, "Mask dnf's metadata timer")
    assert mask.startswith("systemctl mask --now dnf-makecache.timer ")


def test_a_container_gets_no_hardware_tools():
    cluster = site({"base": OPTIONS}, platform=Platform.CONTAINER)
    names = [operation.name for operation in planned(cluster, worker(cluster)).operations]
    assert "Install the hardware tools" not in names


def test_a_virtual_machine_gets_the_tool_of_its_drives_and_no_other():
    drives = GPU_SKU.model_copy(update={"nvme": (Nvme(count=2, size_gb=4),)})
    cluster = site({"base": OPTIONS}, platform=Platform.VM, sku=drives)
    (install,) = commands(planned(cluster, worker(cluster)), "Install the hardware tools")
    assert " install nvme-cli\n" in install
    bare = site({"base": OPTIONS}, platform=Platform.VM, sku=GPU_SKU.model_copy(update={"nvme": ()}))
    names = [operation.name for operation in planned(bare, worker(bare)).operations]
    assert "Install the hardware tools" not in names


def test_a_node_with_bluefields_gets_the_tool_that_reads_their_mode():
    ports = tuple(nic.model_copy(update={"model": "BlueField-3", "mode": "nic"}) for nic in GPU_SKU.nics)
    cluster = site({"base": OPTIONS}, sku=GPU_SKU.model_copy(update={"nics": ports}))
    plan = planned(cluster, worker(cluster))
    (install,) = commands(plan, "Install the hardware tools")
    assert " smartmontools mstflint\n" in install
    (without,) = commands(
        planned(site({"base": OPTIONS}), worker(site({"base": OPTIONS}))), "Install the hardware tools"
    )
    assert "mstflint" not in without


def test_readings():
    assert parse_getent_hosts("10.9.0.11      gpu1.test.example gpu1\n10.10.0.11 gpu1-storage\n") == {
        "gpu1.test.example": "10.9.0.11",
        "gpu1": "10.9.0.11",
        "gpu1-storage": "10.10.0.11",
    }
    assert parse_apt_config('APT "";\nAPT::Periodic::Unattended-Upgrade "0";\nrubbish\n') == {
        "apt": "",
        "apt::periodic::unattended-upgrade": "0",
    }
