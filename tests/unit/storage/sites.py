"""Small clusters with a filesystem, and what their nodes answer."""

import json
import re
import shlex
from datetime import date
from pathlib import Path

from ClusterShell.NodeSet import NodeSet

from rackwright.command import CommandResult
from rackwright.model.sku import Source
from rackwright.model.storage import Filesystem, Server, StorageFloor
from rackwright.model.storage_bench import StorageBench
from rackwright.model.types import NodeRole
from rackwright.roles.storage_bench.options import StorageBenchOptions
from rackwright.storage.programs.children import MARK
from rackwright.workload.slurm.output import SINFO
from tests.factories import RunsSlurm, make_cluster, make_node

RECORDED = Path(__file__).parent / "recorded"
SIZE, JOBS = 64, 2
"""MiB of a job and jobs, as the recorded outputs of fio have them."""


def recorded(name):
    return (RECORDED / name).read_text()


def floor(**rates):
    return StorageFloor(source=Source(text="the vendor's sizing", read=date(2026, 11, 26)), **rates)


def filesystem(**changes):
    bench = {"size_mib": SIZE, "block_kib": 1024, "jobs": JOBS, "files": 100} | changes.pop("bench", {})
    fields = {
        "name": "data",
        "kind": "nfs",
        "purpose": "data",
        "path": "/data",
        "servers": (Server(name="10.9.0.2", address="10.9.0.2", node=False),),
        "export": "/srv/data",
        "nodes": ("w1", "w2", "w3"),
        "bench": StorageBench.model_validate(bench),
    }
    return Filesystem(**{**fields, **changes})


def cluster_of(*filesystems, role=True, workers=3):
    filesystems = filesystems or (filesystem(),)
    options = {"slurm": RunsSlurm()} | ({"storage_bench": StorageBenchOptions()} if role else {})
    nodes = [
        make_node("head1", 10, NodeRole.HEAD, options={"slurm": RunsSlurm()}),
        *(
            make_node(f"w{n}", 20 + n, options=options, filesystems=filesystems)
            for n in range(1, workers + 1)
        ),
    ]
    return make_cluster(*nodes, storage={one.name: one for one in filesystems})


def line(document):
    return MARK + json.dumps(document) + "\n"


def alone(write="fio-3.33-write.txt", read="fio-3.33-read.txt", write_exit=0, read_exit=0):
    """What a node alone answers."""
    exits = {"write": write_exit, "read": read_exit}
    given = {
        kind: {"exit_status": exits[kind], "output": recorded(name)}
        for kind, name in (("write", write), ("read", read))
        if name is not None
    }
    return line(given)


def together(nodes, seconds=0.5, size=SIZE, files=100, **changes):
    """What all nodes together answer: each phase takes every node so long."""
    bytes_of_node = size * 2**20 * JOBS
    amounts = dict.fromkeys(("write", "read", "compare"), bytes_of_node) | {"clean": JOBS}
    phases = [
        {"phase": phase, "nodes": [[amounts.get(phase, files * JOBS), seconds]] * nodes}
        for phase in ("write", "read", "compare", "create", "stat", "remove", "clean")
    ]
    return line({"phases": phases, "errors": [], "errors_count": 0, "direct": True} | changes)


LOOKED = {
    "mounted": ["10.9.0.2:/srv/data", "nfs4"],
    "free_bytes": 10**12,
    "size_bytes": 2 * 10**12,
    "free_files": 10**8,
    "files": 2 * 10**8,
}


class Head:
    """Answers as nodes with a filesystem and a head with Slurm would."""

    def __init__(self, **states):
        self.states = states
        self.looks, self.alone, self.places = {}, {}, []
        self.together = None
        self.checkpoint = {
            mode: recorded(f"checkpoint-2.13-{mode}.txt") for mode in ("reference", "break", "resume")
        }
        self.made = {"removed": []}
        self.removed = {"removed": []}
        self.jobs = []
        self.names = set()
        self.raises = None

    def run(self, node, command, *, stdin=None, timeout):
        def done(text, status=0):
            return CommandResult(command, status, text, "")

        if command == "sinfo --version":
            return done("slurm 24.11.5\n")
        if command == shlex.join(SINFO):
            states = dict.fromkeys(("w1", "w2", "w3"), "idle") | self.states
            return done(
                "".join(f"main|{name}|{state}|Unknown|Unknown|none\n" for name, state in states.items())
            )
        if command.startswith("scancel"):
            return done("")
        if stdin is not None:
            asked = json.loads(shlex.split(command)[-1])
            self.places.append((node, asked))
            answers = {"look": self.looks.get(node, LOOKED), "make": self.made, "remove": self.removed}
            return done(line(answers[asked["do"]]))
        return done(self._srun(command))

    def _srun(self, command):
        if self.raises is not None:
            raise self.raises
        nodes = sorted(NodeSet(re.search(r"--nodelist='?([^' ]+)", command)[1]))
        asked = json.loads(shlex.split(command.removeprefix("{ ").split('; echo "# srun')[0])[-1])
        self.jobs.append((tuple(nodes), asked))
        self.names.add(re.search(r"--job-name='?(rackwright-[a-z]+)-", command)[1])
        if "mode" in asked:
            text = self.checkpoint[asked["mode"]]
        elif "nodes" in asked:
            text = self.together if self.together is not None else together(len(nodes))
        else:
            given = self.alone.get(nodes[0], alone())
            text = given.pop(0) if isinstance(given, list) else given
        return f"{text}# srun exit status 0\n"
