"""The firewall role: options, whole files, what each family gets, sockets, and its checks."""

from __future__ import annotations

import os
import shutil
import subprocess
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ClusterFileError
from rackwright.model.cluster import Cluster
from rackwright.model.listening import Declared, declared_listeners
from rackwright.model.services import Listener
from rackwright.model.types import NetworkPurpose
from rackwright.osfamily.known import os_family, os_release
from rackwright.roles.firewall import rules
from rackwright.roles.firewall.options import DROP_IN, UNIT, UNIT_FILE, FirewallOptions
from rackwright.roles.firewall.sockets import (
    UnreadableSocketsError,
    judge,
    parse_sockets,
)
from rackwright.roles.firewall.verify import _ASK_UFW, CHECKS
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.time.options import TimeOptions
from tests.factories import make_address, make_cluster, make_network
from tests.unit.roles.fake_facts import asked, files, installed, unit
from tests.unit.roles.fake_host import FakeHost, claimed, errors_in, judged, planned
from tests.unit.roles.sites import NETWORKS, expected, head, site, worker

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = FirewallOptions(
    zones={"storage": "services"},
    ssh_from=(IPv4Network("192.0.2.0/28"),),
    allow=(
        {"ports": "9100", "source": "management", "comment": "node exporter"},
        {"ports": "60000-60100", "protocol": "udp", "source": "198.51.100.7/32", "comment": "mosh, bastion"},
    ),
)
NO_PROCESS = (
    "No login to the nodes would be possible: their management network is closed and `ssh_from` is empty."
)


def with_external(options: FirewallOptions = OPTIONS) -> Cluster:
    """A head with a port on a network that strangers share."""
    networks = {
        **NETWORKS,
        "campus": make_network("external", "203.0.113.0/24").model_copy(update={"name": "campus"}),
    }
    shared = {
        "firewall": options,
        "time": TimeOptions(allow=(IPv4Network("172.16.0.0/16"),)),
        "slurm": SlurmOptions(),
    }
    cluster = site(shared, networks=networks)
    node = cluster.by_name["head1"]
    outside = node.model_copy(update={"addresses": (*node.addresses, make_address("campus", "203.0.113.9"))})
    return make_cluster(outside, *cluster.nodes[1:], networks=networks)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"zones": {"management": "open"}}, "Input should be 'trusted', 'services' or 'closed'"),
        ({"ssh_from": ["10.0.0.1"]}, "The prefix length is missing."),
        ({"allow": [{"ports": 0, "source": "x", "comment": "y"}]}, "Not a port or a range of ports."),
        ({"allow": [{"ports": "90-80", "source": "x", "comment": "y"}]}, "Not a port or a range of ports."),
        ({"allow": [{"ports": "70000", "source": "x", "comment": "y"}]}, "Not a port or a range of ports."),
        ({"allow": [{"ports": True, "source": "x", "comment": "y"}]}, "Not a port or a range of ports."),
        (
            {"allow": [{"ports": 80, "source": "x", "comment": 'a" accept #'}]},
            "String should match pattern '^[A-Za-z0-9 .,:/()_+-]{1,100}$'",
        ),
        ({"confirm_seconds": 5}, "Input should be greater than or equal to 20"),
        ({"flush": True}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(FirewallOptions, given) == [sentence]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            FirewallOptions(zones={"manegement": "trusted"}),
            ("zones.manegement", "There is no network manegement.", "did you mean `management`?"),
        ),
        (
            FirewallOptions(allow=({"ports": 80, "source": "fabrik", "comment": "x"},)),
            (
                "allow[0].source",
                "fabrik is neither a network of this file nor a range of addresses.",
                "did you mean `fabric`?",
            ),
        ),
        (
            FirewallOptions(zones={"management": "closed"}),
            (
                "zones.management",
                NO_PROCESS,
                "leave it trusted, or add the control node's address to `ssh_from`",
            ),
        ),
    ],
)
def test_problems(options, problem):
    assert list(options.problems(site({"firewall": options}))) == [problem]


def test_what_a_site_may_declare_without_a_problem():
    assert list(OPTIONS.problems(site({"firewall": OPTIONS}))) == []
    closed = FirewallOptions(zones={"management": "closed"}, ssh_from=(IPv4Network("192.0.2.0/24"),))
    assert list(closed.problems(site({"firewall": closed}))) == []


def test_the_old_key_says_where_it_is_now(tmp_path):
    text = (ROOT / "inventory/lab.yaml").read_text()
    path = tmp_path / "lab.yaml"
    path.write_text(text.replace("  base: {}", "  base: {firewall: leave}"))
    with pytest.raises(ClusterFileError) as raised:
        load_cluster(path)
    assert "`firewall` has moved to `roles.firewall`." in str(raised.value)


@pytest.mark.parametrize(
    ("cluster", "node", "file"),
    [
        (site({"firewall": FirewallOptions(log_refused=False)}), "gpu1", "worker.nft"),
        (with_external(), "head1", "head.nft"),
    ],
)
def test_whole_rules(cluster, node, file):
    text = rules.rules(cluster, cluster.by_name[node], cluster.by_name[node].options["firewall"])
    assert text == expected(f"firewall/{file}")


def test_nothing_flushes_the_rules_of_others():
    """`flush ruleset` deletes what Docker and kube-proxy wrote; only comments and documents may name it."""
    places = [
        *(ROOT / "roles").rglob("*.py"),
        *(ROOT / "rackwright").rglob("*.py"),
        *(ROOT / "templates").rglob("*.j2"),
    ]
    named = [path for path in places if "flush" in path.read_text() and "ruleset" in path.read_text()]
    assert named == []


def test_the_rules_are_there_before_the_network_and_after_the_unit_that_flushes():
    cluster = site({"firewall": FirewallOptions()})
    files = rules.files(cluster, worker(cluster), FirewallOptions())
    unit_lines, drop_in = files[UNIT_FILE].splitlines(), files[DROP_IN].splitlines()
    assert "After=systemd-modules-load.service local-fs.target nftables.service" in unit_lines
    assert {"Before=network-pre.target", f"ExecStart=/usr/sbin/nft -f {rules.RULES}"} <= set(unit_lines)
    load = f"=-/usr/sbin/nft -f {rules.RULES}"
    assert [f"ExecStartPost{load}", f"ExecReload{load}", f"ExecStopPost{load}"] == drop_in[-3:]
    assert set(FirewallOptions().unit_files(worker(cluster))) == set(files) - {rules.RULES}


@pytest.mark.skipif(  # never in CI: there it fails
    (shutil.which("nft") is None or shutil.which("unshare") is None) and "CI" not in os.environ,
    reason="UNKNOWN: nft or unshare is missing",
)
@pytest.mark.parametrize("file", ["worker.nft", "head.nft"])
def test_nft_takes_them_twice(file):
    """In a separate network namespace; the second time it replaces its own table."""
    ran = subprocess.run(
        ["unshare", "--net", "--map-root-user", "sh", "-ec", f"{_TWICE}", "sh", str(_file(file))],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    if "unshare" in ran.stderr:
        pytest.skip("this host does not allow network namespaces")
    assert ran.returncode == 0, ran.stderr
    before, after, foreign = ran.stdout.split("===\n")
    assert before == after
    assert "hook input" in before
    assert "table ip docker_like" in foreign


_TWICE = """\
nft add table ip docker_like
nft add chain ip docker_like keep
nft -f "$1"; nft -s list table inet rackwright; echo ===
nft -f "$1"; nft -s list table inet rackwright; echo ===
nft list ruleset"""


def _file(name: str) -> Path:
    return Path(__file__).parent / "expected/firewall" / name


@pytest.mark.parametrize(
    ("os", "steps"),
    [
        ("debian-13", ["Install nftables", "Load the firewall rules", "Load the firewall rules at boot"]),
        (
            "rocky-9",
            [
                "Install nftables",
                "Load the firewall rules",
                "Load the firewall rules at boot",
                "Mask firewalld",
            ],
        ),
    ],
)
def test_what_each_family_gets(os, steps):
    cluster = site({"firewall": FirewallOptions()}, os=os_release(os))
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    assert [operation.name for operation in plan.operations] == steps
    changes = [change for operation in plan.operations for change in operation.changes]
    assert not any(change.disruptive for change in changes)
    assert {rules.RULES, UNIT_FILE, DROP_IN} <= {change.target for change in changes}


# every listener of every role, so that a port has one home


def test_every_port_that_roles_open_is_declared_by_them():
    """The examples have every role between them."""
    found: set[tuple[str, str, tuple[int, int], str]] = set()
    for name in ("lab", "example-dgx-h100", "example-gb200-nvl72", "example-l40s-roce"):
        cluster = load_cluster(ROOT / f"inventory/{name}.yaml")
        for node in cluster.nodes:
            found |= {
                (one.owner, one.listener.program, one.listener.ports, one.listener.protocol)
                for one in declared_listeners(cluster, node)
            }
    assert {
        ("ssh", "sshd", (22, 22), "tcp"),
        ("time", "chronyd", (123, 123), "udp"),
        ("mariadb", "mariadbd", (3306, 3306), "tcp"),
        ("slurm", "slurmctld", (6817, 6817), "tcp"),
        ("slurm", "slurmd", (6818, 6818), "tcp"),
        ("slurm", "slurmdbd", (6819, 6819), "tcp"),
        ("slurm", "slurmstepd", (32768, 60999), "tcp"),
        ("dcgm", "nv-hostengine", (5555, 5555), "tcp"),
        ("imex", "nvidia-imex", (50000, 50000), "tcp"),
    } <= found


def test_slurm_declares_what_a_site_set():
    options = SlurmOptions(slurmd_port=7000, srun_port_range="60001-63000")
    cluster = site({"slurm": options})
    assert [(one.program, one.ports) for one in options.listeners(worker(cluster))] == [
        ("slurmd", (7000, 7000)),
        ("slurmstepd", (32768, 60999)),
        ("srun", (60001, 63000)),
    ]


def test_users_reach_sshd_of_heads_and_logins_from_outside():
    cluster = site({})
    outside = NetworkPurpose.EXTERNAL
    assert all(outside in one.listener.purposes for one in declared_listeners(cluster, head(cluster)))
    assert not any(outside in one.listener.purposes for one in declared_listeners(cluster, worker(cluster)))


# `ss -Hltunpe` of Debian 13 (iproute2 6.15) and Debian 12 (6.1), 2026-11-24; the others are built after ss(8).
SS = """\
udp   UNCONN 0      0            0.0.0.0:123       0.0.0.0:*    users:(("chronyd",pid=300,fd=6)) ino:100 sk:5 cgroup:/system.slice/chrony.service <->
udp   UNCONN 0      0          127.0.0.1:323       0.0.0.0:*    users:(("chronyd",pid=300,fd=5)) ino:101 sk:6 cgroup:/system.slice/chrony.service <->
udp   UNCONN 0      0       10.9.0.10%eth0:68      0.0.0.0:*    users:(("systemd-network",pid=90,fd=22)) uid:998 ino:102 sk:7 cgroup:/system.slice/systemd-networkd.service <->
tcp LISTEN 0      128    0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=57,fd=6)) ino:27946 sk:1 cgroup:/system.slice/ssh.service <->
tcp LISTEN 0      128       [::]:22    [::]:* users:(("sshd",pid=57,fd=7),("systemd",pid=1,fd=80)) ino:27948 sk:2 cgroup:/system.slice/ssh.service v6only:1 <->
tcp   LISTEN 0      4096               *:6817            *:*    users:(("slurmctld",pid=400,fd=9)) uid:64030 ino:104 sk:9 cgroup:/system.slice/slurmctld.service v6only:0 <->
tcp   LISTEN 0      4096   127.0.0.53%lo:53        0.0.0.0:*    users:(("systemd-resolve",pid=95,fd=17)) uid:991 ino:105 sk:a cgroup:/system.slice/systemd-resolved.service <->
tcp   LISTEN 0      4096           [::1]:631          [::]:*    users:(("cupsd",pid=96,fd=3)) ino:106 sk:b cgroup:/system.slice/cups.service v6only:1 <->
tcp   LISTEN 0      5            0.0.0.0:8888      0.0.0.0:*    users:(("jupyter-lab",pid=900,fd=3)) uid:3000 ino:107 sk:c cgroup:/user.slice/user-3000.slice/session-4.scope <->
tcp   LISTEN 0      128          0.0.0.0:41000     0.0.0.0:*    users:(("all_reduce_perf",pid=901,fd=3)) ino:108 sk:d cgroup:/system.slice/slurmstepd.scope/job_7/step_0/user/task_0 <->
"""


def verdict(printed: str, *more: Listener, node: str = "head1"):
    cluster = site({"time": TimeOptions(), "slurm": SlurmOptions()})
    declared = (*declared_listeners(cluster, cluster.by_name[node]), *(Declared("site", one) for one in more))
    return judge(parse_sockets(printed), declared, cluster, cluster.by_name[node])


def line(
    program: str, where: str, *, protocol: str = "tcp", details: str = "ino:9 sk:1 cgroup:/x <->"
) -> str:
    users = f'users:(("{program}",pid=7,fd=3))' if program else ""
    return f"{protocol}   LISTEN 0      5            {where}      0.0.0.0:*    {users} {details}\n"


def test_a_healthy_head_listens_on_what_is_declared():
    found = verdict(SS)
    assert found.wrong == ()
    assert (found.declared, found.local, found.of_users) == (5, 3, 2)


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        (line("nc", "0.0.0.0:4444"), "nothing declares nc on every address, tcp port 4444"),
        (line("nc", "*:4444"), "nothing declares nc on every address, tcp port 4444"),
        (line("nc", "[::]:4444"), "nothing declares nc on every address, tcp port 4444"),
        (line("nc", "10.9.0.10:4444"), "nothing declares nc on 10.9.0.10, tcp port 4444"),
        (line("nc", "[fe80::1]%eth0:4444"), "nothing declares nc on fe80::1, tcp port 4444"),
        (line("python3", "0.0.0.0:6817"), "nothing declares python3 on every address, tcp port 6817"),
        (line("slurmctld", "0.0.0.0:6818"), "nothing declares slurmctld on every address, tcp port 6818"),
        (
            line("slurmctld", "0.0.0.0:6817", protocol="udp"),
            "nothing declares slurmctld on every address, udp port 6817",
        ),
        (
            line("", "0.0.0.0:2049", details="ino:0 sk:1 cgroup:/ <->"),
            "nothing declares kernel on every address, tcp port 2049",
        ),
        # a system account of a distribution, and one of systemd's dynamic users
        (
            line("snmpd", "0.0.0.0:161", protocol="udp", details="uid:112 ino:9 sk:1 cgroup:/x <->"),
            "nothing declares snmpd on every address, udp port 161",
        ),
        (
            line("exporter", "0.0.0.0:9100", details="uid:61500 ino:9 sk:1 cgroup:/x <->"),
            "nothing declares exporter on every address, tcp port 9100",
        ),
        # root's shell belongs to no job; a program that calls itself a user's is not one
        (
            line(
                "nc", "0.0.0.0:4444", details="ino:9 sk:1 cgroup:/user.slice/user-0.slice/session-1.scope <->"
            ),
            "nothing declares nc on every address, tcp port 4444",
        ),
        (
            line(")) uid:3000 ", "0.0.0.0:4444"),
            "nothing declares )) uid:3000  on every address, tcp port 4444",
        ),
    ],
)
def test_what_nothing_declares_is_named(printed, sentence):
    assert verdict(SS + printed).wrong == (sentence,)


def test_a_listener_on_a_network_that_it_is_not_declared_for():
    printed = line("slurmd", "10.11.0.11:6818")
    assert verdict(printed, node="gpu1").wrong == (
        "slurmd on 10.11.0.11, tcp port 6818: that is the network fabric, and it is declared for management alone",
    )
    everywhere = frozenset(NetworkPurpose)
    assert verdict(printed, Listener("slurmd", (6818, 6818), purposes=everywhere), node="gpu1").wrong == ()


def test_ports_of_users_and_jobs_are_counted_and_not_judged():
    directory = line("x", "0.0.0.0:5000", details="uid:1200000 ino:9 sk:1 cgroup:/x <->")
    mapped = line("x", "[::ffff:127.0.0.1]:5000")
    found = verdict(directory + mapped)
    assert (found.wrong, found.of_users, found.local) == ((), 1, 1)


# Seen on a Debian 13 container while a job of MPI ran (Slurm 24.11, PMIx 5.0.7), 2026-11-24: no separate control group.
INHERITED = """\
tcp LISTEN 0      4096     0.0.0.0:33181 0.0.0.0:* users:(("python3",pid=7486,fd=16),("slurmstepd",pid=7467,fd=16)) ino:389812 sk:c cgroup:/system.slice/slurmd.service <->
"""


def test_a_job_that_inherited_a_socket_of_its_step_opened_nothing():
    assert verdict(INHERITED, node="gpu1").wrong == ()


def test_processes_that_name_themselves_after_their_work_are_declared_by_what_they_begin_with():
    found = line("ray::ServeContr", "0.0.0.0:20429")
    assert verdict(found, Listener("ray::*", (20000, 20999))).wrong == ()
    for other in (
        Listener("ray::", (20000, 20999)),
        Listener("ray::*", (30000, 30999)),
        Listener("raylet*", (20000, 20999)),
    ):
        assert verdict(found, other).wrong == (
            "nothing declares ray::ServeContr on every address, tcp port 20429",
        )


def test_a_socket_of_nfsd_has_an_inode_and_no_process():
    """As ss shows it on Debian 13 with Linux 6.12 (2026-11-26); without the declaration its owner is unknown."""
    nfsd = line("", "0.0.0.0:2049")
    assert len(verdict(nfsd).unseen) == 1
    found = verdict(nfsd, Listener("kernel", (2049, 2049)))
    assert (found.wrong, found.unseen, found.declared) == ((), (), 1)
    assert len(verdict(line("", "0.0.0.0:2050"), Listener("kernel", (2049, 2049))).unseen) == 1
    (shown,) = verdict(line("nc", "0.0.0.0:2049"), Listener("kernel", (2049, 2049))).wrong
    assert shown == "nothing declares nc on every address, tcp port 2049"


@pytest.mark.parametrize(
    "printed", ["State Recv-Q", "tcp LISTEN 0 5 nowhere 0.0.0.0:*", "tcp LISTEN 0 5 x.y:80 *:*"]
)
def test_what_is_not_a_list_of_sockets(printed):
    with pytest.raises(UnreadableSocketsError):
        parse_sockets(printed)


# checks

CLUSTER = site({"firewall": FirewallOptions(), "slurm": SlurmOptions()})
EL = site({"firewall": FirewallOptions()}, os=os_release("rocky-9"))
NODE = worker(CLUSTER)
LIVE = asked(rules.LIVE)
UFW = asked(_ASK_UFW)
SOCKETS = "only declared services listen"
ON_WORKER = line("sshd", "0.0.0.0:22") + line("slurmd", "0.0.0.0:6818")


def healthy(cluster: Cluster) -> dict[str, object]:
    node = worker(cluster)
    return {
        **installed(node.family, ("nftables",)),
        **files(rules.files(cluster, node, FirewallOptions())),
        **unit(UNIT),
        **unit("firewalld.service", "inactive", "masked", "masked"),
        LIVE: "as declared\n",
        UFW: "none\n",
        "ss -Hltunpe": ON_WORKER if cluster is CLUSTER else line("sshd", "0.0.0.0:22"),
    }


@pytest.mark.parametrize(
    ("cluster", "name"),
    [(cluster, name) for cluster in (CLUSTER, EL) for name in claimed("firewall", CHECKS, worker(cluster))],
)
def test_a_healthy_node_passes(cluster, name):
    result = judged("firewall", CHECKS, name, cluster, worker(cluster), FakeHost(healthy(cluster)))
    assert (result.status, bool(result.evidence)) == ("PASS", True), result.evidence


CASES = [
    (CLUSTER, "nftables is installed", installed(os_family("debian"), ("nftables",), missing=("nftables",)), "FAIL", "not installed: nftables"),
    (CLUSTER, "the firewall rules on disk are as declared", files({rules.RULES: None}), "FAIL", f"{rules.RULES} is missing"),
    (CLUSTER, "the firewall rules are loaded at boot", unit(UNIT, state="disabled"), "FAIL", f"{UNIT} is active but disabled: it does not start at boot"),
    (CLUSTER, "the loaded firewall rules are as declared", {LIVE: "the table inet rackwright is not there\n"}, "FAIL", "the table inet rackwright is not there"),
    (CLUSTER, "the loaded firewall rules are as declared", {LIVE: "\n"}, "UNKNOWN", "nft did not print the kernel's rules"),
    (EL, "firewalld filters nothing", unit("firewalld.service"), "FAIL", "firewalld.service is enabled, not masked: a packet needs both filters to accept it"),
    (CLUSTER, "ufw filters nothing", {UFW: "ENABLED=yes\nLOGLEVEL=low\n"}, "WARN", "ufw is active too: a packet needs both filters to accept it"),
    (CLUSTER, "ufw filters nothing", {UFW: "ENABLED=no\n"}, "PASS", "ufw is disabled"),
    (CLUSTER, "ufw filters nothing", {UFW: ""}, "UNKNOWN", "/etc/ufw/ufw.conf does not set whether ufw is enabled"),
    (CLUSTER, SOCKETS, {"ss -Hltunpe": ON_WORKER + line("nc", "0.0.0.0:4444")}, "FAIL", "nothing declares nc on every address, tcp port 4444"),
    (CLUSTER, SOCKETS, {"ss -Hltunpe": ""}, "UNKNOWN", "ss lists no socket at all, not even sshd's"),
    (CLUSTER, SOCKETS, {"ss -Hltunpe": "what?"}, "UNKNOWN", "ss printed 'what?'"),
    (CLUSTER, SOCKETS, {"ss -Hltunpe": ON_WORKER + line("", "0.0.0.0:80")}, "UNKNOWN", "ss shows no process of 1 sockets, e.g. of tcp port 80"),
    (CLUSTER, SOCKETS, {"ss -Hltunpe": (127, "", "sh: 1: ss: not found")}, "UNKNOWN", "cannot run `ss`: sh: 1: ss: not found"),
]  # fmt: skip


@pytest.mark.parametrize(("cluster", "name", "reported", "status", "evidence"), CASES)
def test_what_a_check_says_of_a_node(cluster, name, reported, status, evidence):
    host = FakeHost({**healthy(cluster), **reported})
    result = judged("firewall", CHECKS, name, cluster, worker(cluster), host)
    assert (result.status, result.evidence) == (status, evidence)


def test_every_check_was_seen_to_object():
    assert {case[1] for case in CASES if case[3] != "PASS"} == {check.name for check in CHECKS}


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
@pytest.mark.parametrize("always", [(127, "", "not found"), ""])
def test_a_node_that_tells_nothing_is_unknown(name, always):
    cluster = EL if "firewalld" in name else CLUSTER
    result = judged("firewall", CHECKS, name, cluster, worker(cluster), FakeHost({}, always=always))
    assert result.status in ("UNKNOWN", "FAIL")
    assert result.status == "UNKNOWN" or always == "", result.evidence
