"""One check in push mode: run the check of every node, write state and metrics, send notifications.

    python -m rackwright.drift.check FOLDER STATE

Run by a timer as an unprivileged user. FOLDER holds the cluster file, the host keys, the expected
digests and the key that can only run the check; STATE is the only folder it can write. It never loads
pyinfra and has no secret of the cluster.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from rackwright.atomic_write import write_atomically
from rackwright.boundary import Refused, last_line, read_json_as
from rackwright.clusterfile.load import load_cluster
from rackwright.drift import paths
from rackwright.drift.notify import message, send, urls_of
from rackwright.drift.prometheus import push_metrics
from rackwright.drift.states import (
    Found,
    History,
    State,
    advanced,
    history_text,
    read_history,
    reported,
    unreported,
)
from rackwright.errors import ConnectionFailed, RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.ssh import TIMED_OUT, TOO_MUCH_OUTPUT, connect, run

PARALLEL = 32
NODE_SECONDS = 330
"""Slightly more than the time limit of the program on the node."""
REPLY_MAX_BYTES = 64 * 2**10
"""The program on the node prints up to 50 answers of 200 characters: about 12 KiB."""
_SHOWN = 10
_COUNT_MAX = 1_000_000


class _Reply(BaseModel):
    """Output of rackwright/drift/node.py. A newer program may print more."""

    model_config = ConfigDict(strict=True, frozen=True)

    state: Literal["in sync", "drifted", "unknown"]
    changed: list[str]
    expected: str | None
    count: int = Field(0, ge=0, le=_COUNT_MAX)
    operations: dict[str, Annotated[int, Field(ge=0, le=_COUNT_MAX)]] = {}
    reason: str = ""


_REPLY = TypeAdapter(_Reply)


def main(folder: Path, state: Path) -> int:
    """One check; exit status 0 unless a notification could not be sent."""
    began = time.monotonic()
    cluster = _as_checking_user(load_cluster(folder / "cluster.yaml", locked=False), folder)
    entries = json.loads((folder / "expected.json").read_text())
    expected: dict[str, str] = {name: digest for name, (digest, _) in entries.items()}
    with ThreadPoolExecutor(PARALLEL) as pool:
        found = dict(
            zip(
                (node.name for node in cluster.nodes),
                pool.map(partial(_node, cluster, expected), cluster.nodes),
                strict=True,
            )
        )
    history = advanced(read_history(state / "state.json"), found, time.time())
    problems, history = _notify(cluster, found, history, urls_of(folder / "notify.json"))
    write_atomically(state / "state.json", history_text(history), mode=0o644)
    seconds = time.monotonic() - began
    text = push_metrics(cluster.name, found, history, seconds, time.time())
    write_atomically(state / paths.metrics_name(cluster.name), text, mode=0o644, durable=False)
    counts = Counter(one.state for one in found.values())
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())), f"in {seconds:.1f} s")
    for problem in problems:
        print(f"cannot send {problem}; the next check tries again", file=sys.stderr)
    return 1 if problems else 0


def _notify(
    cluster: Cluster, found: dict[str, Found], history: History, urls: list[str]
) -> tuple[list[str], History]:
    """(failed notifications, updated history). A change counts as reported once one URL accepted it."""
    changes = unreported(history, found)
    for change in changes:
        print(f"{change.node}: {change.before} -> {change.found.state}: {', '.join(change.found.detail)}")
    if not changes or not urls:
        return [], reported(history)
    failed = send(urls, *message(cluster.name, changes, history))
    return failed, history if len(failed) == len(urls) else reported(history)


def _as_checking_user(cluster: Cluster, folder: Path) -> Cluster:
    """The cluster, with the user and key that can only run the check."""
    reached = {
        "user": paths.USER,
        "key": folder / "key",
        "known_hosts": folder / "known_hosts",
        "become": "none",
    }
    return cluster.model_copy(update={"ssh": cluster.ssh.model_copy(update=reached)})


def _node(cluster: Cluster, expected: dict[str, str], node: Node) -> Found:
    try:
        return _ask(cluster, expected, node)
    except ConnectionFailed as error:
        return Found(State.UNREACHABLE, (error.message,))
    except Exception as problem:  # noqa: BLE001 - affects only this node
        return Found(State.UNKNOWN, (f"the check failed: {type(problem).__name__}: {problem}",))


def _ask(cluster: Cluster, expected: dict[str, str], node: Node) -> Found:
    client = connect(cluster, node)
    try:
        answer = run(
            client,
            paths.WORD,
            sudo=False,
            stdin=None,
            timeout=NODE_SECONDS,
            limit=REPLY_MAX_BYTES,
            as_it_is=True,
        )
    finally:
        client.close()
    if answer.exit_status == TIMED_OUT:
        return Found(State.UNKNOWN, ("its check timed out",))
    if answer.exit_status == TOO_MUCH_OUTPUT:
        return Found(State.UNKNOWN, (f"its answer is invalid: {last_line('', answer.stderr)}",))
    if answer.exit_status != 0:
        last = last_line(answer.stdout, answer.stderr)
        return Found(State.UNKNOWN, (f"its check exited {answer.exit_status}: {last}",))
    return judge(answer.stdout, expected.get(node.name), node.options)


def judge(reply: str, expected: str | None, roles: Iterable[str] = ()) -> Found:
    """The state in a node's reply, given its expected digest and its roles."""
    try:
        answer = read_json_as(_REPLY, reply, REPLY_MAX_BYTES)
    except Refused as refused:
        return Found(State.UNKNOWN, (f"its answer is invalid: {refused}",))
    state, count = State(answer.state), answer.count
    detail = tuple(one[:200] for one in answer.changed[:_SHOWN])
    operations = {role: answer.operations[role] for role in roles if role in answer.operations}
    if state is State.UNKNOWN:
        return Found(state, (answer.reason[:200],))
    if answer.expected != expected:
        # another user's apply updated it, or a user of the node accepted a change made there
        return Found(State.UNKNOWN, ("its expected answers were not installed by this checker",))
    if count > len(detail):
        detail = (*detail, f"and {count - len(detail)} more")
    return Found(state, detail, count, operations)


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
    except RackwrightError as error:
        sys.exit(f"error: {error.message}")
