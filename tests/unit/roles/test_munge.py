"""The munge role: options, what an empty node gets, the key, and its checks.

Exit statuses of unmunge are of munge 0.5.16 in Debian 13, recorded 2026-11-20.
"""

from __future__ import annotations

import base64
import shlex

import pytest
from pyinfra.api.exceptions import OperationError

from rackwright.claims.check import Undetermined
from rackwright.operations.munge import decoded
from rackwright.osfamily.known import os_release
from rackwright.roles.munge import verify
from rackwright.roles.munge.options import MungeOptions
from rackwright.roles.munge.verify import CHECKS, Decoded, pairs, parse_decoded
from rackwright.secrets.store import Secret
from tests.unit.roles.fake_facts import account, file, group, unit
from tests.unit.roles.fake_host import FakeHost, commands, errors_in, judged, planned
from tests.unit.roles.slurm_clusters import cluster, dgx, lab, node

LAB = lab()
HEAD, WORKER = LAB.primary, LAB.by_name["worker1"]
KEY = bytes(range(256)) * 4


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"uid": 0}, "Input should be greater than or equal to 1"),
        ({"uid": 65534}, "Input should be less than 65534"),
        ({"head_threads": 0}, "Input should be greater than or equal to 1"),
        ({"clock_skew_seconds_max": 301}, "Input should be less than or equal to 300"),
        ({"all_pairs_nodes_max": 1}, "Input should be greater than or equal to 2"),
        ({"key": "secret"}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(MungeOptions, given) == [sentence]


def _changes(plan):
    assert plan.error is None
    return {
        change.target: change
        for operation in plan.operations
        if operation.role == "munge"
        for change in operation.changes
    }


@pytest.mark.parametrize(
    ("os", "path"),
    [(os_release("debian-13"), "/etc/default/munge"), (os_release("rocky-9"), "/etc/sysconfig/munge")],
)
def test_daemon_options(os, path):
    made = dgx(os=os)
    for name, threads in (("head1", 10), ("gpu001", 2), ("login1", 2)):
        content = _changes(planned(made, made.by_name[name]))[path].content
        assert content == (
            "# Written by rackwright; changes made here are undone.\n"
            f'OPTIONS="--key-file=/etc/munge/munge.key --num-threads={threads}"\n'
        )


def test_ids_and_the_key_come_before_the_package():
    names = [op.name for op in planned(LAB, WORKER).operations if op.role == "munge"]
    assert (
        names.index("Create user munge") < names.index("Write the munge key") < names.index("Install munge")
    )
    assert "--gid 440" in commands(planned(LAB, WORKER), "Create group munge")[0]
    assert "--uid 440" in commands(planned(LAB, WORKER), "Create user munge")[0]


def test_the_key_stands_in_no_command():
    (command,) = commands(planned(LAB, WORKER), "Write the munge key")
    assert "secret" not in command
    assert "base64 -d" in command
    assert 'chown munge:munge "$t"; chmod 400 "$t"' in command


@pytest.mark.parametrize(
    ("secret", "sentence"),
    [
        ("not base64!", "the secret munge_key is not base64"),
        (
            base64.b64encode(b"x" * 31).decode(),
            "the secret munge_key has 31 bytes; munged accepts 32 to 1024",
        ),
        (
            base64.b64encode(b"x" * 1025).decode(),
            "the secret munge_key has 1025 bytes; munged accepts 32 to 1024",
        ),
    ],
)
def test_a_secret_that_is_no_key(secret, sentence):
    with pytest.raises(OperationError, match=sentence):
        decoded(secret)


class _Store:
    def get(self, name):
        assert name == "munge_key"
        return Secret(name, base64.b64encode(KEY).decode())


@pytest.fixture(autouse=True)
def _a_store(monkeypatch):
    monkeypatch.setattr(verify, "store_of", lambda _: _Store())


ENCODE = "munge -n -U nobody -u root"
KEY_ACCESS = "only munge can read the munge key"
KEY_DECLARED = "the munge key is the declared one"


def key_file(key=KEY, mode="400"):
    """The host answers with the key's digest alone, so a check that reads the key itself cannot pass."""
    return file("/etc/munge/munge.key", key, mode, "munge", "munge", digest_only=True)


def decode(*credentials):
    return f"sh -c {shlex.quote(verify._DECODE_SCRIPT)} decode {shlex.join(credentials)}"


def printed(*statuses, skew=0):
    return "".join(f"{status} ENCODE_TIME: 1000 DECODE_TIME: {1000 + skew}\n" for status in statuses)


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        ("munged is running", unit("munge.service"), "PASS", "munge.service is active and enabled"),
        ("munged is running", unit("munge.service", "failed"), "FAIL", "munge.service is failed"),
        (
            "munged is running",
            unit("munge.service", state="disabled"),
            "FAIL",
            "munge.service is active but disabled: it does not start at boot",
        ),
        ("munged is running", unit("munge.service", "", ""), "UNKNOWN", None),
        ("munged is running", {}, "UNKNOWN", "cannot run `sh`: sh: 1: sh: not found"),
        ("munge has its declared ids", account("munge", 440), "PASS", "munge is 440:440"),
        (
            "munge has its declared ids",
            {**account("munge", 101), **group("munge", 440)},
            "FAIL",
            "munge has uid 101 and gid 440, not 440 and 440",
        ),
        ("munge has its declared ids", account("munge", None), "FAIL", "the user munge does not exist"),
        (
            "munge has its declared ids",
            {**account("munge", None), "getent passwd munge": (1, "", "getent: no database")},
            "UNKNOWN",
            "`getent passwd munge` cannot be read: getent: no database",
        ),
        ("munge has its declared ids", {}, "UNKNOWN", None),
        (KEY_ACCESS, key_file(), "PASS", "/etc/munge/munge.key is 400 munge:munge"),
        (
            KEY_ACCESS,
            key_file(mode="644"),
            "FAIL",
            "/etc/munge/munge.key is 644 munge:munge, not 400 munge:munge",
        ),
        (KEY_ACCESS, key_file(None), "FAIL", "/etc/munge/munge.key is missing"),
        (KEY_ACCESS, {}, "UNKNOWN", None),
        (KEY_DECLARED, key_file(), "PASS", "the digest of /etc/munge/munge.key is as declared"),
        (KEY_DECLARED, key_file(b"other"), "FAIL", "/etc/munge/munge.key is not as declared"),
        (KEY_DECLARED, {}, "UNKNOWN", None),
        (
            "munge encodes and decodes a credential",
            {ENCODE: "MUNGE:AAA:\n", decode("MUNGE:AAA:"): printed(0)},
            "PASS",
            "encodes and decodes",
        ),
        (
            "munge encodes and decodes a credential",
            {ENCODE: "MUNGE:AAA:\n", decode("MUNGE:AAA:"): printed(17)},
            "FAIL",
            "unmunge refuses this node's own credential: seen before",
        ),
        (
            "munge encodes and decodes a credential",
            {ENCODE: (6, "", "munge: Error: Failed to access socket")},
            "UNKNOWN",
            "`munge -n -U nobody -u root` exited 6: munge: Error: Failed to access socket",
        ),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("munge", CHECKS, name, LAB, WORKER, FakeHost(answers))
    assert found.status == status
    assert evidence in (None, found.evidence)


ACROSS = "munge credentials are valid between nodes"
NAMES = ("head1", "worker1", "worker2")


def rack(**answers):
    """Each node's credential is its name; answers by node are what it makes of all three."""
    return {
        name: FakeHost({ENCODE: f"{name}\n", decode(*NAMES): answers.get(name, printed(0, 0, 0))})
        for name in NAMES
    }


def across(hosts):
    found = judged("munge", CHECKS, ACROSS, LAB, HEAD, hosts)
    return str(found.status), found.evidence


def test_every_node_decodes_every_nodes_credential():
    assert across(rack()) == ("PASS", "9 pairs: every node decodes every node's credential")


def test_another_key_on_one_node():
    hosts = rack(worker2=printed(14, 14, 0))
    assert across(hosts) == (
        "FAIL",
        "worker2 refuses head1: not of this key; worker2 refuses worker1: not of this key",
    )


@pytest.mark.parametrize(("exit_status", "word"), [(15, "expired"), (16, "rewound")])
def test_clocks_so_far_apart_that_munge_refuses(exit_status, word):
    assert across(rack(worker2=printed(exit_status, 0, 0))) == (
        "FAIL",
        f"worker2 refuses head1: {word}, their clocks differ",
    )


def test_clocks_that_drift_are_said_before_munge_refuses():
    status, evidence = across(rack(worker1=printed(0, 0, 0, skew=-90)))
    assert status == "WARN"
    assert evidence.startswith("clocks are far apart: worker1 is -90 s against head1; ")


def test_a_dead_munged_is_not_a_wrong_key():
    hosts = rack()
    hosts["worker1"] = FakeHost({ENCODE: (6, "", "munge: Error: no socket\n")})
    hosts["head1"] = FakeHost({ENCODE: "head1\n", decode("head1", "worker2"): printed(0, 0)})
    hosts["worker2"] = FakeHost({ENCODE: "worker2\n", decode("head1", "worker2"): printed(0, 0)})
    status, evidence = across(hosts)
    assert status == "UNKNOWN"
    assert evidence.startswith("worker1: `munge -n -U nobody -u root` exited 6")


@pytest.mark.parametrize("answer", ["", "x\n", printed(0, 0), printed(6, 6, 6)])
def test_an_answer_that_says_nothing(answer):
    assert across(rack(head1=answer))[0] == "UNKNOWN"


def test_many_nodes_form_a_ring_around_the_head():
    many = cluster(
        "c",
        node("h", "10.0.0.1", "head", primary=True),
        *(node(f"w{i}", f"10.0.0.{i + 1}", "worker") for i in range(1, 4)),
    )
    assert pairs(many.nodes, many.primary, 3) == {
        "h": ("h", "w1", "w2", "w3"),
        "w1": ("h",),  # never the same credential twice: munge takes the second for a replay
        "w2": ("w1", "h"),
        "w3": ("w2", "h"),
    }
    assert pairs(many.nodes, many.primary, 4)["w2"] == ("h", "w1", "w2", "w3")


def test_what_unmunge_prints():
    assert parse_decoded("0 ENCODE_TIME: 1795206675 DECODE_TIME: 1795206677\n14\n") == [
        Decoded(0, 2.0),
        Decoded(14, None),
    ]
    with pytest.raises(Undetermined):
        parse_decoded("unmunge: not found\n")
