"""A machine in memory with the installed health check: its disk, its hardware, its Slurm."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace

from rackwright.health.guard import places
from rackwright.health.guard.main import Guard
from rackwright.health.guard.memory import Policy
from rackwright.health.probe.source import Source
from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.states import HEALTH_PREFIX, NoAnswer
from tests.unit.health.bases import BASES
from tests.unit.health.fake_node import HANGS, NOW
from tests.unit.health.faults import drop_gpu

FULL = BASES["full"]
EXPECTED = replace(FULL.expected, node="gpu001")


class SlurmInMemory(SlurmOnNode):
    """One partition of ten nodes; `others` are drained by health checks already."""

    settle_seconds = 0.0

    def __init__(self, others=0):
        super().__init__("gpu001", self.answer)
        self.words, self.reason, self.by, self.asked = {"IDLE"}, "none", "", []
        self.others, self.silent = others, False

    def answer(self, command):
        self.asked.append(command)
        if self.silent:
            raise NoAnswer("`scontrol` gave no answer within 15 s")
        if command[0] == "sinfo":
            rows = [("gpu001", "drained" if "DRAIN" in self.words else "idle", self.reason)]
            rows += [(f"gpu{n:03}", "drained", HEALTH_PREFIX + "x") for n in range(2, 2 + self.others)]
            rows += [(f"gpu{n:03}", "idle", "none") for n in range(2 + self.others, 11)]
            return "".join(f"main|{name}|{state}|root|2026|{reason}\n" for name, state, reason in rows)
        if command[1] == "show":
            return f"NodeName=gpu001 State={'+'.join(sorted(self.words))} Reason={self.reason} [{self.by or 'root@x'}]\n"
        told = dict(word.split("=", 1) for word in command[2:])
        if told.get("State") == "DRAIN":
            self.words.add("DRAIN")
        if told.get("State") == "RESUME":
            self.words.discard("DRAIN")
        self.reason = told.get("Reason", self.reason if "DRAIN" in self.words else "none")
        return ""

    def human(self, *, drain):
        self.words, self.reason, self.by = (
            ({"IDLE", "DRAIN"}, "a fan", "ada@x") if drain else ({"IDLE"}, "none", "")
        )


class OnNode(Source):
    """A node in memory with a clock, the files of its health check, and perhaps a job."""

    def __init__(self, root, node):
        super().__init__()
        self.root, self.node, self.clock, self.job, self.asked = root, node, NOW, False, []

    def now(self):
        return self.clock

    def elapsed(self):
        return 0.0

    def data(self, path, offset, size):
        if path.startswith(places.STATE):
            return super().data(str(self.root) + path, offset, size)
        if path == "/proc/4711/cmdline":
            return b"slurmstepd: [614.0]\0" if self.job else b"/usr/sbin/slurmstepd\0infinity\0"
        return self.node.data(path, offset, size)

    def exists(self, path):
        return (
            super().exists(str(self.root) + path) if path.startswith(places.STATE) else self.node.exists(path)
        )

    def start(self, arguments, seconds):
        command = " ".join(arguments)
        self.asked.append(command)
        if command.endswith("-n 1 -o cat"):
            return 0, "a line of this boot", ""
        if "--since=@" not in command:
            return self.node.start(arguments, seconds)
        key = next(one for one in self.node.commands if "--since=@" in one)
        since = float(command.rpartition("@")[2])
        status, out, err = self.node.start(key.split(" "), seconds)
        return status, "".join(line for line in out.splitlines(True) if _at(line) >= since), err

    def names(self, path):
        return self.node.names(path)

    def target(self, path):
        return self.node.target(path)

    def modified(self, path):
        return self.node.modified(path)

    def kernel_release(self):
        return self.node.kernel_release()

    def architecture(self):
        return self.node.architecture()

    def node_name(self):
        return self.node.node_name()

    def addresses_of(self, name):
        return self.node.addresses_of(name)


class Machine:
    """A node's disk, its hardware, its Slurm."""

    def __init__(self, root, policy=None, others=0):
        self.root, self.slurm, self.source = root, SlurmInMemory(others), OnNode(root, FULL.node)
        for folder in (places.DISABLED, places.STATE, places.METRICS_FOLDER):
            (root / folder.strip("/")).mkdir(parents=True)
        self.put(places.EXPECTED, json.dumps(EXPECTED.to_json()))
        self.wants(policy or Policy(act=True))

    def wants(self, policy):
        patient = {"probe_seconds": 60, "prolog_seconds": 60}  # the test machine may be busy
        self.put(places.POLICY, json.dumps({**asdict(policy), **patient}))

    def put(self, path, text):
        (self.root / path.strip("/")).write_text(text)

    def read(self, path):
        return json.loads((self.root / path.strip("/")).read_text())

    def metrics(self):
        return (self.root / places.METRICS.strip("/")).read_text()

    def run(self, mode="check"):
        """One pass; whether a job would be refused."""
        guard = Guard(str(self.root), self.slurm, self.source)
        found, decision = guard.pass_(mode, time.monotonic())
        return guard.refuses(mode, found, decision)

    def later(self, seconds):
        self.source.clock += seconds

    def breaks(self, mutate=None):
        self.source.node = FULL.node.with_fault(mutate or drop_gpu(3))

    def heals(self):
        self.source.node = FULL.node


def silence(node):
    node.commands["nvidia-smi -q -x"] = HANGS


def _at(line):
    return int(json.loads(line)["__REALTIME_TIMESTAMP"]) / 1e6
