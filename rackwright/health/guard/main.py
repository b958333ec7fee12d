"""The program on a node.

    health-check              as Slurm's HealthCheckProgram, or by a timer of the node: one pass, which counts
    health-check prolog       before a job: exit status 3 keeps it away from this node
    health-check epilog       after a job: a pass that drains but does not count as a clean one
    health-check show         print the verdict; changes nothing. 0 clean, 3 failed, 4 UNKNOWN

A prolog that fails makes Slurm requeue the job and drain the node. The health check drains it first, with a reason
that names the fault, so that it may lift the drain later. If too many nodes are drained already, the prolog lets jobs
start, because refusing them would drain the node after all. Any exit status other than 3 lets the job start too: a
program that crashes proves nothing about the node.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from contextlib import suppress
from dataclasses import asdict, fields, replace
from typing import Any

from rackwright.health.expected import Expected
from rackwright.health.guard import places
from rackwright.health.guard.clock import boot_of, put_right, resume_ahead
from rackwright.health.guard.found import Found, Outcome, found_in
from rackwright.health.guard.look import Kept, Looked, Looker, command_lines
from rackwright.health.guard.memory import Memory, Policy, counted, excused, learned, uncounted
from rackwright.health.guard.node_files import NodeFiles, log
from rackwright.health.guard.policy import (
    UNKNOWN_FOR,
    Decision,
    GuardAction,
    against,
    concerns_manager,
    decide,
    not_asked,
    topic,
    unknown_alert,
)
from rackwright.health.guard.remember import keep_readings, keep_verdict, observe, observed
from rackwright.health.probe.source import Source
from rackwright.health.registry import CHECKS
from rackwright.health.verdict import HealthResult
from rackwright.status import Status
from rackwright.workload.on_node import ManagerOnNode, manager_on
from rackwright.workload.states import NoAnswer

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Slurm runs its programs without one."""
EXIT = {Outcome.CLEAN: 0, Outcome.BAD: 3, Outcome.UNKNOWN: 4}
REFUSED = 3


class Guard:
    """This node: its two files, its memory and its findings. Tests set `root` in place of /."""

    def __init__(
        self, root: str = "", manager: ManagerOnNode | None = None, source: Source | None = None
    ) -> None:
        self._files = NodeFiles(root)
        self._source = source or Source()
        self.why_blind: str | None = None
        self.policy, self.expected, self._declared = Policy(), None, {}
        try:
            self.policy = _policy(self._files.mapping(places.POLICY))
            self._declared = self._files.mapping(places.EXPECTED)
            self.expected = Expected.from_json(self._declared)
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.why_blind = f"what this node should be cannot be read: {type(error).__name__}: {error}"
        name = self.expected.node if self.expected is not None else None
        self.node = name or os.environ.get("SLURMD_NODENAME") or os.uname().nodename.split(".")[0]
        declared = self.expected.manager if self.expected is not None else None
        self.manager = manager or manager_on(self.node, declared)
        self._looker: Looker | None = None

    def off(self) -> dict[str, str]:
        """The kill switches of this node: the reason by check name, or `all`."""
        return self._files.switches()

    def look(self, mode: str, memory: Memory, back: float = 0.0) -> Looked:
        """Look at the node and judge it. `back`: seconds by which the clock was set back since the last resume."""
        if self.expected is None:
            claim, why = "The node can read its own declaration", self.why_blind or ""
            blind = HealthResult(self.node, "declaration", claim, "os", Status.UNKNOWN, why)
            return Looked((blind,), {}, None, queried=False)
        off = self.off()
        if self._looker is None:
            expected = replace(self.expected, disabled={**self.expected.disabled, **off})
            kept = Kept.from_json(self._files.maybe(places.GPUS))
            self._looker = Looker(self._source, self.policy, expected, kept)
        would = observed(self._files)
        known = memory.drained or (would is not None and would.current is not None)
        looked = self._looker.look(mode, memory.excused_until, self._busy, confirm=not known, set_back=back)
        strange = sorted(name for name in off if name not in CHECKS and name != "all")
        return replace(looked, results=(*looked.results, *(_no_check(self.node, one) for one in strange)))

    def shown(self) -> Looked:
        """A look that changes nothing."""
        kept = self.memory()
        return self.look("show", self._put_right(kept), resume_ahead(kept, self._source.now()))

    def memory(self) -> Memory:
        """The saved memory; empty if it was lost or damaged, which only slows decisions down."""
        try:
            return Memory.from_json(self._files.mapping(places.MEMORY))
        except (OSError, ValueError, TypeError, AttributeError):
            return Memory()

    def pass_(self, mode: str, began: float) -> tuple[Found, Decision]:
        """Look, decide, act, remember. `mode`: check, prolog or epilog."""
        kept = self.memory()
        early = self._excused(kept)
        looked = self.look(mode, early, resume_ahead(kept, self._source.now()))
        found = found_in(looked.results)
        if mode == "prolog" and found.outcome is Outcome.UNKNOWN and self.policy.unknown == "drain":
            looked = self.look("again", early)  # with a longer time limit: the node may be busy
            found = found_in(looked.results)
        with self._files.alone():
            memory = self._put_right(self.memory())
            resumed = kept.drained and not early.drained
            if resumed and early.excused_until > memory.excused_until:
                memory = replace(
                    memory,
                    drained=False,
                    excused_until=early.excused_until,
                    excused_boot=early.excused_boot,
                    excused_uptime=early.excused_uptime,
                    alert=None,
                )
            counts = self._counted(mode, memory, looked, found)
            decision = self._decide(counts, found)
            alert = decision.memory.alert or unknown_alert(self.policy, counts, found)
            if mode != "check" and alert is None and (memory.alert or "").startswith(UNKNOWN_FOR):
                alert = memory.alert  # only a counting pass ends the streak
            decision = replace(decision, memory=replace(decision.memory, alert=alert))
            if alert is not None and topic(alert) != topic(memory.alert):
                log(f"alert: {alert}", urgent=True)
            elif decision.action is not GuardAction.KEEP:
                log(f"{decision.action.value}: {decision.why}")
            self._remember(mode, looked, found, decision, began)
        return found, decision

    def refuses(self, mode: str, found: Found, decision: Decision) -> bool:
        """Whether to refuse the job that is about to start."""
        bad = against(self.policy, decision.memory, found) is not None
        return mode == "prolog" and bad and self.policy.act and not decision.past_share

    def _busy(self) -> bool:
        return self.manager.job_among(command_lines(self._source))

    def _counted(self, mode: str, memory: Memory, looked: Looked, found: Found) -> Memory:
        memory = learned(memory, looked.results, self._basis(memory))
        if mode == "check":
            return counted(memory, found)
        memory = uncounted(memory, found)
        if mode == "prolog" and found.outcome is Outcome.UNKNOWN and self.policy.unknown == "drain":
            return replace(memory, unknown=dict.fromkeys(found.checks, self.policy.unknown_passes))
        return memory

    def _basis(self, memory: Memory) -> str:
        """What the checks were judged with. If the driver does not answer, the previous one is assumed."""
        declared = zlib.crc32(json.dumps(self._declared, sort_keys=True).encode())  # hashlib loads for 5 ms
        modules = os.path.abspath(__file__).rpartition("/rackwright/")[0].rpartition("/")[2]
        version = (self._source.maybe("/proc/driver/nvidia/version") or "").partition("\n")[0]
        before = memory.basis.split("|")[3:]
        driver = version or (before[0] if before else "")
        return "|".join((f"{declared:08x}", modules, self._source.kernel_release(), driver.replace("|", " ")))

    def _excused(self, memory: Memory) -> Memory:
        """Runs before the look; otherwise a job that starts right after a resume would meet the old kernel errors."""
        memory = self._put_right(memory)
        if memory.drained:
            with suppress(NoAnswer):
                return excused(memory, self.manager.state(), self._source.now(), *boot_of(self._source))
        return memory

    def _put_right(self, memory: Memory) -> Memory:
        return put_right(memory, self._source.now(), *boot_of(self._source))

    def _decide(self, memory: Memory, found: Found) -> Decision:
        """Carry out the decision; if the workload manager does not answer, change nothing."""
        if not concerns_manager(self.policy, memory, found):
            return not_asked(self.policy, memory, found)
        bad = against(self.policy, memory, found)
        try:
            node = self.manager.state()
            fresh = self.policy.act and bad is not None and not node.drained
            shares = self.manager.shares() if fresh else []
            decision = decide(self.policy, memory, found, node, shares, self._source.now())
            if (
                decision.action is GuardAction.DRAIN
            ):  # if killed right after this, the next pass could not know that the drain is its own
                self._memorize(replace(memory, confirmed=False))
            reboots = decision.action is GuardAction.REBOOT
            if reboots and not self._memorize(decision.memory):  # otherwise it would never count
                alert = f"not rebooted: the reboot could not be recorded; {found.reason}"
                return Decision(GuardAction.KEEP, replace(memory, alert=alert), alert)
            self._act(decision)
            if decision.action is GuardAction.DRAIN and self.manager.one_too_many(self.policy.drain_percent):
                self.manager.resume()
                why = "drained and resumed at once: too many other nodes were drained at the same time"
                alert = f"{why}; {found.reason}"
                memory = replace(memory, drained=False, alert=alert)
                decision = Decision(GuardAction.KEEP, memory, alert, past_share=True)
        except NoAnswer as error:
            reason = bad.reason if bad is not None else "nothing to report to it"
            memory = replace(memory, alert=f"{error}; {reason}")
            return Decision(GuardAction.KEEP, memory, f"{error}; {reason}")
        return decision

    def _act(self, decision: Decision) -> None:
        if decision.action is GuardAction.DRAIN:
            self.manager.drain(decision.reason)
        elif decision.action is GuardAction.REASON:
            self.manager.explain(decision.reason)
        elif decision.action is GuardAction.RESUME:
            self.manager.resume()
        elif decision.action is GuardAction.REBOOT:
            self.manager.reboot(decision.reason)

    def _remember(self, mode: str, looked: Looked, found: Found, decision: Decision, began: float) -> None:
        self._memorize(decision.memory)
        at = self._source.now()
        would = observe(self._files, self.policy, found, decision.memory, at)
        kept = self._looker.kept if self._looker is not None else None
        keep_readings(self._files, mode, looked, kept)
        more = {
            "node": self.node,
            "at": round(at, 3),
            "mode": mode,
            "why": self.why_blind or decision.why,
            "would_drain": asdict(would.current) if would.current is not None else None,
            "disabled": self.off(),
            "seconds": round(time.monotonic() - began, 3),
        }
        keep_verdict(self._files, self.policy, looked, found, decision, more)

    def _memorize(self, memory: Memory) -> bool:
        return self._files.keep(places.MEMORY, json.dumps(memory.to_json()))


def _policy(data: dict[str, Any]) -> Policy:
    known = {field.name for field in fields(Policy)}
    return Policy(**{name: value for name, value in data.items() if name in known})


def _no_check(node: str, name: str) -> HealthResult:
    """A misspelt kill switch disables nothing and is reported."""
    evidence = f"{places.DISABLED}/{name}: unknown health check {name}"
    return HealthResult(node, "kill-switch", "Every kill switch names a check", "os", Status.WARN, evidence)


def main(arguments: list[str]) -> None:
    """Run one mode; see the top of this file."""
    began = time.monotonic()
    os.environ["PATH"] = PATH
    mode = arguments[0] if arguments else "check"
    if mode not in ("check", "prolog", "epilog", "show"):
        sys.stderr.write("usage: health-check [prolog|epilog|show]\n")
        leave(64)
    guard = Guard()
    if mode == "show":
        results = guard.shown().results
        found = found_in(results)
        verdict = {"node": guard.node, "outcome": found.outcome.value, "why": guard.why_blind}
        sys.stdout.write(json.dumps({**verdict, "results": [one.to_json() for one in results]}) + "\n")
        leave(EXIT[found.outcome])
    if "all" in guard.off():
        log(f"switched off {guard.off()['all']}")
        leave(0)
    found, decision = guard.pass_(mode, began)
    if guard.refuses(mode, found, decision):
        sys.stderr.write(found.reason + "\n")
        leave(REFUSED)
    leave(0)


def leave(status: int) -> None:
    """Exit at once: a probe thread that waits on a dead filesystem must not block the exit."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
