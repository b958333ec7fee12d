"""Modules that behave as Ray, torch and cupy do for the driver of a burn-in: actors are threads of one process.

python ray_in_threads.py PROGRAM    runs a program with them; FAKE_RAY is JSON: nodes, lacking, busy, corrupt
"""

from __future__ import annotations

import json
import os
import sys
import threading
import types
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for

import numpy

SETTINGS = json.loads(os.environ["FAKE_RAY"])
GROUPS: dict[str, Group] = {}
LOCK = threading.Lock()


class Group:
    """Members that meet at a barrier and reduce into each other's arrays."""

    def __init__(self, size: int) -> None:
        self.size, self.barrier, self.parts = size, threading.Barrier(size), {}

    def reduce(self, rank, values, op):
        self.parts[rank] = values.copy()
        self.barrier.wait(30)
        stacked = [self.parts[one] for one in range(self.size)]
        values[:] = numpy.maximum.reduce(stacked) if op == "max" else numpy.add.reduce(stacked)
        if SETTINGS.get("corrupt") and op is None and len(values) > 1000 and rank == 1:
            values[7] += 1
        self.barrier.wait(30)


MEMBER = threading.local()


def init_collective_group(size, rank, backend, name, gloo_timeout):
    assert backend in ("gloo", "nccl")
    with LOCK:
        group = GROUPS.setdefault(name, Group(size))
    MEMBER.group, MEMBER.rank = group, rank
    group.barrier.wait(30)


def allreduce(values, name, op=None):
    MEMBER.group.reduce(MEMBER.rank, values, op)


def barrier(name):
    MEMBER.group.barrier.wait(30)


class Method:
    def __init__(self, actor, name):
        self._actor, self._name = actor, name

    def remote(self, *args):
        actor = self._actor
        if actor.node in SETTINGS.get("busy", ()):
            return Future()
        return actor.thread.submit(lambda: getattr(actor.made(), self._name)(*args))


class Actor:
    """One thread, in which its object is made and its methods run in order."""

    def __init__(self, cls, node):
        self.node, self.thread, self._cls, self._object = node, ThreadPoolExecutor(1), cls, None

    def made(self):
        self._object = self._object or self._cls()
        return self._object

    def __getattr__(self, name):
        return Method(self, name)


class Remote:
    def __init__(self, cls, node=None):
        self._cls, self._node = cls, node

    def options(self, *, scheduling_strategy, num_cpus, num_gpus, runtime_env=None):
        print("#options", json.dumps([scheduling_strategy, num_cpus, num_gpus, runtime_env or {}]))
        return Remote(self._cls, scheduling_strategy.removeprefix("id-"))

    def remote(self):
        return Actor(self._cls, self._node)


def wait(asked, num_returns, timeout):
    done, late = wait_for(asked, timeout=timeout)
    return list(done), list(late)


def get(asked, timeout=60):
    return [get(one, timeout) for one in asked] if isinstance(asked, list) else asked.result(timeout)


def nodes():
    return [
        {"NodeName": name, "NodeID": f"id-{name}", "Alive": True, "Resources": {"CPU": 8.0, "GPU": 4.0}}
        for name in SETTINGS["nodes"]
    ]


def install():
    """Into sys.modules."""
    made = {
        "ray": {
            "init": lambda **_: None,
            "nodes": nodes,
            "wait": wait,
            "get": get,
            "remote": Remote,
            "__version__": "2.60.0",
        },
        "ray.util": {},
        "ray.util.collective": {
            "init_collective_group": init_collective_group,
            "allreduce": allreduce,
            "barrier": barrier,
        },
        "ray.util.collective.types": {"ReduceOp": types.SimpleNamespace(MAX="max")},
        "ray.util.scheduling_strategies": {"NodeAffinitySchedulingStrategy": lambda node, soft: node},
        "torch": {"__version__": "2.13.0"},
        "cupy": {
            **vars(numpy),
            "__version__": "14.2.0",
            "cuda": types.SimpleNamespace(Device=lambda: types.SimpleNamespace(synchronize=lambda: None)),
        },
    }
    for name, content in made.items():
        module = types.ModuleType(name)
        module.__dict__.update({key: one for key, one in content.items() if key != "__name__"})
        sys.modules[name] = None if name in SETTINGS.get("lacking", ()) else module  # type: ignore[assignment]
    sys.modules["ray"].util = sys.modules["ray.util"]
    sys.modules["ray.util"].collective = sys.modules["ray.util.collective"]


if __name__ == "__main__":
    install()
    try:
        exec(compile(sys.argv[1], "driver", "exec"), {"__name__": "__main__"})  # noqa: S102 - the driver's own text
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(
            1 if isinstance(ended.code, str) else ended.code or 0
        )  # threads of late ranks wait for nothing
