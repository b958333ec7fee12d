"""Many BMCs at once, their state judged, and the command line over them."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from rackwright.bmc import fleet
from rackwright.bmc.fleet import ask_all
from rackwright.bmc.interface import BmcHealth, BmcIdentity, Condition, LogEntry, Part, Power
from rackwright.bmc.status import Reading, status_of
from rackwright.bmc.target import NoAnswer
from rackwright.cli import bmc_consent, run
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import BmcError, SecretsError
from rackwright.secrets.secret import Secret
from tests.unit.bmc import fake

SITE = Path(__file__).parent / "site.yaml"
UNREACHABLE = "Cannot reach the BMC of gpu3 (10.20.0.13): no answer within 2 s."


class _Store:
    def get(self, name: str) -> Secret:
        if name != "bmc_password":
            raise SecretsError(f"no {name}")
        return Secret(name, fake.PASSWORD)


@pytest.fixture
def site(tmp_path, pki, monkeypatch):
    """A cluster file, and the BMCs of gpu1 (an iDRAC, on) and gpu2 (an iLO, off); that of gpu3 does not answer."""
    with (
        fake.serving(fake.tree("idrac"), pki, "10.20.0.11") as first,
        fake.serving(fake.tree("ilo"), pki, "10.20.0.12") as second,
    ):
        ports = {"10.20.0.11": first.port, "10.20.0.12": second.port}

        def connect(address: str, port: int, timeout: float) -> socket.socket:
            if address not in ports:
                raise TimeoutError
            return socket.create_connection(("127.0.0.1", ports[address]), timeout)

        monkeypatch.setattr(fleet, "connector", lambda cluster, node: connect)
        monkeypatch.setattr("rackwright.cli.bmc_console.connector", lambda cluster, node: connect)
        monkeypatch.setattr(fleet, "store_of", lambda cluster: _Store())
        monkeypatch.setattr(bmc_consent, "_ssh_answers", lambda cluster, node: node.name == "gpu1")
        file = tmp_path / "site.yaml"
        file.write_text(SITE.read_text())
        (tmp_path / "bmc-ca.pem").write_text(first.pem.read_text() + second.pem.read_text())
        yield file, first, second


@pytest.fixture
def rackwright(site, capsys):
    """`rackwright bmc COMMAND FILE ...`: status, standard output, standard error."""

    def call(command: str, *arguments: str) -> tuple[int, str, str]:
        status = run(["bmc", command, str(site[0]), *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_each_answers_or_fails_for_itself(site):
    cluster = load_cluster(site[0], locked=False)
    found = ask_all(cluster, cluster.nodes, lambda client: client.power())
    assert list(found) == ["gpu1", "gpu2", "gpu3"]
    assert (found["gpu1"], found["gpu2"]) == (Power.ON, Power.OFF)
    assert isinstance(found["gpu3"], NoAnswer)
    assert found["gpu3"].message == UNREACHABLE
    assert site[1].sessions == {} == site[2].sessions


def test_one_that_hangs_delays_no_other(site):
    file, first, _ = site
    first.fault("/redfish/v1/Systems", lambda handler: time.sleep(3) is None)
    cluster = load_cluster(file, locked=False)
    began, when = time.monotonic(), {}
    found = ask_all(
        cluster,
        cluster.nodes,
        lambda client: client.power(),
        within=1.0,
        done=lambda node: when.update({node: time.monotonic() - began}),
    )
    assert isinstance(found["gpu1"], NoAnswer)
    assert found["gpu2"] is Power.OFF
    assert when["gpu2"] < when["gpu1"] < 2.5


def test_a_missing_password_is_an_error_of_all(site):
    file, *_ = site
    file.write_text(SITE.read_text().replace("user: root,", "user: root, password: other_password,"))
    cluster = load_cluster(file, locked=False)
    with pytest.raises(SecretsError):
        ask_all(cluster, cluster.nodes, lambda client: client.power())


def _node(site, name: str = "gpu1", **change):
    return load_cluster(site[0], locked=False).by_name[name].model_copy(update=change)


def _reading(**change) -> Reading:
    health = {"overall": Condition.OK, **{k: v for k, v in change.items() if k not in ("power", "identity")}}
    return Reading(
        change.get("power", Power.ON), change.get("identity", BmcIdentity()), BmcHealth(**health), None
    )


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        (None, "OUT OF SCOPE", "no `bmc` is declared"),
        (BmcError("It is silent."), "UNKNOWN", "It is silent."),
        (_reading(), "PASS", None),
        (
            _reading(fans=(Part("FAN3", Condition.CRITICAL, 0.0, "RPM"),)),
            "FAIL",
            "FAN3 (0 RPM) is critical",
        ),
        (
            _reading(fans=(Part("FAN3", Condition.CRITICAL, 0.0, "RPM"),), power=Power.OFF),
            "WARN",
            "FAN3 (0 RPM) is critical while the node is off",
        ),
        (_reading(power_supplies=(Part("PSU2", Condition.WARNING),)), "WARN", "PSU2 is warning"),
        (_reading(power_supplies=(Part("PSU2", Condition.ABSENT),)), "PASS", None),
        (_reading(overall=Condition.CRITICAL), "FAIL", "the BMC reports the machine as critical"),
        (_reading(overall=Condition.UNKNOWN), "UNKNOWN", "the BMC reports no health"),
        (
            _reading(power=Power.UNKNOWN),
            "UNKNOWN",
            "the BMC does not report the power state",
        ),
        (_reading(unread=("/x",)), "UNKNOWN", "the BMC failed to read /x"),
        (_reading(sel_full=90), "WARN", "the event log is 90 % full; a full log drops new entries"),
        (_reading(sel_full=100, sel_wraps=True), "PASS", None),
        (_reading(sel_full=89), "PASS", None),
        (
            _reading(identity=BmcIdentity(serial="SN2", macs=("02:00:00:00:00:02",))),
            "FAIL",
            "the machine's serial is SN2, but SN1 is declared",
        ),
    ],
)
def test_judging(site, answer, status, text):
    found = status_of(_node(site, serial="SN1", mac="02:00:00:00:00:02"), answer)
    assert str(found.status) == status
    assert [one.text for one in found.findings] == ([] if text is None else [text])


def test_a_declared_mac_that_is_none_of_its_ports(site):
    reading = _reading(identity=BmcIdentity(macs=("02:00:00:00:00:03",)))
    (found,) = status_of(_node(site, mac="02:00:00:00:00:02"), reading).findings
    assert (str(found.status), found.text) == (
        "WARN",
        "the declared MAC 02:00:00:00:00:02 is not one of its ports: 02:00:00:00:00:03",
    )


def test_one_machine_behind_two_addresses(rackwright, site):
    system = site[2].documents["/redfish/v1/Systems/1"]
    system.update(SerialNumber="RW00001")
    out = rackwright("status")[1]
    assert (
        "FAIL  gpu[1-2]  serial RW00001 is reported for gpu[1-2]: one machine, several BMC addresses" in out
    )


def test_status(rackwright):
    status, out, _ = rackwright("status")
    lines = out.splitlines()
    assert status == 3
    titles = "node status power watts supplies fans hottest bios bmc log last critical event"
    assert " ".join(lines[0].split()) == titles
    assert lines[1].startswith("gpu1  FAIL     on      2150  1 ok, 2 critical  1 ok     61 C  2.6.6")
    assert "OUT OF SCOPE  head1  no `bmc` is declared" in lines
    assert "FAIL  gpu1  PS2 Status (0 W) is critical" in lines
    assert f"UNKNOWN  gpu3  {UNREACHABLE}" in lines


@pytest.mark.parametrize(("limit", "code"), [("gpu1", 3), ("gpu2", 0), ("gpu[2-3]", 4)])
def test_exit_codes_of_status(rackwright, limit, code):
    assert rackwright("status", "--limit", limit)[0] == code


def test_status_as_json(rackwright):
    document = json.loads(rackwright("status", "--json")[1])
    assert [(one["node"], one["status"]) for one in document["nodes"]] == [
        ("head1", "OUT OF SCOPE"),
        ("gpu1", "FAIL"),
        ("gpu2", "PASS"),
        ("gpu3", "UNKNOWN"),
    ]
    assert document["nodes"][1]["last_critical"]["message"] == "The power input for power supply 2 is lost."


def test_every_part(rackwright):
    assert "  ok        System Board Fan1A  8400 RPM" in rackwright("status", "-v", "--limit", "gpu1")[1]


def test_power_status(rackwright):
    status, out, err = rackwright("power", "status")
    assert (status, out) == (4, "gpu1: on\ngpu2: off\n")
    assert err.splitlines() == [
        f"error: {UNREACHABLE}",
        "hint: check its address and cable; does this host have a route to its network?",
        "out of scope, no `bmc` is declared: head1",
    ]


@pytest.mark.parametrize("action", ["off", "cycle", "reset", "soft"])
def test_nodes_that_lose_power_are_typed(rackwright, site, action):
    _, first, second = site
    there = "gpu[1-2]"
    status, _, err = rackwright("power", action, "--limit", there)
    assert (status, first.changes() + second.changes()) == (1, [])
    assert "gpu1, 1 in all" in err
    assert "running, since ssh answers: gpu1" in err
    assert "again with --confirm gpu1" in err


def test_jobs_are_named(rackwright, monkeypatch):
    monkeypatch.setattr(bmc_consent, "jobs_on", lambda cluster, names: {"gpu1": ("7 (ada, sim)",)})
    assert "gpu1 runs 7 (ada, sim)" in rackwright("power", "off", "--limit", "gpu1")[2]


def test_jobs_that_are_not_known_are_said_to_be(rackwright, monkeypatch):
    def fail(cluster, names):
        raise NoAnswer("Slurm is silent.")

    monkeypatch.setattr(bmc_consent, "jobs_on", fail)
    err = rackwright("power", "off", "--limit", "gpu1")[2]
    assert "jobs on these nodes: UNKNOWN: Slurm is silent." in err


def test_another_text_than_the_nodes_changes_nothing(rackwright, site):
    status, _, err = rackwright("power", "off", "--limit", "gpu[1-2]", "--confirm", "yes")
    assert (status, site[1].changes()) == (1, [])
    assert "error: 'yes' is not gpu1; nothing was changed." in err


def test_power_off(rackwright, site):
    status, out, _ = rackwright("power", "off", "--limit", "gpu[1-2]", "--confirm", "gpu1")
    assert (status, sorted(out.splitlines())) == (0, ["gpu1: power off accepted", "gpu2: is off already"])
    assert [body for _, _, body in site[1].changes()] == [{"ResetType": "ForceOff"}]
    assert site[2].changes() == []


@pytest.mark.parametrize(("action", "kind"), [("cycle", "PowerCycle"), ("reset", "ForceRestart")])
def test_a_reset_starts_no_node_that_is_off(rackwright, site, action, kind):
    """Such a node is neither named nor typed, so it gets no order."""
    status, out, err = rackwright("power", action, "--limit", "gpu[1-2]", "--confirm", "gpu1")
    there = ["gpu1: power " + action + " accepted", "gpu2: is off: no power " + action]
    assert (status, sorted(out.splitlines())) == (0, there)
    assert [body for _, _, body in site[1].changes()] == [{"ResetType": kind}]
    assert site[2].changes() == []
    assert "gpu2" not in err


def test_a_reset_of_nodes_that_are_all_off_asks_nothing(rackwright, site):
    assert rackwright("power", "reset", "--limit", "gpu2")[:2] == (0, "gpu2: is off: no power reset\n")
    assert site[2].changes() == []


@pytest.mark.parametrize(
    ("action", "result"),
    [
        ("reset", "is off: no power reset"),
        ("cycle", "is off: no power cycle"),
        ("off", "is off already"),
        ("soft", "is off already"),
    ],
)
def test_the_power_is_read_again_after_the_nodes_were_typed(rackwright, site, monkeypatch, action, result):
    system = "/redfish/v1/Systems/System.Embedded.1"
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())

    def typed(*asked, **options) -> str:
        site[1].documents[system]["PowerState"] = "Off"  # another operator was faster
        site[2].documents["/redfish/v1/Systems/1"]["PowerState"] = "On"  # and started this one
        return "gpu1"

    monkeypatch.setattr("typer.prompt", typed)
    status, out, _ = rackwright("power", action, "--limit", "gpu[1-2]")
    assert (status, out.splitlines()[0]) == (0, f"gpu[1-2]: {result}")
    assert site[1].changes() + site[2].changes() == []


def test_power_on_asks_nothing(rackwright, site):
    status, out, _ = rackwright("power", "on", "--limit", "gpu[1-2]", "--json")
    assert status == 0
    assert json.loads(out)["nodes"] == {
        "gpu1": {"result": "is on already"},
        "gpu2": {"result": "power on accepted"},
    }
    assert [body for _, _, body in site[2].changes()] == [{"ResetType": "On"}]


def test_log(rackwright):
    status, out, _ = rackwright("log", "--limit", "gpu2", "-n", "1")
    assert (status, out.splitlines()) == (
        0,
        [
            "gpu2",
            "  2026-11-02 19:34:34Z  warning   Connectivity status changed to Link Failure for adapter in slot 3, port 1",
        ],
    )
    (entry,) = json.loads(rackwright("log", "--limit", "gpu1", "-n", "1", "--json")[1])["nodes"]["gpu1"]
    assert entry["severity"] == "ok"


def test_identify(rackwright):
    assert rackwright("identify", "off", "--limit", "gpu[1-2]")[:2] == (0, "gpu[1-2]: light off\n")


def test_boot_order(rackwright):
    assert rackwright("boot-order", "--limit", "gpu[1-2]")[1] == (
        "gpu1: the firmware's own\ngpu2: cd, once\n"
    )
    assert rackwright("boot-order", "pxe", "--limit", "gpu1")[1] == "gpu1: pxe, once\n"
    shown = rackwright("boot-order", "disk", "--persistent", "--limit", "gpu1")[1]
    assert shown == "gpu1: disk, until changed\n"


def test_console(rackwright, monkeypatch):
    ran = []
    monkeypatch.setattr("rackwright.cli.bmc_console._run", lambda command: ran.append(command) or 0)
    status, _, err = rackwright("console", "gpu2")
    assert (status, ran) == (0, [["ssh", "-t", "-p", "22", "-l", "root", "10.20.0.12", "vsp"]])
    assert err == "+ ssh -t -p 22 -l root 10.20.0.12 vsp\n"


def test_console_of_a_node_without_a_bmc(rackwright):
    status, _, err = rackwright("console", "head1")
    assert (status, err) == (
        1,
        "error: head1 has no BMC declared.\nhint: declare `bmc` for its group: docs/bmc.md\n",
    )


def test_nodes_without_bmcs(rackwright):
    status, _, err = rackwright("status", "--limit", "head1")
    assert (status, err) == (
        1,
        "error: No BMC is declared for head1.\nhint: declare `bmc` for a group of nodes: docs/bmc.md\n",
    )


def test_a_wrong_action(rackwright):
    status, _, err = rackwright("power", "explode")
    assert status == 64
    assert "explode is not one of: on, off, soft, cycle, reset, status" in err


def test_an_event_without_a_clock_is_shown(capsys):
    from rackwright.cli.bmc_view import show_log
    from rackwright.cli.terminal import Console

    show_log({"gpu1": [LogEntry(None, Condition.CRITICAL, "\x1b[2Jgone")]}, Console())
    out = capsys.readouterr().out
    assert "(no clock)" in out
    assert "\x1b[2J" not in out
