"""Line breaks and control characters of a cluster file: each named with its place, once, and shown escaped."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rackwright.clusterfile.fields import may_have_lines
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ClusterFileError
from tests.unit.clusterfile.base_file import BASE, change, problems_of
from tests.unit.clusterfile.test_mistakes import DUMPER, paths_in, replaced
from tests.unit.model.test_plain_text import Options

BREAK = ("The text contains a line break.", "write it on one line, in quotes")


def test_the_known_ways_from_a_text_to_configuration(tmp_path):
    text = change(
        (
            "apt: http://mirror.example.com/debian",
            (
                'apt: "http://mirror.example.com/debian\\nTrusted: yes"\n'
                '  apt_proxy: "http://p/\\";DPkg::Pre-Invoke {\\"reboot\\";};\\n//"'
            ),
        ),
        (
            "  munge: {}",
            (
                "  munge: {}\n"
                '  slurm: {scheduler_parameters: ["bf_continue\\nPrologSlurmctld=/tmp/x"], '
                'accounting: {storage_host: "db\\nStoragePass=x"}, partitions: {"a\\nb": {default: true}}}'
            ),
        ),
    )
    found = problems_of(tmp_path, text)
    assert [(one.path, one.value, one.message, one.hint) for one in found] == [
        ("mirrors.apt", "http://mirror.example.com/debian\\x0aTrusted: yes", *BREAK),
        ("mirrors.apt_proxy", 'http://p/";DPkg::Pre-Invoke {"reboot";};\\x0a//', *BREAK),
        (
            "roles.slurm.scheduler_parameters[0]",
            "bf_continue\\x0aPrologSlurmctld=/tmp/x",
            *BREAK,
        ),
        ("roles.slurm.accounting.storage_host", "db\\x0aStoragePass=x", *BREAK),
        (
            'roles.slurm.partitions["a\\x0ab"]',
            "a mapping with 1 key",
            "The key contains a line break.",
            BREAK[1],
        ),
    ]
    lines = text.splitlines()
    for one, at in zip(found, ('"http://m', '"http://p', '"bf_', '"db', '"a'), strict=True):
        assert lines[one.line - 1][one.column - 1 :].startswith(at)


@pytest.mark.parametrize("indicator", ["|", ">", "|+"])
def test_a_block_that_ends_with_a_line_break(tmp_path, indicator):
    (found,) = problems_of(tmp_path, change(("domain: demo.test", f"domain: {indicator}\n    demo.test\n")))
    assert found.message == "The text ends with a line break."
    assert found.hint is not None
    assert f"`{indicator[0]}`" in found.hint


@pytest.mark.parametrize("odd", ["a\nb", "a\x1b[31mb", "a\u202eb", "a\u200b", "\0", "a\n"], ids=ascii)
def test_no_text_anywhere_may_hold_it(tmp_path, odd):
    data = yaml.safe_load(BASE.replace("read: 2026-11-20", 'read: "2026-11-20"'))
    for path in paths_in(data):
        found = problems_of(tmp_path, yaml.dump(replaced(data, path, odd), Dumper=DUMPER, sort_keys=False))
        if path != ("ssh", "key"):  # it is taken for a private key, which is not shown
            assert any(one.message.startswith(("The text contains", "The text ends")) for one in found), path
        assert found
        for one in found:
            assert str(one).replace("\n", "").isprintable(), one


def keyed(value: Any, path: tuple[Any, ...], odd: str) -> Any:
    """The data with the last key of a path replaced."""
    if len(path) == 1:
        return {odd if key == path[0] else key: inner for key, inner in value.items()}
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = keyed(value[path[0]], path[1:], odd)
    return copy


@pytest.mark.parametrize("odd", ["a\nb", "a\x1b[31mb", "a\u202eb"], ids=ascii)
def test_no_key_anywhere_may_hold_it(tmp_path, odd):
    data = yaml.safe_load(BASE.replace("read: 2026-11-20", 'read: "2026-11-20"'))
    for path in paths_in(data):
        if path and isinstance(path[-1], str):
            found = problems_of(tmp_path, yaml.dump(keyed(data, path, odd), Dumper=DUMPER, sort_keys=False))
            assert any("The key contains" in one.message for one in found), path
            for one in found:
                assert str(one).replace("\n", "").isprintable(), one


def test_a_comment_that_reverses_the_line(tmp_path):
    text = change(("user: admin", "user: admin # \u202e nimda :resu"))
    (found,) = problems_of(tmp_path, text)
    assert found.message.startswith("The character U+202E reverses the text direction")
    assert text.splitlines()[found.line - 1][found.column - 1] == "\u202e"


def test_a_tag_does_not_reach_the_terminal(tmp_path):
    found = problems_of(tmp_path, change(("domain: demo.test", "domain: !%1b[2J demo.test")))
    assert found
    assert all(str(one).replace("\n", "").isprintable() for one in found)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (("greeting",), True),
        (("name",), False),
        (("words", 0), False),
        (("inner", "name"), False),
        (("nothing",), False),
        ((), False),
    ],
)
def test_an_exception_is_found_by_the_path_in_the_file(path, allowed):
    assert may_have_lines(Options, path) is allowed


def test_an_exception_is_read_from_the_file(tmp_path, monkeypatch):
    """As in a role of a user whose option is a message of the day."""
    from rackwright.clusterfile.roles import options_class

    file = tmp_path / "demo.yaml"
    file.write_text(change(("munge: {}", 'munge: {}\n  base: {timezone: "Etc/\\nUTC"}')))
    with pytest.raises(ClusterFileError, match="contains a line break"):
        load_cluster(file)
    monkeypatch.setattr(options_class("base"), "several_lines", frozenset({"timezone"}))
    with pytest.raises(ClusterFileError) as caught:
        load_cluster(file)
    assert "line break" not in str(caught.value)  # its own validator has the last word
