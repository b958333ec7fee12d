"""The base role's checks: each seen to pass, to fail and not to know."""

from __future__ import annotations

import hashlib
import json
from ipaddress import IPv4Address

import pytest

from rackwright.facts.package_database import PackageDatabase
from rackwright.facts.settings import Answer
from rackwright.facts.storage_leftovers import StorageFiles
from rackwright.model.host_names import ExtraHost, host_names
from rackwright.model.settings import Mirrors
from rackwright.osfamily.known import os_family, os_release
from rackwright.roles.base import forwarding, texts
from rackwright.roles.base.options import BaseOptions
from rackwright.roles.base.verify import CHECKS
from tests.unit.roles.fake_facts import asked, file, installed, link, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.sites import expected, head, site, worker

OPTIONS = BaseOptions(
    packages=("htop",),
    extra_hosts=(ExtraHost(address=IPv4Address("192.0.2.7"), names=("license.example", "license")),),
)


CLUSTER = site({"base": OPTIONS}, mirrors=Mirrors(apt_proxy="http://p:3142"))
EL = site({"base": OPTIONS}, os=os_release("rocky-9"), mirrors=Mirrors(dnf="http://m/rocky"))
MASKED = ("inactive", "masked", "masked")

ALL_NAMES = (
    "getent hosts head1.test.example head1 gpu1.test.example gpu1 gpu1-storage gpu1-fabric-rail0 "
    "gpu1-fabric-rail1 gpu2.test.example gpu2 gpu2-storage gpu2-fabric-rail0 gpu2-fabric-rail1 "
    "license.example license"
)
RESOLVED = "\n".join(
    f"{entry.address:15} {' '.join(entry.names)}"
    for entry in host_names(CLUSTER, OPTIONS.extra_hosts)
    for _ in entry.names
)
BASE_PACKAGES = (
    "ca-certificates ethtool jq less lsof numactl pciutils psmisc rsync tzdata curl iproute2 iputils-ping "
    "procps python3 htop dmidecode ipmitool nvme-cli smartmontools"
)
EL_PACKAGES = (
    "ca-certificates ethtool jq less lsof numactl pciutils psmisc rsync tzdata iproute iputils procps-ng "
    "python3 htop dmidecode ipmitool nvme-cli smartmontools"
)
APT_CONFIG = (
    'APT::Architecture "amd64";\nAPT::Periodic::Update-Package-Lists "0";\n'
    'APT::Periodic::Unattended-Upgrade "0";\n'
)


ASK_DATABASE = asked(PackageDatabase().command("debian"))
APT_CHECK = "env LC_ALL=C apt-get check -qq -o Debug::NoLocking=1"
WHOLE = "the package database is consistent"
BROKEN = (
    "not installed to the end: tree (half-configured); dependencies that are not installed: jq needs libjq1; "
    "`rackwright apply` repairs it"
)
ASK_ARCHIVES = "apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages'"
ASK_UNREAD = "apt-get update --print-uris"
UNREAD = """\
'http://m/debian/dists/trixie/InRelease' m_debian_dists_trixie_InRelease 0
'http://m/debian/dists/trixie-updates/InRelease' m_debian_dists_trixie-updates_InRelease 0
'http://m/debian/dists/trixie/main/binary-amd64/Packages.xz' m_debian_dists_trixie_main_binary-amd64_Packages 0
'http://m/flat/./InRelease' m_flat_._InRelease 0
"""
"""What apt 3.0 of Debian 13 printed on a virtual machine whose image had no index, 2026-11-23; hosts shortened."""


def dnf_automatic(*missing):
    return installed(os_family("el"), ("dnf-automatic",), missing=missing)


ADDRESSES = json.dumps(
    [
        {"ifname": "lo", "addr_info": [{"family": "inet", "local": "127.0.0.1"}]},
        {"ifname": "eth0", "addr_info": [{"family": "inet", "local": "10.9.0.11"}]},
        {"ifname": "eth1", "addr_info": [{"family": "inet", "local": "10.10.0.11"}]},
        {"ifname": "ib0", "addr_info": [{"family": "inet", "local": "10.11.0.11"}]},
        {"ifname": "ib1", "addr_info": [{"family": "inet", "local": "10.11.128.11"}]},
    ]
)
PORTS = "the declared addresses are present, external ones on separate ports"
ROUTE = "the default route uses the declared network"
FORWARDING = "packets are forwarded only where that is declared"
ASK_FORWARDING = asked(Answer().command(forwarding.READ[False]))
AT_BOOT = "systemd-analyze cat-config sysctl.d"
ASK_STORAGE = asked(StorageFiles().command())

HEALTHY = {
    "ip -j addr show": ADDRESSES.replace("10.11.128.11", "10.11.1.11"),
    "ip -j route show default": '[{"dst":"default","gateway":"10.9.0.1","dev":"eth0","flags":[]}]',
    **file(forwarding.PATH, expected("base/forwarding-off")),
    ASK_FORWARDING: "off\n",
    AT_BOOT: "net.ipv4.ip_forward = 0\n",
    "uname -n": "gpu1\n",
    **file("/etc/hostname", "gpu1\n"),
    "getent hosts gpu1": "10.9.0.11       gpu1.test.example gpu1\n",
    ALL_NAMES: RESOLVED,
    **file(texts.APT_PROXY, expected("base/apt-proxy")),
    **file(texts.PIP, None),
    **file(texts.SOURCES, None),
    **file("/etc/yum.repos.d/rocky.repo", expected("base/rocky.repo")),
    **file("/etc/yum.repos.d/rocky-extras.repo", expected("base/rocky-extras.repo")),
    **installed(os_family("debian"), BASE_PACKAGES.split()),
    **installed(os_family("el"), EL_PACKAGES.split()),
    ASK_DATABASE: "read\n",
    APT_CHECK: "",
    "apt-config dump": APT_CONFIG,
    ASK_ARCHIVES: "http://m/debian/\nhttp://m/debian/\nhttp://m/security/\n",
    **unit("apt-daily.timer", *MASKED),
    **unit("apt-daily-upgrade.timer", *MASKED),
    **unit("dnf-makecache.timer", *MASKED),
    **dnf_automatic("dnf-automatic"),
    **file("/etc/locale.conf", "LANG=C.UTF-8\n"),
    "env LC_ALL=C.UTF-8 locale charmap": "UTF-8\n",
    **link("/etc/localtime", "/usr/share/zoneinfo/UTC"),
    "test -s /usr/share/zoneinfo/UTC": "",
    "date +%Z": "UTC\n",
    ASK_STORAGE: "end\n",
}

SAME = "/etc/hosts is the same on every node"

FAILURES = [
    (
        PORTS,
        {"ip -j addr show": ADDRESSES},
        "no interface has 10.11.1.11, the node's declared address on fabric",
    ),
    (
        ROUTE,
        {"ip -j route show default": '[{"dst":"default","gateway":"10.10.0.1","dev":"eth1","flags":[]}]'},
        "a default route uses 10.10.0.1 (eth1), on the storage network storage",
    ),
    (
        FORWARDING,
        {ASK_FORWARDING: " ipv4/conf/all/forwarding ipv4/conf/eth1/forwarding\n"},
        "the node forwards packets, but base.forwarding is false: ipv4/conf/all/forwarding, ipv4/conf/eth1/forwarding",
    ),
    (
        FORWARDING,
        {AT_BOOT: "net.ipv4.ip_forward = 0\nnet.ipv4.ip_forward = 1\n"},
        "after a reboot net.ipv4.ip_forward would be 1, not 0",
    ),
    (FORWARDING, file(forwarding.PATH, None), f"{forwarding.PATH} is missing"),
    (
        "apt installs from the declared archives",
        {ASK_ARCHIVES: "", ASK_UNREAD: "Hit nothing\n"},
        "apt knows no archive to install from",
    ),
    (
        "the hostname is the declared short name",
        {"uname -n": "gpu1.test.example\n"},
        "the hostname is gpu1.test.example, not gpu1",
    ),
    (
        "the hostname is the declared short name",
        file("/etc/hostname", "localhost\n"),
        "/etc/hostname is not as declared: localhost",
    ),
    ("the hostname is the declared short name", file("/etc/hostname", None), "/etc/hostname is missing"),
    (
        "the node's own name resolves to its management address",
        {"getent hosts gpu1": "127.0.1.1       gpu1.test.example gpu1\n"},
        "gpu1 resolves to 127.0.1.1 on itself, not to 10.9.0.11",
    ),
    (
        "the node's own name resolves to its management address",
        {"getent hosts gpu1": (2, "", "")},
        "gpu1 does not resolve on itself",
    ),
    (
        "every declared name resolves to its declared address",
        {ALL_NAMES: (2, RESOLVED.replace("10.10.0.12", "10.10.0.99"), "")},
        "1 of 14 names do not resolve as declared; gpu2-storage is 10.10.0.99, not 10.10.0.12",
    ),
    (
        "package sources are as declared",
        file(texts.APT_PROXY, None),
        "/etc/apt/apt.conf.d/90rackwright-proxy is missing",
    ),
    (
        "package sources are as declared",
        file(texts.SOURCES, "Types: deb\n"),
        "/etc/apt/sources.list.d/rackwright.sources exists but is not declared",
    ),
    (
        WHOLE,
        {ASK_DATABASE: "broken tree iF\nread\nunmet jq libjq1\nInst libjq1 1.7\n"},
        BROKEN,
    ),
    (
        WHOLE,
        {
            APT_CHECK: (
                100,
                "The following packages have unmet dependencies:\n a : Depends: b (= 2) but 1 is there\n",
                "",
            )
        },
        "apt finds unmet dependencies: a : Depends: b (= 2) but 1 is there",
    ),
    (
        "the base packages are installed",
        installed(os_family("debian"), BASE_PACKAGES.split(), missing=("ca-certificates", "smartmontools")),
        "not installed: ca-certificates, smartmontools",
    ),
    (
        "no package upgrades by itself",
        {"apt-config dump": APT_CONFIG.replace('Upgrade "0"', 'Upgrade "1"')},
        "APT::Periodic::Unattended-Upgrade is 1, not 0",
    ),
    (
        "no package upgrades by itself",
        unit("apt-daily.timer"),
        "apt-daily.timer is enabled, not masked",
    ),
    (
        "the system locale is set and works",
        file("/etc/locale.conf", "LANG=de_CH.UTF-8\n"),
        "/etc/locale.conf is not as declared: LANG=de_CH.UTF-8",
    ),
    (
        "the system locale is set and works",
        {"env LC_ALL=C.UTF-8 locale charmap": "ANSI_X3.4-1968\n"},
        "C.UTF-8 does not work: its character map is ANSI_X3.4-1968, not UTF-8",
    ),
    (
        "the timezone is set",
        link("/etc/localtime", "/usr/share/zoneinfo/Etc/UTC"),
        "/etc/localtime is a link to /usr/share/zoneinfo/Etc/UTC, not to /usr/share/zoneinfo/UTC",
    ),
    (
        "the timezone is set",
        file("/etc/localtime", "TZif2"),
        "/etc/localtime is not a link but a file",
    ),
    (
        "the timezone is set",
        {"test -s /usr/share/zoneinfo/UTC": (1, "", "")},
        "the node has no timezone UTC",
    ),
    (
        "every mount and export made by rackwright is declared",
        {ASK_STORAGE: "/etc/systemd/system/data.mount:X-Rackwright-Purpose=data\nend\n"},
        "/etc/systemd/system/data.mount: written by rackwright, but no longer declared",
    ),
]
EL_FAILURES = [
    (
        "no package upgrades by itself (dnf)",
        dnf_automatic(),
        "dnf-automatic 1 is installed",
    ),
    (
        "no package upgrades by itself (dnf)",
        unit("dnf-makecache.timer"),
        "dnf-makecache.timer is enabled, not masked",
    ),
    (
        "the base packages are installed",
        installed(os_family("el"), EL_PACKAGES.split(), missing=("ca-certificates",)),
        "not installed: ca-certificates",
    ),
]


@pytest.mark.parametrize(
    ("cluster", "name"),
    [
        (cluster, name)
        for cluster in (CLUSTER, EL)
        for name in claimed("base", CHECKS, worker(cluster))
        if name != SAME
    ],
)
def test_a_healthy_node_passes(cluster, name):
    result = judged("base", CHECKS, name, cluster, worker(cluster), FakeHost(HEALTHY))
    assert (result.status, bool(result.evidence)) == ("PASS", True), result.evidence


@pytest.mark.parametrize(
    ("cluster", "name", "wrong", "evidence"),
    [(CLUSTER, *case) for case in FAILURES] + [(EL, *case) for case in EL_FAILURES],
)
def test_a_false_claim_fails(cluster, name, wrong, evidence):
    result = judged("base", CHECKS, name, cluster, worker(cluster), FakeHost({**HEALTHY, **wrong}))
    assert result.status == "FAIL"
    assert result.evidence == evidence


def test_every_check_was_seen_to_fail():
    assert {case[0] for case in (*FAILURES, *EL_FAILURES)} | {SAME} == {check.name for check in CHECKS}


@pytest.mark.parametrize(
    ("cluster", "name"),
    [(cluster, name) for cluster in (CLUSTER, EL) for name in claimed("base", CHECKS, worker(cluster))],
)
def test_a_node_without_tools_is_unknown(cluster, name):
    assert judged("base", CHECKS, name, cluster, head(cluster), FakeHost({})).status == "UNKNOWN"


@pytest.mark.parametrize("answer", ["", "rubbish\n", (1, "", "input/output error\n"), (124, "", "")])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_unreadable_answers_never_pass(name, answer):
    result = judged("base", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({}, always=answer))
    assert result.status in ("FAIL", "UNKNOWN")


HOSTS = texts.hosts(CLUSTER, OPTIONS)
ODD = FakeHost(file("/etc/hosts", "127.0.0.1 localhost\n"))


def _hosts(**others):
    node = FakeHost(file("/etc/hosts", HOSTS))
    return {"head1": node, "gpu1": node, "gpu2": node, **others}


def test_hosts_is_the_same_everywhere():
    result = judged("base", CHECKS, SAME, CLUSTER, head(CLUSTER), _hosts())
    assert (result.status, result.evidence) == (
        "PASS",
        f"3 nodes, sha256 {hashlib.sha256(HOSTS.encode()).hexdigest()[:12]}",
    )


def test_hosts_differs_on_one_node():
    result = judged("base", CHECKS, SAME, CLUSTER, head(CLUSTER), _hosts(gpu2=ODD))
    assert (result.status, result.evidence) == (
        "FAIL",
        "/etc/hosts of gpu2 differs from that of 2 other nodes",
    )


def test_hosts_is_the_same_and_wrong():
    result = judged("base", CHECKS, SAME, CLUSTER, head(CLUSTER), ODD)
    assert (result.status, result.evidence) == (
        "FAIL",
        "/etc/hosts is the same everywhere, but not as declared",
    )


def test_hosts_of_an_unreachable_node_is_unknown():
    result = judged("base", CHECKS, SAME, CLUSTER, head(CLUSTER), _hosts(gpu2=FakeHost({})))
    assert result.status == "UNKNOWN"


@pytest.mark.parametrize(
    ("archives", "status", "evidence"),
    [
        ("http://m/debian/", "PASS", "http://m/debian/"),
        ("http://old/debian/", "FAIL", "apt does not install from http://m/debian/"),
        (
            "http://m/debian/\nhttp://cuda/x/",
            "WARN",
            "apt installs from http://cuda/x/ too, which is not one of the site's mirrors",
        ),
    ],
)
def test_declared_mirrors_are_the_archives(archives, status, evidence):
    cluster = site({"base": OPTIONS}, mirrors=Mirrors(apt="http://m/debian"))
    host = FakeHost({ASK_ARCHIVES: archives})
    result = judged("base", CHECKS, "apt installs from the declared archives", cluster, worker(cluster), host)
    assert (result.status, result.evidence) == (status, evidence)


def test_archives_are_known_before_apt_has_read_their_indexes():
    cluster = site({"base": OPTIONS}, mirrors=Mirrors(apt="http://m/debian"))
    host = FakeHost({ASK_ARCHIVES: "\n", ASK_UNREAD: UNREAD})
    result = judged("base", CHECKS, "apt installs from the declared archives", cluster, worker(cluster), host)
    assert result.status == "WARN"
    assert result.evidence == (
        "apt installs from http://m/flat/./ too, which is not one of the site's mirrors"
    )


def test_names_of_a_large_cluster_are_asked_in_several_commands(monkeypatch):
    monkeypatch.setattr("rackwright.roles.base.verify._NAMES_AT_ONCE", 10)
    host = FakeHost({}, always=RESOLVED)
    name = "every declared name resolves to its declared address"
    assert judged("base", CHECKS, name, CLUSTER, worker(CLUSTER), host).status == "PASS"
    assert [len(line.split()) - 2 for line in host.asked] == [10, 4]
