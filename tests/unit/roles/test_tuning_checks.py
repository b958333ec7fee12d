"""The tuning role's checks: each seen to pass, to fail, not to know, and to be out of scope."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.claims.check import Undetermined
from rackwright.claims.kernel import parse_sysctl_config
from rackwright.facts.kernel import Sysctls, proc_path
from rackwright.facts.settings import Answer
from rackwright.model.types import NodeRole, Platform
from rackwright.roles.tuning import values
from rackwright.roles.tuning.options import Journal, TuningOptions
from rackwright.roles.tuning.readings import (
    parse_choice,
    parse_json_lines,
    parse_limits,
    parse_size,
    parse_swaps,
    parse_unit_config,
)
from rackwright.roles.tuning.verify import CHECKS
from tests.unit.roles.fake_facts import asked, file, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.sites import head, site, worker

RECORDED = Path(__file__).parent / "recorded" / "tuning"
OPTIONS = TuningOptions(sysctl={"kernel.panic": 10, "net.ipv4.ip_local_port_range": "15000 60999"})
CLUSTER = site({"tuning": OPTIONS})
NODE = worker(CLUSTER)
# a node of every kind, so that every check is made of it
ALL_ROLES = NODE.model_copy(update={"roles": frozenset(NodeRole)})
VALUES = values.sysctls(ALL_ROLES, OPTIONS)
UNLIMITED = "MEMLOCK unlimited unlimited\nSTACK   unlimited unlimited\nNOFILE    1048576   1048576\n"
JOURNAL = (RECORDED / "journal.json").read_text()

ASK_BOOT = "systemd-analyze cat-config sysctl.d"
ASK_SESSION = (
    "runuser -u admin -- prlimit --noheadings --output=RESOURCE,SOFT,HARD --memlock --stack --nofile --nproc"
)
ASK_SERVICE = "systemd-run --quiet --pipe --wait prlimit --noheadings --output=RESOURCE,SOFT,HARD --memlock"
ASK_MANAGER = asked(Answer().command(values.MANAGER_MEMLOCK_READ))
ASK_HUGEPAGES = "cat /sys/kernel/mm/transparent_hugepage/enabled"
ASK_GOVERNOR = "cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
ASK_JOURNAL = "journalctl -b -q --no-pager -o json MESSAGE_ID=ec387f577b844b8fa948f33cad9a75e6"
ASK_JOURNALD = "systemd-analyze cat-config systemd/journald.conf"
SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

SWAPPINESS = asked(Sysctls().command(("vm.swappiness",)))


def sysctl(key, value):
    """The kernel's value; None: the key does not exist."""
    reported = "" if value is None else f"{key}={value}\n".replace(" ", "\t")
    return {asked(Sysctls().command((key,))): reported, **file(proc_path(key), value, digest_only=True)}


HEALTHY = {
    **{line: reported for key, value in VALUES.items() for line, reported in sysctl(key, value).items()},
    ASK_BOOT: "# /etc/sysctl.d/90-rackwright.conf\n" + "".join(f"{k} = {v}\n" for k, v in VALUES.items()),
    ASK_SESSION: UNLIMITED + "NPROC   unlimited unlimited\n",
    ASK_SERVICE: "MEMLOCK unlimited unlimited\n",
    ASK_MANAGER: "infinity\n",
    ASK_HUGEPAGES: "always [madvise] never\n",
    ASK_GOVERNOR: "performance\n" * 4,
    "tuned-adm active": "Current active profile: rackwright\n",
    "tuned-adm verify": "Verification succeeded, current system settings match the preset profile.\n",
    "cat /proc/swaps": SWAPS,
    **unit("swap.target", "inactive", "masked", "masked"),
    **unit("systemd-journald.service", state="static"),
    ASK_JOURNAL: JOURNAL,
    ASK_JOURNALD: (RECORDED / "journald.conf").read_text(),
}

SESSION = "login sessions have the declared limits"
SERVICE = "a new service has the declared memlock limit"
BOOT = "nothing overrides the kernel values at boot"
THP = "transparent huge pages are as declared"
GOVERNOR = "every CPU has the declared frequency governor"
TUNED = "the tuned profile is in effect"
DISK = "the journal is kept on disk within its caps"
RATE = "the journal's rate limit is as declared"
MACHINE = "further kernel values of the site are as declared"
NETWORK = "further network values of the site are as declared"

RESERVE = "vm.min_free_kbytes"

FAILURES = [
    (
        "journald is running",
        unit("systemd-journald.service", "inactive", "masked", "masked"),
        "systemd-journald.service is masked: nothing can start it",
    ),
    *(
        (
            f"{key} is as declared",
            sysctl(key, "7"),
            f"{key} is 7, not {VALUES[key]}" + (" or more" if key == RESERVE else ""),
        )
        for key in values.KEYS
    ),
    (
        BOOT,
        {ASK_BOOT: HEALTHY[ASK_BOOT] + "vm.min_free_kbytes=67584\n"},
        "after a reboot vm.min_free_kbytes would be 67584, not 135168",
    ),
    (
        "vm.swappiness is as declared",
        sysctl("vm.swappiness", None),
        "this kernel has no vm.swappiness",
    ),
    (MACHINE, sysctl("kernel.panic", "0"), "kernel.panic is 0, not 10"),
    (
        NETWORK,
        sysctl("net.ipv4.ip_local_port_range", "32768 60999"),
        "net.ipv4.ip_local_port_range is 32768 60999, not 15000 60999",
    ),
    (
        BOOT,
        {ASK_BOOT: HEALTHY[ASK_BOOT] + "# /etc/sysctl.d/99-sysctl.conf\nvm.swappiness=60\n"},
        "after a reboot vm.swappiness would be 60, not 10",
    ),
    (
        BOOT,
        {ASK_BOOT: HEALTHY[ASK_BOOT].replace("vm.swappiness = 10\n", "")},
        "after a reboot vm.swappiness would be as the kernel has it, not 10",
    ),
    (
        SESSION,
        {ASK_SESSION: HEALTHY[ASK_SESSION].replace("MEMLOCK unlimited unlimited", "MEMLOCK 8388608 8388608")},
        "memlock is 8388608 (at most 8388608), not unlimited",
    ),
    (SERVICE, {ASK_SERVICE: "MEMLOCK 65536 65536\n"}, "memlock is 65536 (at most 65536), not unlimited"),
    (
        "systemd sets the declared memlock limit for services",
        {ASK_MANAGER: "8388608\n"},
        "the running systemd has DefaultLimitMEMLOCK=8388608, not infinity",
    ),
    (THP, {ASK_HUGEPAGES: "[always] madvise never\n"}, "transparent huge pages are always, not madvise"),
    (
        GOVERNOR,
        {ASK_GOVERNOR: "performance\npowersave\nperformance\npowersave\n"},
        "2 of 4 CPUs have governor powersave, not performance",
    ),
    (
        TUNED,
        {"tuned-adm active": "Current active profile: balanced\n"},
        "Current active profile: balanced",
    ),
    (TUNED, {"tuned-adm active": "No current active profile.\n"}, "No current active profile."),
    (
        TUNED,
        {"tuned-adm verify": (1, "Verification failed, current system settings differ\n", "")},
        "tuned-adm verify finds settings changed since the profile was applied",
    ),
    (
        "swap is off",
        {"cat /proc/swaps": SWAPS + "/dev/nvme0n1p3  partition\t8388604\t0\t-2\n"},
        "swap is on: /dev/nvme0n1p3",
    ),
    (
        "swap is off",
        unit("swap.target", "inactive", "static"),
        "swap.target is static, not masked: swap comes back with a reboot",
    ),
    (
        DISK,
        {ASK_JOURNAL: "".join(JOURNAL.splitlines(keepends=True)[:2])},
        "journald runs with MAX_USE 1699835904, not 4294967296 (4G)",
    ),
    (
        DISK,
        {ASK_JOURNAL: JOURNAL.splitlines(keepends=True)[0]},
        "journald keeps no journal on disk, only one that is lost with a reboot",
    ),
    (
        RATE,
        {ASK_JOURNALD: HEALTHY[ASK_JOURNALD] + "[Journal]\nRateLimitBurst=500\n"},
        "RateLimitBurst is 500, not 10000",
    ),
]


def _judged(name, host, node=ALL_ROLES):
    return judged("tuning", CHECKS, name, CLUSTER, node, host)


def test_every_check_was_seen_to_fail():
    assert {case[0] for case in FAILURES} == {check.name for check in CHECKS}


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_a_healthy_node_passes(name):
    result = _judged(name, FakeHost(HEALTHY))
    assert (result.status, bool(result.evidence)) == ("PASS", True), result.evidence


@pytest.mark.parametrize(("name", "wrong", "evidence"), FAILURES)
def test_a_false_claim_fails(name, wrong, evidence):
    result = _judged(name, FakeHost({**HEALTHY, **wrong}))
    assert (result.status, result.evidence) == ("FAIL", evidence)


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_a_node_without_tools_is_unknown(name):
    assert _judged(name, FakeHost({})).status == "UNKNOWN"


@pytest.mark.parametrize("answer", ["", "rubbish\n", (1, "", "input/output error\n"), (124, "", "")])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_unreadable_answers_never_pass(name, answer):
    assert _judged(name, FakeHost({}, always=answer)).status in ("FAIL", "UNKNOWN")


@pytest.mark.parametrize(
    ("name", "answer", "evidence"),
    [
        (DISK, {ASK_JOURNAL: ""}, "journald has not reported its limits since boot"),
        (DISK, {ASK_JOURNAL: "-- No entries --\n"}, "journalctl did not print JSON: -- No entries --"),
        (
            THP,
            {ASK_HUGEPAGES: "madvise\n"},
            "/sys/kernel/mm/transparent_hugepage/enabled has no selected value",
        ),
        (
            "systemd sets the declared memlock limit for services",
            {ASK_MANAGER: ""},
            f"Answer of {values.MANAGER_MEMLOCK_READ}: the node printed nothing",
        ),
        (SESSION, {ASK_SESSION: UNLIMITED}, "prlimit does not report nproc"),
        ("vm.swappiness is as declared", {SWAPPINESS: ""}, "/proc/sys/vm/swappiness cannot be read"),
        (
            "vm.swappiness is as declared",
            {SWAPPINESS: "vm.swappiness=\n"},
            "/proc/sys/vm/swappiness cannot be read",
        ),
        ("swap is off", {"cat /proc/swaps": ""}, "/proc/swaps is not readable as a list of swap areas"),
        (GOVERNOR, {ASK_GOVERNOR: ""}, "no CPU reports its governor"),
    ],
)
def test_what_is_not_known_says_why(name, answer, evidence):
    result = _judged(name, FakeHost({**HEALTHY, **answer}))
    assert (result.status, result.evidence) == ("UNKNOWN", evidence)


CONTAINER = ALL_ROLES.model_copy(update={"platform": Platform.CONTAINER})
IN_SCOPE = {
    *(f"{key} is as declared" for key in values.KEYS if values.is_of_the_network_namespace(key)),
    NETWORK,
    BOOT,
    "systemd sets the declared memlock limit for services",
    "journald is running",
    DISK,
    RATE,
}


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_a_container_is_out_of_scope_by_name_and_nothing_else_is(name):
    result = _judged(name, FakeHost(HEALTHY), CONTAINER)
    assert result.status == ("PASS" if name in IN_SCOPE else "OUT OF SCOPE")
    assert result.evidence


def test_the_sites_own_machine_values_are_named_when_out_of_scope():
    assert _judged(MACHINE, FakeHost({}), CONTAINER).evidence == (
        "kernel.panic: a container shares its host's kernel and can set only namespaced settings"
    )


@pytest.mark.parametrize(
    ("there", "status", "evidence"),
    [
        ("135168", "PASS", f"{RESERVE} = 135168"),
        ("185363", "PASS", f"{RESERVE} = 185363, the kernel's own; at least 135168"),
        ("67584", "FAIL", f"{RESERVE} is 67584, not 135168 or more"),
        ("much", "UNKNOWN", f"{RESERVE} is 'much', which is not a number"),
    ],
)
def test_a_higher_reserve_is_the_kernels_own(there, status, evidence):
    reported = FakeHost({**HEALTHY, **sysctl(RESERVE, there)})
    result = judged("tuning", CHECKS, f"{RESERVE} is as declared", CLUSTER, NODE, reported)
    assert (result.status, result.evidence) == (status, evidence)


def test_the_reserve_need_not_be_in_a_file_and_a_higher_one_may():
    for line in ("", "vm.min_free_kbytes = 262144\n"):
        text = HEALTHY[ASK_BOOT].replace("vm.min_free_kbytes = 135168\n", line)
        result = judged("tuning", CHECKS, BOOT, CLUSTER, NODE, FakeHost({**HEALTHY, ASK_BOOT: text}))
        assert result.status == "PASS", result.evidence


def test_what_is_claimed_follows_the_node():
    names = claimed("tuning", CHECKS, head(CLUSTER))
    assert "net.ipv4.tcp_max_syn_backlog is as declared" in names
    assert "kernel.numa_balancing is as declared" not in names
    assert "swap is off" not in names
    plain = site({"tuning": TuningOptions()})
    assert {MACHINE, NETWORK}.isdisjoint(claimed("tuning", CHECKS, worker(plain)))


def test_readings():
    assert parse_sysctl_config("# a\n; b\nvm.x = 1\n-net/ipv4/y=2 3\nvm.x=\t4\n") == {
        "vm.x": "4",
        "net.ipv4.y": "2 3",
    }
    assert parse_limits("MEMLOCK 1 2\nrubbish\n") == {"memlock": ("1", "2")}
    assert parse_choice("always defer [never]") == "never"
    assert parse_choice("never") is None
    assert (parse_size("512M"), parse_size(Journal().max_use)) == (536870912, 4294967296)
    assert parse_swaps(SWAPS + "/swapfile file 1 0 -2\n") == ("/swapfile",)
    assert parse_unit_config("[Journal]\n#A=1\nB=2\nB=3\n") == {"B": "3"}
    with pytest.raises(Undetermined, match="did not print an object"):
        parse_json_lines("[1]\n")
