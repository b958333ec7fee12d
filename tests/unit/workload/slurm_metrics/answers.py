"""Slurm as the collector asks it: recorded answers, answers of a large site, and a count of the questions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from rackwright.workload.slurm.metrics.jobs import SEPARATOR
from rackwright.workload.states import NoAnswer

RECORDED = Path(__file__).parent / "recorded"
GPUS = 8
FIRST = 100_000
"""Number of a large site's first job."""


def recorded(scene: str, source: str) -> str:
    """An answer of a scene, as it was; see recorded/README.md."""
    path = RECORDED / scene / f"{source}.txt"
    return (path if path.exists() else path.with_suffix(".json")).read_text(encoding="utf-8")


def source_of(command: Sequence[str]) -> str:
    """What a command asks for, by the name of its recording."""
    if command[0] == "squeue":
        return "details" if "--json" in command else "jobs"
    return {"scontrol": "nodes", "sdiag": "scheduler", "sacct": "accounting"}[command[0]]


class FakeSlurm:
    """Answers as it was told, counts the questions, and fails where it was told to."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.broken: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.commands: list[tuple[str, ...]] = []

    @classmethod
    def of(cls, scene: str) -> FakeSlurm:
        """With the answers of a scene; one without jobs has no details."""
        return cls({path.stem: recorded(scene, path.stem) for path in (RECORDED / scene).iterdir()})

    def __call__(self, command: Sequence[str]) -> str:
        source = source_of(command)
        self.asked[source] += 1
        self.commands.append(tuple(command))
        if source in self.broken:
            raise NoAnswer(f"`{command[0]}` gave no answer within 8 s")
        return self.answers[source]


def samples(text: bytes | str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every series of an exposition by name and labels; a series that is there twice is an error."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    text = text.decode() if isinstance(text, bytes) else text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def of(
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float], name: str
) -> dict[tuple[str, ...], float]:
    """The series of one metric by the values of their labels, in the order of the labels' names."""
    return {tuple(value for _, value in key[1]): figure for key, figure in found.items() if key[0] == name}


def large_site(jobs: int, nodes: int) -> LargeSite:
    """All jobs run: one GPU each until there are no more, then CPUs alone; each on one node of 112 cores."""
    lines = []
    for index in range(jobs):
        tres = "cpu=14,mem=200G,node=1,billing=100" + (",gres/gpu=1" if index // nodes < GPUS else "")
        number = str(FIRST + index)
        cells = [
            number,
            number,
            f"user{index % 700:03d}",
            f"group{index % 90:02d}",
            "main",
            "normal",
            "RUNNING",
        ]
        cells += [
            "2026-11-27T00:32:45",
            "2026-11-27T00:30:00",
            "14",
            "1",
            _node(index, nodes),
            tres,
            "None",
            "",
        ]
        lines.append(SEPARATOR.join(cells))
    line = recorded("arrays", "nodes").splitlines()[0]
    ended = "COMPLETED", "2026-11-27T00:05:57", "2026-11-27T00:05:58", "2026-11-27T00:09:25", "120000"
    return LargeSite(
        {
            "nodes": "\n".join(line.replace("worker1", _node(index, nodes)) for index in range(nodes)),
            "jobs": "\n".join(lines),
            "scheduler": recorded("arrays", "scheduler"),
            "accounting": "\n".join(
                SEPARATOR.join(
                    (str(index), "main", f"group{index % 90:02d}", f"user{index % 700:03d}", *ended)
                )
                for index in range(jobs)
            ),
        },
        nodes,
    )


def _node(index: int, nodes: int) -> str:
    return f"gpu{index % nodes + 1:04d}"


class LargeSite(FakeSlurm):
    """Its squeue prints in JSON the jobs that it is asked for, and no others."""

    def __init__(self, answers: dict[str, str], nodes: int) -> None:
        super().__init__(answers)
        self._nodes = nodes
        cores = [{"index": index, "status": ["ALLOCATED"]} for index in range(56)]
        sockets = [{"index": 0, "cores": cores}, {"index": 1, "cores": cores}]
        allocation = [{"index": 0, "name": "NODE", "cpus": {"count": 14, "used": 0}, "sockets": sockets}]
        job = json.loads(recorded("arrays", "details"))["jobs"][0]
        resources = {**job["job_resources"], "nodes": {"list": "NODE", "allocation": allocation}}
        job |= {"job_id": "NUMBER", "nodes": "NODE", "gres_detail": ["GRES"], "job_resources": resources}
        self._job = json.dumps(job, indent=2).replace('"NUMBER"', "NUMBER")

    def __call__(self, command: Sequence[str]) -> str:
        if source_of(command) == "details":
            jobs = (self._detail(int(number)) for number in command[-1].split(","))
            self.answers["details"] = f'{{"jobs": [{",".join(jobs)}]}}'
        return super().__call__(command)

    def _detail(self, number: int) -> str:
        index = number - FIRST
        gpu = index // self._nodes
        gres = f"gpu:h100:1(IDX:{gpu})" if gpu < GPUS else ""
        text = self._job.replace("NUMBER", str(number)).replace("GRES", gres)
        return text.replace("NODE", _node(index, self._nodes))
