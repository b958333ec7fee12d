"""From what a check function does to a result: the only place that decides what counts as what."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from rackwright.boundary import printable_lines
from rackwright.claims.check import (
    CheckContext,
    CheckResult,
    Failed,
    NotInScope,
    TestinfraHost,
    Undetermined,
    Warned,
)
from rackwright.errors import ConnectionFailed, RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.platforms import why_node_lacks
from rackwright.status import Status
from rackwright.verify.ahead import asked_by
from rackwright.verify.backend import time_limit
from rackwright.verify.selection import PlannedCheck

EVIDENCE_MAX_CHARACTERS = 2000
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 3.0
_OWN_SETTLE_SECONDS = 15.0


def out_of_scope(planned: PlannedCheck) -> CheckResult | None:
    """The result of a check whose node's declared platform lacks what it needs, else None."""
    reasons = [why_node_lacks(planned.node, need) for need in sorted(planned.check.needs)]
    lacking = [reason for reason in reasons if reason is not None]
    return result(planned, Status.OUT_OF_SCOPE, "; ".join(lacking)) if lacking else None


@dataclass(frozen=True)
class Patience:
    """How long claims may take to come true: counted from `since`, on time.monotonic's clock."""

    since: float
    stop: threading.Event
    """Ends all waiting (Ctrl-C)."""

    def deadline(self, settle_seconds: float, begun: float) -> float:
        """`settle_seconds` is time after an apply, and that was over when the run began; a check
        that starts late still gets some time, for what the check before it stirred up."""
        return max(self.since + settle_seconds, begun + min(settle_seconds, _OWN_SETTLE_SECONDS))


def ask(
    planned: PlannedCheck,
    cluster: Cluster,
    hosts: Callable[[str], TestinfraHost],
    patience: Patience,
) -> CheckResult:
    """Ask a check; repeatedly, within its `settle_seconds`, while the claim does not hold.

    A node that cannot be reached is not waited for.
    """
    check = planned.check
    begun = time.monotonic()
    deadline = patience.deadline(check.settle_seconds, begun)
    pause, first = _FIRST_PAUSE_SECONDS, True
    while True:
        with asked_by(planned, first=first):
            status, evidence, settled = _once(planned, cluster, hosts)
        first = False
        now = time.monotonic()
        waited = now - begun
        if settled or now + pause > deadline:
            if check.settle_seconds and not settled:
                evidence += f" (still so after {waited:.0f} s)"
            return result(planned, status, evidence, waited)
        if patience.stop.wait(pause):
            return result(planned, Status.UNKNOWN, "the run was stopped", waited)
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)


def _once(
    planned: PlannedCheck, cluster: Cluster, hosts: Callable[[str], TestinfraHost]
) -> tuple[Status, str, bool]:
    """Status, evidence, and whether asking again is of no use."""
    try:
        context = CheckContext(cluster, planned.node, planned.options, hosts(planned.node.name), on=hosts)
        with time_limit(planned.check.timeout_seconds * cluster.ssh.time_factor):
            return Status.PASS, planned.check.function(context) or "", True
    except Warned as error:
        return Status.WARN, str(error), True
    except NotInScope as error:
        return Status.OUT_OF_SCOPE, str(error), True
    except AssertionError as error:
        return *judge_assertion(error), False
    except ConnectionFailed as error:
        return Status.UNKNOWN, error.message, True
    except (Undetermined, RackwrightError) as error:
        return Status.UNKNOWN, str(error) or "the check was inconclusive", False
    except Exception as error:  # noqa: BLE001 - after any error the claim was not examined
        return Status.UNKNOWN, f"{type(error).__name__}: {error}", False


def judge_assertion(error: AssertionError) -> tuple[Status, str]:
    """Status and evidence of a claim found false; or of an assertion inside testinfra, which means its tool did not work."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    origin = str(frames[-1].f_globals.get("__name__", "")) if frames else ""
    if origin.split(".")[0] == "testinfra" and not isinstance(error, Failed):
        return Status.UNKNOWN, f"testinfra could not find out: {error}"
    line = traceback.extract_tb(error.__traceback__)[-1].line if frames else None
    return Status.FAIL, str(error) or f"does not hold: {line or 'assertion without a message'}"


def result(planned: PlannedCheck, status: Status, evidence: str, seconds: float = 0.0) -> CheckResult:
    """A result with its evidence made fit to print and store."""
    return CheckResult(
        role=planned.role,
        check=planned.check.name,
        node=planned.node.name,
        status=status,
        evidence=tidy(evidence),
        seconds=round(seconds, 3),
    )


def tidy(text: str) -> str:
    """Printable, bounded: evidence ends up in terminals, XML and HTML."""
    whole = str(text).strip()
    shown = printable_lines(whole[:EVIDENCE_MAX_CHARACTERS])[:EVIDENCE_MAX_CHARACTERS]
    if len(whole) <= EVIDENCE_MAX_CHARACTERS:
        return shown
    return f"{shown} ... ({len(whole) - EVIDENCE_MAX_CHARACTERS} more characters)"
