"""A shell whose head behaves as Slurm does: it parses the real command lines and keeps the cluster's state."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from rackwright.command import CommandResult
from rackwright.workload.slurm.output import parse_hostlist


@dataclass
class FakeNode:
    """A node of slurmctld's."""

    jobs: list[str] = field(default_factory=list)
    drained: bool = False
    down: bool = False
    reason: str = "none"
    user: str = "Unknown"
    gres: str = ""

    @property
    def words(self) -> list[str]:
        base = "DOWN" if self.down else "MIXED" if self.jobs else "IDLE"
        return [base, *(["DRAIN"] if self.drained else [])]

    @property
    def long(self) -> str:
        """sinfo's %T."""
        if self.drained:
            return "draining" if self.jobs else "drained"
        return "down*" if self.down else "mixed" if self.jobs else "idle"


class FakeSlurm:
    """After `polls_until_free` looks at the nodes their jobs end, after `silent_after` slurmctld is gone."""

    def __init__(self, *names: str) -> None:
        self.nodes = {name: FakeNode() for name in names}
        self.installed = True
        self.polls_until_free = self.silent_after = -1
        self.on_look = lambda: None
        self.silent = False
        self.steps: dict[str, list[str]] = {}
        self.reply: tuple[str, int | None] | BaseException = ("hello\n", 0)
        self.commands: list[str] = []

    def run(self, node, command, *, stdin=None, timeout):
        assert node == "head1"
        self.commands.append(command)
        words = shlex.split(command.removeprefix("{ ").partition("; echo")[0])
        if words[:1] == ["timeout"]:
            words = words[2:]
        if not self.installed:
            return CommandResult(command, 127, "", f"{words[0]}: command not found")
        if words == ["sinfo", "--version"]:
            return CommandResult(command, 0, "slurm-wlm 24.11.5\n", "")
        if self.silent:
            return CommandResult(command, 1, "", "Unable to contact slurm controller (connect failure)")
        if "sacct" in words or words[-4:-2] == ["show", "job"]:
            return CommandResult(command, 1, "", "slurm_load_jobs error: Invalid job id specified")
        if words[0] == "env":
            return self._srun(command, words[words.index("srun") :])
        return CommandResult(command, *getattr(self, f"_{words[0]}")(words[1:]))

    def _sinfo(self, words):
        assert words == ["-N", "-h", "-o", "%R|%N|%T|%u|%H|%E"]
        self._clock()
        rows = [
            f"{partition}|{name}|{node.long}|{node.user}|2026-11-22T10:00:00|{node.reason}\n"
            for name, node in self.nodes.items()
            for partition in ("main", "long")
        ]
        return 0, "".join(rows), ""

    def _clock(self):
        self.on_look()
        if self.polls_until_free == 0:
            for node in self.nodes.values():
                node.jobs.clear()
        self.polls_until_free -= 1
        self.silent = self.silent or self.silent_after == 0
        self.silent_after -= 1

    def _scontrol(self, words):
        if words[:2] == ["show", "node"]:
            node = self.nodes.get(words[2])
            if node is None:
                return 1, "", f"Node {words[2]} not found"
            reason = f"Reason={node.reason} [{node.user}@2026-11-22T10:00:00]" if node.drained else ""
            return 0, f"NodeName={words[2]} State={'+'.join(node.words)} {reason}\n", ""
        assert words[0] == "update"
        told = dict(word.split("=", 1) for word in words[1:])
        for name in parse_hostlist(told["NodeName"]):
            if name not in self.nodes:
                return 1, "", "slurm_update error: Invalid node name specified"
            node = self.nodes[name]
            if told["State"] == "RESUME":
                node.drained, node.down, node.reason, node.user = False, False, "none", "Unknown"
            else:
                node.drained, node.reason, node.user = True, told["Reason"], "root"
        return 0, "", ""

    def _squeue(self, words):
        asked = dict(word.removeprefix("--").partition("=")[::2] for word in words)
        mark, _, fields = asked["format"].partition("|")
        if fields == "%i|%u|%N|%j":
            return (
                0,
                "".join(
                    f"{mark}|{number}|ada|{name}|{job}\n"
                    for name, node in self.nodes.items()
                    for number, job in enumerate(node.jobs, self._first(name))
                ),
                "",
            )
        assert (asked["states"], fields) == ("R,CG,S", "%i|%u|%j")
        node = self.nodes.get(asked["nodelist"])
        if node is None:
            return 1, "", "slurm_load_jobs error: Invalid node name specified"
        first = self._first(asked["nodelist"])
        return 0, "".join(f"{mark}|{number}|ada|{job}\n" for number, job in enumerate(node.jobs, first)), ""

    def _first(self, name):
        """The number of a node's first job."""
        return 7 + 10 * list(self.nodes).index(name)

    def _scancel(self, words):
        if words[0] == "--quiet":
            for name, node in self.nodes.items():
                numbers = enumerate(node.jobs, self._first(name))
                node.jobs = [job for number, job in numbers if str(number) not in words[1:]]
            return 0, "", ""
        asked = dict(word.removeprefix("--").partition("=")[::2] for word in words)
        assert asked["user"] == "root"
        self.steps.pop(asked["jobname"], None)
        return 0, "", ""

    def _srun(self, command, words):
        asked = dict(re.findall(r"^--([a-z-]+)=(.*)$", "\n".join(words), re.MULTILINE))
        nodes = [self.nodes.get(name) for name in parse_hostlist(asked["nodelist"])]
        error = None
        if any(node is None or node.drained or node.down for node in nodes):
            error = "srun: error: Unable to allocate resources: Requested nodes are busy"
        elif any(not set(filter(None, [asked.get("gres")])) <= {node.gres} for node in nodes):
            error = "srun: error: Unable to allocate resources: Invalid generic resource (gres) specification"
        self.steps[asked["job-name"]] = words
        if error is None and isinstance(self.reply, BaseException):
            raise self.reply
        text, status = (error + "\n", 1) if error else self.reply
        if status is None:  # the connection's time limit
            return CommandResult(command, 124, text, "")
        del self.steps[asked["job-name"]]
        return CommandResult(command, 0, f"{text}# srun exit status {status}\n", "")
