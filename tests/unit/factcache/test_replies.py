"""The fact helper's reply: read only when it is one; everything else is that node's own error."""

from __future__ import annotations

import base64
import gc
import json
import resource
import threading
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.boundary import Refused
from rackwright.command import CommandResult
from rackwright.factcache import answers, fetch
from rackwright.factcache.answers import Answers, Reply, read_reply
from rackwright.factcache.cache import ClassCache
from rackwright.factcache.fetch import REPLY_MAX_BYTES, open_node
from rackwright.factcache.quick_check import quick_check
from rackwright.plan.node_plan import NodePlan
from rackwright.ssh import TIMED_OUT, TOO_MUCH_OUTPUT
from tests.factories import make_cluster
from tests.unit.answers import any_text, bomb, few, hostile, is_harmless, json_texts, many, memory_limit

DIGEST = "a" * 64
VALID: dict[str, Any] = {"digest": DIGEST, "answers": [[0, ["absent"], []], [1, [], ["no such file"]]]}


def packed(text: str) -> str:
    """As the helper sends it."""
    return base64.b64encode(zlib.compress(text.encode(errors="surrogatepass"), 1)).decode()


def answering(text: str, status: int = 0) -> Answers:
    """Two questions to a node that says this."""
    questions = [{"kind": "shell", "command": "a"}, {"kind": "shell", "command": "b"}]
    return Answers(lambda command, stdin: CommandResult(command, status, text, ""), questions)


def test_a_reply_is_read() -> None:
    asked = answering(packed(json.dumps(VALID)))
    assert asked.fetch_all(None) is False
    found = asked.get({"kind": "shell", "command": "b"})
    assert found is not None
    assert (asked.digest, found.exit_status, found.stderr) == (DIGEST, 1, "no such file")
    assert answering(packed('{"same": true}')).fetch_all(DIGEST) is True


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "its compressed data is incomplete, or more follows it"),
        ("!!!", "it is not what the fact helper prints: !!!"),
        ("\x1b[2Jok", r"it is not what the fact helper prints: \x1b[2Jok"),
        (base64.b64encode(b"no zlib").decode(), "cannot decompress it: "),
        (base64.b64encode(bomb()).decode(), "it is more than 16 MiB when decompressed"),
        (packed("Infinity"), "it contains Infinity, which is not a JSON number"),
        (packed("[" * 100_000), "it is nested deeper than 32 levels"),
        (packed("{}"), "it has no digest and answers"),
        (packed("[]"), "it has no digest and answers"),
        (packed('{"same": 1, "x": 2}'), "it has no digest and answers"),
        (packed(json.dumps({**VALID, "digest": "a"})), "its digest is not a SHA-256"),
        (packed(json.dumps({**VALID, "digest": DIGEST + "\n"})), "its digest is not a SHA-256"),
        (packed(json.dumps({**VALID, "answers": []})), "it has not 2 answers, as many as were asked"),
        (packed(json.dumps({**VALID, "answers": {}})), "it has not 2 answers, as many as were asked"),
        *(
            (
                packed(json.dumps({**VALID, "answers": [[0, [], []], one]})),
                "an answer is not an exit status with lines of output and of errors",
            )
            for one in ([0, []], [True, [], []], [2**31, [], []], [0, "ab", []], [0, [1], []], {}, None)
        ),
    ],
)
def test_what_is_no_reply_is_refused_and_not_trusted_one_by_one(said: str, why: str) -> None:
    asked = answering(said)
    with pytest.raises(Refused) as refused:
        asked.fetch_all(DIGEST)
    assert str(refused.value).startswith(f"its answer is invalid: {why}")
    assert asked.note is None


def test_a_node_is_not_the_same_as_what_it_was_not_given() -> None:
    with pytest.raises(Refused, match="it has no digest and answers"):
        answering(packed('{"same": true}')).fetch_all(None)


def _read(text: str, compressed: bool, may_be_same: bool) -> None:
    refused, reply = None, Reply(None)
    try:
        reply = read_reply(packed(text) if compressed else text, 2, may_be_same=may_be_same)
    except Refused as error:
        refused = str(error)
    if refused is not None:
        assert is_harmless(refused)
        assert len(refused) <= 300
        return
    assert (reply.digest is None) is (may_be_same and not reply.answers)
    for status, out, err in reply.answers:
        assert type(status) is int
        for line in (*out, *err):
            line.encode()
    assert reply.digest is None or len(reply.answers) == 2


CASES = st.tuples(json_texts(VALID) | any_text(), st.integers(0, 9).map(bool), st.booleans())


@few
@given(CASES)
def test_any_reply_is_read_or_refused(case: tuple[str, bool, bool]) -> None:
    with memory_limit():
        _read(*case)


@pytest.mark.proof
@many
@given(CASES)
def test_any_reply_is_read_or_refused_ten_thousand_times(case: tuple[str, bool, bool]) -> None:
    with memory_limit():
        _read(*case)


@pytest.mark.parametrize("kind", sorted(hostile()))
def test_every_known_attack_is_refused(kind: str) -> None:
    for text in (hostile()[kind], packed(hostile()[kind])):
        with memory_limit(700), pytest.raises(Refused):
            read_reply(text, 2, may_be_same=True)


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """Three nodes in the cache; what each says is in the dictionary that comes with them."""
    cluster = make_cluster()
    said = {node.name: packed('{"same": true}') for node in cluster.nodes}
    status = dict.fromkeys(said, 0)
    limits: list[int] = []

    class Client:
        def __init__(self, name: str) -> None:
            self.name = name
            self.closed = False

        def close(self) -> None:
            self.closed = True

    def run(client, command, *, sudo, stdin, timeout, limit):
        limits.append(limit)
        stderr = "more than 4 MiB of output: stopped reading\n" if status[client.name] else ""
        return CommandResult(command, status[client.name], said[client.name], stderr)

    monkeypatch.setattr(fetch, "connect", lambda cluster, node: Client(node.name))
    monkeypatch.setattr(fetch, "run", run)
    cache = ClassCache(tmp_path, "class", "key")
    for name in said:
        cache.store(name, [{"kind": "shell", "command": "a"}, {"kind": "shell", "command": "b"}], DIGEST)
    return cluster, cache, said, status, limits


@pytest.mark.parametrize("kind", sorted(hostile()))
def test_the_quick_check_of_the_others_goes_on(fleet, kind: str) -> None:
    cluster, cache, said, _, limits = fleet
    said["worker1"] = packed(hostile()[kind])
    plans = {plan.node: plan for plan in quick_check(cluster, cluster.nodes, cache, None)}
    assert plans["head1"] == NodePlan("head1", executions=1)
    assert plans["worker2"] == NodePlan("worker2", executions=1)
    assert plans["worker1"].error.startswith("its answer is invalid: ")
    assert plans["worker1"].error.isprintable()
    assert (plans["worker1"].unreachable, plans["worker1"].executions) == (False, 1)
    assert set(limits) == {REPLY_MAX_BYTES}


def test_endless_output_is_the_node_s_own_error(fleet) -> None:
    cluster, cache, _, status, _ = fleet
    status["worker1"] = TOO_MUCH_OUTPUT
    found = open_node(cluster, cluster.by_name["worker1"], cache)
    assert isinstance(found, NodePlan)
    assert found.error == "its answer is invalid: more than 4 MiB of output: stopped reading"


@pytest.mark.parametrize(
    ("reported", "sentence"),
    [
        ("", ""),
        (
            "waiting for /a\nwaiting for /shared/state\nno end within 120 s\n",
            " It was waiting for /shared/state.",
        ),
        ("waiting for \x1b[2J" + "x" * 999, " It was waiting for \\x1b[2J" + "x" * 190 + "...."),
    ],
)
def test_what_hangs_is_named(fleet, monkeypatch, reported: str, sentence: str) -> None:
    cluster, cache, *_ = fleet
    monkeypatch.setattr(fetch, "run", lambda *_, **__: CommandResult("", TIMED_OUT, "", reported))
    found = open_node(cluster, cluster.by_name["worker1"], cache)
    assert isinstance(found, NodePlan)
    assert found.unreachable
    assert found.error.startswith(f"worker1 did not report its state within 120 s.{sentence} (")


@pytest.mark.slow
def test_sixty_four_large_replies_at_once_take_the_memory_of_few(monkeypatch) -> None:
    """Each is 15 MiB once decompressed, and refused after it was read."""
    text = packed(json.dumps({"digest": DIGEST, "answers": ["x" * (15 * 2**20)]}))
    assert len(text) < REPLY_MAX_BYTES
    refused: list[str] = []

    def read() -> None:
        try:
            answering(text).fetch_all(DIGEST)
        except Refused as error:
            refused.append(str(error))

    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    threads = [threading.Thread(target=read) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 64
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 400
    assert answers._reading.acquire(blocking=False)
    answers._reading.release()
