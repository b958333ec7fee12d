"""A shell whose head behaves as nodes.py of the role ray does, and whose nodes' units do what systemd makes of them."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field

from rackwright.command import CommandResult


@dataclass
class FakeNode:
    """A worker: a raylet that is asked to drain ends once it has no work, and joins again once no record is left."""

    jobs: list[str] = field(default_factory=list)
    alive: bool = True
    draining: bool = False
    broken: bool = False


class FakeRay:
    """After `polls_until_free` lists of nodes their work ends."""

    def __init__(self, *names: str) -> None:
        self.nodes = {name: FakeNode() for name in names}
        self.drains: dict[str, dict[str, str]] = {}
        self.silent = False
        self.garbled: str | None = None
        self.polls_until_free = -1
        self.commands: list[tuple[str, str]] = []
        self.reply: str | Exception = ""
        """What a driver prints, or what becomes of the connection."""

    def run(self, node, command, *, stdin=None, timeout):
        self.commands.append((node, command))
        if command == "systemctl restart ray-worker.service":
            self.nodes[node].jobs.clear()
            self._settle()
            return CommandResult(command, 0, "", "")
        assert node == "head1"
        if command.startswith("pkill "):
            return CommandResult(command, 0, "", "")
        if command.startswith("{ env "):
            if isinstance(self.reply, Exception):
                raise self.reply
            return CommandResult(command, 0, self.reply, "")
        words = shlex.split(command)
        assert words[0] == "timeout"
        assert words[2:4] == ["/usr/lib/rackwright-ray/with-ray", "nodes.py"]
        if self.silent:
            return CommandResult(
                command, 1, "", "RpcError: Timed out while waiting for GCS to become available.\n"
            )
        return CommandResult(command, 0, getattr(self, f"_{words[4]}")(*words[5:]), "")

    def _list(self, *words):
        if self.garbled is not None:
            return self.garbled
        if self.polls_until_free == 0:
            for one in self.nodes.values():
                one.jobs.clear()
        self.polls_until_free -= 1
        self._settle()
        nodes = {name: self._described(name, one) for name, one in self.nodes.items()}
        nodes["head1"] = {"id": "h", "alive": True, "state": "IDLE", "head": True, "reason": ""}
        work = {
            f"id-{name}": [["task", "t1", "01", job] for job in one.jobs] for name, one in self.nodes.items()
        }
        answer = {
            "version": "2.60.0",
            "nodes": nodes,
            "drains": self.drains,
            "work": work if "work" in words else None,
        }
        return f"a library prints\n{json.dumps(answer)}\n"

    def _drain(self, name, reason, by):
        self.drains[name] = {"reason": reason, "by": by}
        self.nodes[name].draining = True
        self._settle()
        return ""

    def _resume(self, name):
        self.drains.pop(name, None)
        self._settle()
        return ""

    def _settle(self):
        for name, one in self.nodes.items():
            if one.broken:
                one.alive = False
            elif one.draining and not one.jobs:
                one.alive = name not in self.drains
                one.draining = name in self.drains

    def _described(self, name, one):
        state = "DEAD" if not one.alive else "DRAINING" if one.draining else "ACTIVE" if one.jobs else "IDLE"
        return {
            "id": f"id-{name}",
            "alive": one.alive,
            "state": state,
            "head": False,
            "reason": "" if one.alive else "missed heartbeats\nmore",
        }
