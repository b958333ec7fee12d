"""A node that does not answer is explained by its BMC: power, failed parts, critical events, or that it says nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

import pytest

from rackwright.bmc.interface import BmcHealth, Condition, LogEntry, Part, Power
from rackwright.errors import BmcError, SecretsError
from rackwright.model.bmc import Bmc
from rackwright.model.types import NodeRole, Platform
from rackwright.why import ask
from rackwright.why.ask import why
from rackwright.why.bmc import bmc_part
from tests.factories import make_cluster, make_node
from tests.unit.health.bases import SKUS
from tests.unit.why.test_why import OPTIONS, Shell, no_plan

BMC = Bmc(address=IPv4Address("10.77.1.11"), user="admin", password="bmc_password")
CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, options=OPTIONS),
    make_node(
        "gpu1", 11, NodeRole.WORKER, sku=SKUS["dgx-h100"].sku, platform=Platform.BARE_METAL, options=OPTIONS, bmc=BMC,
    ),
)  # fmt: skip
NODE = CLUSTER.by_name["gpu1"]
REFUSED = BmcError("The BMC of gpu1 (10.77.1.11) does not answer within 30 s.")
OLD = LogEntry(None, Condition.CRITICAL, "CPU 1 has an internal error (IERR).")
FAN = BmcHealth(Condition.CRITICAL, fans=(Part("Fan 3", Condition.CRITICAL, 0, "RPM"),))
SOUND = BmcHealth(Condition.OK, fans=(Part("Fan 3", Condition.OK, 9000, "RPM"),))


@pytest.fixture
def ue() -> LogEntry:
    """An uncorrectable memory error of an hour ago; a test may run long after this file was read."""
    when = datetime.now(UTC) - timedelta(hours=1)
    return LogEntry(when, Condition.CRITICAL, "Uncorrectable ECC", "Memory")


class Client:
    """A BMC with these answers; an error is raised."""

    def __init__(self, power=Power.ON, health=SOUND, log=()):
        self.answers = {"power": power, "health": health, "log": log}
        self.asked, self.closed = [], False

    def _answer(self, name):
        self.asked.append(name)
        if isinstance(self.answers[name], Exception):
            raise self.answers[name]
        return self.answers[name]

    def power(self):
        return self._answer("power")

    def health(self):
        return self._answer("health")

    def event_log(self, limit):
        return list(self._answer("log"))

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def no_journals(monkeypatch):
    monkeypatch.setattr(ask, "runs", list)


def explain(tmp_path, client, shell=None):
    shell = shell or Shell(dead=("gpu1",))
    return why(CLUSTER, NODE, tmp_path / "c.yaml", shell=shell, planner=no_plan, open_bmc=lambda node: client)


def part(found):
    return next(one for one in found.parts if one.name == "bmc")


def test_a_node_that_is_off(tmp_path):
    client = Client(Power.OFF)
    found = explain(tmp_path, client)
    assert part(found).lines == ("power is off", "no failed part, and no critical event in its log")
    assert found.next_step == f"it is off: `rackwright bmc power {tmp_path}/c.yaml on --limit gpu1`"
    assert client.closed
    names = [one.name for one in found.parts]
    assert names == ["scheduler", "health", "bmc", "declaration", "changes", "kernel"]


def test_failed_parts_and_critical_events(tmp_path, ue):
    found = explain(tmp_path, Client(health=FAN, log=(ue, OLD)))
    assert part(found).lines == (
        "power is on",
        "bmc-log-memory FAIL: Memory: Uncorrectable ECC, 1.0 h ago",
        "bmc-fans FAIL: Fan 3: critical, 0 RPM",
        f"logged {ue.when:%Y-%m-%d %H:%M:%S}: uncorrectable memory error: Uncorrectable ECC",
        "logged at an unknown time: processor error: CPU 1 has an internal error (IERR).",
    )
    assert found.next_step.startswith("rma: Replace the DIMM that the BMC's log names.")
    data = part(found).to_json()
    assert (data["power"], len(data["results"]), len(data["events"])) == ("on", 2, 2)


def test_one_that_is_off_after_a_memory_error_is_repaired_first(tmp_path, ue):
    assert explain(tmp_path, Client(Power.OFF, log=(ue,))).next_step.endswith(" on --limit gpu1`.")


def test_fans_of_a_node_that_is_off_may_stand_still(tmp_path):
    found = explain(tmp_path, Client(Power.OFF, health=FAN))
    assert "bmc-fans WARN: Fan 3: critical, 0 RPM, while the node is off" in part(found).lines


def test_a_lost_fan_explains_no_node_that_is_out_of_reach(tmp_path):
    assert (
        explain(tmp_path, Client(health=FAN)).next_step
        == "make the node reachable first: Cannot connect to gpu1."
    )


def test_a_bmc_that_does_not_answer_is_asked_once_and_named(tmp_path):
    client = Client(REFUSED)
    found = explain(tmp_path, client)
    assert part(found).unknown
    assert part(found).lines == (f"no answer from its BMC: {REFUSED.message}",)
    assert (client.asked, client.closed) == (["power"], True)
    assert found.next_step == "make the node reachable first: Cannot connect to gpu1."
    assert found.unknown


def test_one_answer_that_fails_leaves_the_others(tmp_path, ue):
    found = explain(tmp_path, Client(health=REFUSED, log=(ue,)))
    assert part(found).lines[:2] == (
        "power is on",
        "bmc-log-memory FAIL: Memory: Uncorrectable ECC, 1.0 h ago",
    )
    assert part(found).unread == (REFUSED.message,)
    assert not part(found).unknown
    none = explain(tmp_path, Client(health=REFUSED, log=REFUSED))
    assert part(none).lines == ("power is on",)
    assert part(none).unread == (REFUSED.message, REFUSED.message)


@pytest.mark.parametrize(
    "error", [SecretsError("There is no secrets store."), BmcError("Redfish needs sushy.")]
)
def test_a_missing_secrets_store_breaks_nothing(error):
    def raises():
        raise error

    found = bmc_part(NODE, raises)
    assert found is not None
    assert found.unknown
    assert found.lines == (f"its BMC was not queried: {error.message}",)


def test_without_a_store_the_real_opener_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = why(CLUSTER, NODE, tmp_path / "c.yaml", shell=Shell(dead=("gpu1",)), planner=no_plan)
    assert part(found).unknown
    assert part(found).lines[0].startswith("its BMC was not queried: ")


def test_a_node_that_answers_is_not_asked_through_its_bmc(tmp_path):
    client = Client()
    found = explain(tmp_path, client, Shell(state="IDLE"))
    assert "bmc" not in [one.name for one in found.parts]
    assert client.asked == []


def test_a_node_without_a_declared_bmc_has_no_such_part():
    assert bmc_part(CLUSTER.by_name["head1"], lambda: lambda node: Client()) is None


def test_what_a_bmc_says_is_printable_and_bounded(tmp_path):
    bad = LogEntry(datetime.now(UTC), Condition.CRITICAL, "Uncorrectable ECC \x1b[2J" + "x" * 10**5, "Memory")
    found = part(explain(tmp_path, Client(log=(bad,) * 50)))
    assert all("\x1b" not in line and len(line) <= 1001 for line in found.lines)
    assert len(found.lines) < 10
