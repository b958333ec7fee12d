"""The time role: options, whole files, what each family and platform gets, and its checks."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from rackwright.data import Site
from rackwright.model.types import Platform
from rackwright.osfamily.known import os_release
from rackwright.roles.time.deploy import chrony_conf
from rackwright.roles.time.options import TimeOptions
from rackwright.roles.time.verify import CHECKS
from tests.unit.roles.fake_facts import unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, site, worker

UPSTREAM = TimeOptions(
    servers=("ntp1.example", "192.0.2.1"),
    allow=(IPv4Network("10.8.0.0/24"),),
    hardware_timestamping=("eno1",),
)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"servers": ["ntp example"]}, "'ntp example' is not the name or address of an NTP server."),
        ({"hardware_timestamping": ["eth0; x"]}, "'eth0; x' is not the name of a network interface."),
        ({"local_stratum": 16}, "Input should be less than or equal to 15"),
        ({"max_offset_seconds": 0}, "Input should be greater than 0"),
        ({"allow": ["10.8.0.1/24"]}, "Input is not a valid IPv4 network"),
        ({"pool": "x"}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(TimeOptions, given) == [sentence]


@pytest.mark.parametrize(
    ("which", "options", "os", "platform", "file"),
    [
        (head, UPSTREAM, os_release("debian-13"), Platform.BARE_METAL, "chrony-head-upstream.conf"),
        (head, TimeOptions(), os_release("debian-13"), Platform.CONTAINER, "chrony-head-container.conf"),
        (worker, TimeOptions(), os_release("debian-12"), Platform.CONTAINER, "chrony-worker-container.conf"),
        (worker, UPSTREAM, os_release("rocky-9"), Platform.BARE_METAL, "chrony-worker-el9.conf"),
    ],
)
def test_chrony_conf(which, options, os, platform, file):
    cluster = site({"time": options}, os=os, platform=platform)
    assert chrony_conf(Site(cluster, which(cluster)), options) == expected(f"time/{file}")


def _contents(plan):
    assert plan.error is None
    changes = [change for operation in plan.operations for change in operation.changes]
    return {change.target: change.content for change in changes if change.content is not None}


@pytest.mark.parametrize(
    ("os", "platform", "path", "file"),
    [
        (os_release("ubuntu-24.04"), Platform.BARE_METAL, "/etc/default/chrony", "options-debian"),
        (os_release("debian-13"), Platform.CONTAINER, "/etc/default/chrony", "options-debian-container"),
        (os_release("rocky-9"), Platform.BARE_METAL, "/etc/sysconfig/chronyd", "options-el9"),
        (os_release("rocky-9"), Platform.CONTAINER, "/etc/sysconfig/chronyd", "options-el9-container"),
        (
            os_release("debian-12"),
            Platform.CONTAINER,
            "/etc/systemd/system/chrony.service.d/90-rackwright.conf",
            "without-clock.conf",
        ),
    ],
)
def test_files_of_each_family(os, platform, path, file):
    cluster = site({"time": TimeOptions()}, os=os, platform=platform)
    assert _contents(planned(cluster, worker(cluster)))[path] == expected(f"time/{file}")


def test_what_ubuntu_gets():
    cluster = site({"time": TimeOptions()}, os=os_release("ubuntu-22.04"))
    plan = planned(cluster, worker(cluster))
    assert [operation.name for operation in plan.operations] == [
        "Install chrony",
        "Mask systemd-timesyncd",
        "Write chrony's configuration",
        "Write chronyd's options",
        "Start chronyd",
    ]
    (install,) = commands(plan, "Install chrony")
    assert "policy-rc.d" in install  # its first start is with our configuration
    assert "install chrony" in install
    assert any("systemctl start chrony.service" in command for command in commands(plan, "Start chronyd"))


def test_what_el9_gets():
    cluster = site({"time": TimeOptions()}, os=os_release("rocky-9"), platform=Platform.CONTAINER)
    plan = planned(cluster, worker(cluster))
    assert [operation.name for operation in plan.operations] == [
        "Install chrony",
        "Mask systemd-timesyncd",
        "Write chrony's configuration",
        "Write chronyd's options",
        "Create the folder for chronyd drop-ins",
        "Let chronyd start without the clock",
        "Reload systemd",
        "Start chronyd",
    ]
    assert any("systemctl start chronyd.service" in command for command in commands(plan, "Start chronyd"))
    assert commands(plan, "Reload systemd") == ("systemctl daemon-reload",)


# Recorded on Debian 13, chrony 4.6: a head that serves its own clock, and a node that follows it.
LOCAL = "7F7F0101,,10,1795206446.636370405,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,0.000000000,0.000000000,0.0,Normal\n"
FOLLOWS = "0A62000A,10.9.0.10,11,1795206453.561415621,-0.000005321,0.000232047,0.000232047,0.068,0.000,1.110,0.000022613,0.000100642,64.1,Normal\n"
LOST = "00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,Not synchronised\n"
SOURCE = "^,*,10.9.0.10,10,6,37,47,0.000000078,0.000232117,0.000011667\n"
UPSTREAM_SOURCES = (
    "^,*,192.0.2.1,2,6,377,12,0.000000078,0.000232117,0.000011667\n^,-,192.0.2.9,3,6,377,12,0.0,0.0,0.0\n"
)

TRACKING = "chronyc -c -n tracking"
SOURCES = "chronyc -c -n sources"
UNIT, TIMESYNCD = "chrony.service", "systemd-timesyncd.service"
NTP = "timedatectl show -p NTPSynchronized --value"
HEALTHY = {
    **unit(UNIT),
    **unit(TIMESYNCD, "inactive", "masked", "masked"),
    TRACKING: FOLLOWS,
    SOURCES: SOURCE,
    NTP: "yes\n",
}
HEALTHY_HEAD = {**HEALTHY, TRACKING: LOCAL, SOURCES: ""}

CLUSTER = site({"time": TimeOptions()})
WITH_UPSTREAM = site({"time": UPSTREAM})
FOLLOW = "the node follows the site's server"
SERVE = "the site's time server is synchronised"
OFFSET = "the clock is within its allowed offset"
AGREE = "all clocks agree"
EXTRA = "chrony.conf has the declared extra lines"  # seen to fail in test_extra_lines.py
RUNS = "chronyd is running and enabled at boot"

FAILURES = [
    (RUNS, worker, unit(UNIT, "failed"), "chrony.service is failed"),
    (
        RUNS,
        worker,
        unit(UNIT, state="disabled"),
        "chrony.service is active but disabled: it does not start at boot",
    ),
    (
        "no other service sets the clock",
        worker,
        unit(TIMESYNCD),
        "systemd-timesyncd.service is enabled, not masked: two services may set one clock",
    ),
    (FOLLOW, worker, {SOURCES: ""}, "head1 (10.9.0.10) is not among chrony's sources"),
    (FOLLOW, worker, {SOURCES: SOURCE.replace(",37,", ",0,")}, "head1 (10.9.0.10) has not answered"),
    (
        FOLLOW,
        worker,
        {SOURCES: SOURCE.replace("*", "x")},
        "head1 (10.9.0.10) answers but is not selected (state x)",
    ),
    (
        SERVE,
        head,
        {TRACKING: LOST},
        "the head follows nothing at stratum 0, not its own clock at stratum 10",
    ),
    (OFFSET, worker, {TRACKING: LOST}, "chrony is not synchronised to anything"),
    (
        OFFSET,
        worker,
        {TRACKING: FOLLOWS.replace("-0.000005321", "-0.061")},
        "the clock is -0.061000 s off, more than 0.05 s",
    ),
    (
        "the kernel's clock is synchronised",
        worker,
        {NTP: "no\n"},
        "the kernel reports that its clock is not synchronised",
    ),
]


def test_every_check_was_seen_to_fail():
    assert {case[0] for case in FAILURES} | {AGREE, EXTRA} == {check.name for check in CHECKS}


@pytest.mark.parametrize(
    ("which", "replies", "name"),
    [
        (which, replies, name)
        for which, replies in ((worker, HEALTHY), (head, HEALTHY_HEAD))
        for name in claimed("time", CHECKS, which(CLUSTER))
        if name != AGREE
    ],
)
def test_a_healthy_node_passes(which, replies, name):
    result = judged("time", CHECKS, name, CLUSTER, which(CLUSTER), FakeHost(replies))
    assert (result.status, bool(result.evidence)) == ("PASS", True), result.evidence


@pytest.mark.parametrize(("name", "which", "wrong", "evidence"), FAILURES)
def test_a_false_claim_fails(name, which, wrong, evidence):
    result = judged("time", CHECKS, name, CLUSTER, which(CLUSTER), FakeHost({**HEALTHY, **wrong}))
    assert (result.status, result.evidence) == ("FAIL", evidence)


def test_a_head_that_is_its_own_time_has_no_synchronised_clock():
    name = "the kernel's clock is synchronised"
    assert name not in claimed("time", CHECKS, head(CLUSTER))
    assert name in claimed("time", CHECKS, head(WITH_UPSTREAM))
    assert name in claimed("time", CHECKS, worker(CLUSTER))


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_a_node_without_tools_is_unknown(name):
    assert judged("time", CHECKS, name, CLUSTER, head(CLUSTER), FakeHost({})).status == "UNKNOWN"


@pytest.mark.parametrize("answer", ["", "rubbish\n", (1, "", "506 Cannot talk to daemon\n"), (124, "", "")])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_unreadable_answers_never_pass(name, answer):
    host = FakeHost({}, always=answer)
    assert judged("time", CHECKS, name, CLUSTER, worker(CLUSTER), host).status in ("FAIL", "UNKNOWN")


def test_a_head_with_servers_follows_one_of_them():
    good = FakeHost({TRACKING: FOLLOWS, SOURCES: UPSTREAM_SOURCES})
    result = judged("time", CHECKS, SERVE, WITH_UPSTREAM, head(WITH_UPSTREAM), good)
    assert (result.status, result.evidence) == ("PASS", "192.0.2.1, stratum 2")
    alone = FakeHost({TRACKING: LOCAL, SOURCES: UPSTREAM_SOURCES.replace("*", "?")})
    result = judged("time", CHECKS, SERVE, WITH_UPSTREAM, head(WITH_UPSTREAM), alone)
    assert (result.status, result.evidence) == ("FAIL", "no server of ntp1.example, 192.0.2.1 is selected")


def test_a_clock_that_is_not_owned_is_out_of_scope_and_still_compared():
    cluster = site({"time": TimeOptions()}, platform=Platform.CONTAINER)
    out = {
        name
        for name in claimed("time", CHECKS, worker(cluster))
        if judged("time", CHECKS, name, cluster, worker(cluster), FakeHost(HEALTHY)).status == "OUT OF SCOPE"
    }
    assert out == {"the kernel's clock is synchronised"}
