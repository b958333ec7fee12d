"""rackwright lock: one driver stack for each kind of node, solved, written and compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ClusterFileError, ExitCode, Problem
from rackwright.lock.content import GroupLock, Lock
from rackwright.lock.index import Index, read_index
from rackwright.lock.lock_file import lock_text, with_locked_images
from rackwright.lock.request import shipped_tables
from rackwright.lock.solve import Solution, solve


def lock_command(
    file: ClusterFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; compare the lock file with what would be solved now."),
    ] = False,
) -> None:
    """Solve the GPU stack of each kind of node to exact versions and write it beside the cluster file.

    Works offline from the shipped tables and prints their date; with `gpu_stack.package_index` it reads
    those indexes for revisions and hashes. An impossible combination is refused with every reason at once. The
    JSON has `version` (1), `file`, `lock` (the lock file), `state` (`written`, `unchanged`,
    `current`, `different` or `refused`), `groups` and `refused`, each with `sku`, `os`, `source` and
    `reasons` (`message`, `hint`), `skipped`, SKUs whose GPUs are not NVIDIA's, and `remaining`: what the cluster
    file still needs before anything is installed, e.g. a repository's key (`where`, `message`, `hint`).

    Exit status: 0 written or up to date, 1 refused, 2 with --check: the lock file differs.
    """
    cluster = load_cluster(file, locked=False)
    stack = cluster.gpu_stack
    index = read_index(stack.package_index) if stack is not None else Index()
    solution = solve(cluster, shipped_tables(), index)
    path = cluster.lock_path
    text = lock_text(with_locked_images(solution.lock, cluster), cluster.path.name)
    there = path.read_text(encoding="utf-8") if path.exists() else None
    if solution.refused:
        state = "refused"
    elif check:
        state = "current" if there == text else "different"
    else:
        state = "unchanged" if there == text else "written"
        if there != text:
            path.write_text(text, encoding="utf-8")
    remaining = _remaining(file) if state in ("written", "unchanged", "current") else []
    if as_json:
        print_document("lock", _json(str(file), str(path), state, solution, remaining))
    else:
        say("\n".join((*_lines(path.name, state, solution), *_still(remaining))))
    if solution.refused:
        raise typer.Exit(int(ExitCode.ERROR))
    if state == "different":
        raise typer.Exit(int(ExitCode.CHANGES_PENDING))


def _remaining(file: Path) -> list[Problem]:
    """What the cluster file still lacks now that it has its lock."""
    try:
        load_cluster(file)
    except ClusterFileError as error:
        return list(error.problems)
    return []


def _still(remaining: list[Problem]) -> Iterator[str]:
    for number, problem in enumerate(remaining):
        if number == 0:
            yield "\nStill to do before anything is installed:"
        yield f"  - {problem.path}: {problem.message}"
        if problem.hint is not None:
            yield f"    hint: {problem.hint}"


def _json(
    file: str, path: str, state: str, solution: Solution, remaining: list[Problem]
) -> dict[str, object]:
    return {
        "file": file,
        "lock": path,
        "state": state,
        "tables": {name: day.isoformat() for name, day in solution.lock.tables.items()},
        "groups": [group.model_dump(mode="json") for group in solution.lock.groups],
        "refused": [
            {
                "sku": refused.sku,
                "os": refused.os,
                "source": refused.source,
                "reasons": [{"message": reason.message, "hint": reason.hint} for reason in refused.reasons],
            }
            for refused in solution.refused
        ],
        "skipped": list(solution.skipped),
        "remaining": [
            {"where": problem.path, "message": problem.message, "hint": problem.hint} for problem in remaining
        ],
    }


def _lines(name: str, state: str, solution: Solution) -> Iterator[str]:
    for refused in solution.refused:
        yield f"{refused.sku} on {refused.os} from {refused.source}: cannot be locked"
        for reason in refused.reasons:
            yield f"  - {reason.message}"
            if reason.hint is not None:
                yield f"    hint: {reason.hint}"
        yield ""
    for group in solution.lock.groups:
        yield from _group(group)
        yield ""
    for sku in solution.skipped:
        yield f"{sku}: its GPUs are not NVIDIA's; the lock has no stack for them"
    yield _verdict(name, state, solution.lock)


def _group(group: GroupLock) -> Iterator[str]:
    kind = "open" if group.open_modules else "proprietary"
    yield f"{group.sku} on {group.os} from {group.source}: driver {group.driver_version} ({kind} modules)"
    companions = [
        *([f"CUDA {group.cuda}"] if group.cuda else []),
        *(["fabricmanager and nscq at the driver's version"] if group.fabricmanager else []),
        *(["nvlsm"] if group.nvlsm else []),
        *(["IMEX"] if group.imex else []),
        "DOCA-OFED" if group.ofed == "doca" else "inbox RDMA",
    ]
    yield f"  kernel {group.kernel or 'not locked'}; {', '.join(companions)}"
    width = max(len(name) for name in group.packages)
    for name, version in group.packages.items():
        yield f"    {name.ljust(width)}  {version}"
    for note in group.notes:
        yield f"  note: {note}"
    for index in group.needs_index:
        yield f"  index that would make it exact: {index}"


def _verdict(name: str, state: str, lock: Lock) -> str:
    dates = ", ".join(sorted({day.isoformat() for day in lock.tables.values()}))
    words = {
        "refused": f"{name}: not written",
        "written": f"{name}: written",
        "unchanged": f"{name}: unchanged",
        "current": f"{name}: is what would be solved now",
        "different": f"{name}: is not what would be solved now; run rackwright lock and read the difference",
    }
    return f"{words[state]} (tables of {dates})"
