"""Every kind of mistake, with the exact words and place."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from tests.unit.clusterfile.base_file import BASE, change, problems_of

TABLE = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the one in C takes a tenth of the time
SECRETS = ("hunter2", "HUNTER2", "QUJDQUJD")


def test_the_base_file_is_correct(tmp_path):
    assert problems_of(tmp_path, BASE) == ()


def test_kinds_are_named_once():
    kinds = [case["kind"] for case in TABLE]
    assert len(kinds) == len(set(kinds)) >= 60


@pytest.mark.parametrize("case", TABLE, ids=[case["kind"].replace(" ", "-") for case in TABLE])
def test_mistake(tmp_path, case):
    text = change(*(tuple(edit) for edit in case["edits"]))
    found = problems_of(tmp_path, text)
    lines = text.splitlines()
    assert [
        {
            "path": problem.path,
            "message": problem.message,
            **({"value": problem.value} if problem.value is not None else {}),
            **({"hint": problem.hint} if problem.hint is not None else {}),
        }
        for problem in found
    ] == [{key: value for key, value in problem.items() if key != "at"} for problem in case["problems"]]
    for problem, expected in zip(found, case["problems"], strict=True):
        assert lines[problem.line - 1][problem.column - 1 :].startswith(expected["at"])
        assert problem.file == str(tmp_path / "demo.yaml")
        assert problem.message.endswith(".")
        assert not any(secret in str(problem) for secret in SECRETS)


@pytest.mark.parametrize("name", ["nvidia.asc", "mirror.gpg", "3bf863cc.pub"])
def test_the_name_of_a_file_of_public_keys_is_no_secret(tmp_path, name):
    """Whatever else is wrong with it here: the section has no such option."""
    found = problems_of(tmp_path, change(("munge: {}", f"munge: {{repository_key: {name}}}")))
    assert [problem.message for problem in found] == ["Unknown key `repository_key`."]


def test_the_name_of_a_secret_in_the_store_is_no_secret(tmp_path):
    slurm = "slurm: {accounting: {storage_host: db.example.com, storage_password: %s}}"
    for name, message in (("accounting_db_password", None), ("hunter2", "Secret in plaintext.")):
        found = problems_of(tmp_path, change(("munge: {}\n  mariadb:", f"munge: {{}}\n  {slurm % name}")))
        assert [one.message for one in found if "storage_password" in one.path] == (
            [message] if message else []
        )


TEN = change(
    ("name: demo", "name: Demo_1"),
    ("os: debian-13", "os: debian-14"),
    ("mtu: 9000", "mtuu: 9000"),
    ("user: admin", "user: root"),
    ("http://mirror.example.com/debian", "http://joe:hunter2@mirror.example.com/debian"),
    ("sockets: 1", "sockets: 0"),
    ("mgmt: 10.1.0.10}", "mgmt: 10.9.0.10}"),
    ("rack: r[1-2]", "rack: r[1-3]"),
    ("munge: {}", "munge: {uid: -1}"),
    ("  floor_source: measured here, 2026-11-20\n", ""),
)


def test_ten_mistakes_come_back_at_once_in_file_order(tmp_path):
    found = problems_of(tmp_path, TEN)
    assert [problem.path for problem in found] == [
        "cluster.name",
        "defaults.os",
        "networks.store.mtuu",
        "ssh.user",
        "mirrors.apt",
        "skus.own-node.sockets",
        "nodes[0].addresses.mgmt",
        "nodes[1].rack",
        "roles.munge.uid",
        "burnin.floor_busbw_gbs",
    ]
    assert [problem.line for problem in found] == sorted(problem.line for problem in found)


ODD_VALUES = [None, [], {}, "", "x", "::", -1, 0, 10**15, 1.5, True, [None], {"x": None}, [[]], {"first": {}}]


def paths_in(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths_in(inner, (*path, key))


def replaced(value, path, odd):
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], odd)
    return copy


@pytest.mark.parametrize("odd", ODD_VALUES, ids=repr)
def test_odd_values_anywhere_are_mistakes_and_never_crashes(tmp_path, odd):
    data = yaml.safe_load(BASE.replace("read: 2026-11-20", 'read: "2026-11-20"'))
    for path in paths_in(data):
        text = yaml.dump(replaced(data, path, odd), Dumper=DUMPER, sort_keys=False)
        for problem in problems_of(tmp_path, text):
            assert problem.message.endswith((".", "?")), (path, problem)


def test_broken_text_is_a_mistake_and_never_a_crash(tmp_path):
    chance = random.Random(20261120)
    lines = BASE.splitlines(keepends=True)
    for _ in range(150):
        broken = list(lines)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(broken))
            broken[at] = chance.choice(
                [
                    "",
                    broken[at] * 2,
                    "  " + broken[at],
                    broken[at].lstrip(),
                    broken[at].replace(":", "", 1),
                    broken[at][: chance.randrange(len(broken[at]) + 1)],
                    broken[at].replace(
                        chance.choice(broken[at]), chance.choice("\t&*!|>'\"%@`{}[],#?-:\0é0")
                    ),
                ]
            )
        problems_of(tmp_path, "".join(broken))


@pytest.mark.parametrize(
    "text",
    [
        BASE + "x" * 1_000_000 + ": 1\n",
        change(("munge: {}", "munge: {" + "x" * 1_000_000 + ": 1}")),
        change(("nodes: w[1-4]", "nodes: " + "x" * 1_000_000)),
        change(("mgmt: 10.1.0.10}", "mgmt: 10.1.0.10, " + "x" * 1_000_000 + ": 10.1.0.9}")),
    ],
)
def test_absurdly_long_words_are_cut(tmp_path, text):
    (problem,) = problems_of(tmp_path, text)
    assert len(str(problem)) < 1000
