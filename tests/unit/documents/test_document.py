"""The file as a whole: what is no YAML, no text, no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ClusterFileError
from tests.unit.clusterfile.base_file import BASE, change, problems_of

QUOTE = 'quote text that contains brackets, e.g. "gpu[01-32]"'
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{key}: &{key} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, key in zip("abcdefg", "bcdefgh", strict=True)
)

WHOLE = {
    "empty": ("", 1, 1, "The file is empty.", "start with `version: 1`"),
    "only comments": ("# nothing\n", 1, 1, "The file is empty.", "start with `version: 1`"),
    "not UTF-8": (
        b"version: 1\ncluster: \xe4\n",
        2,
        10,
        "The file is not valid UTF-8: byte 0xe4 is invalid.",
        "save the file as UTF-8",
    ),
    "control character": ("a: \x07\n", 1, 4, "The file contains a control character.", "remove it"),
    "tab": ("a:\n\tb: 1\n", 2, 1, "The indentation contains a tab.", "indent with spaces"),
    "second document": (
        "version: 1\n---\nb: 2\n",
        2,
        1,
        "A second YAML document starts here.",
        "remove the line `---`",
    ),
    "colon in a value": (
        "a: b: c\n",
        1,
        5,
        "A second `:` after the value has already begun.",
        "indent the line like its neighbours, or quote a value that contains `: `",
    ),
    "uneven indentation": (
        "a:\n  b: 1\n c: 1\n",
        3,
        2,
        "This line is not indented like its neighbours.",
        "start the keys of one mapping in the same column",
    ),
    "open quote": ("a: 'x\n", 2, 1, "A quote opened before this line is never closed.", "close the quote"),
    "open bracket": ("a: [1, 2\nb: 1\n", 2, 2, "A list in `[` `]` is not closed, or lacks a comma.", QUOTE),
    "open brace": (
        "a: {x: 1\nb: 2\n",
        2,
        2,
        "A mapping in `{` `}` is not closed, or lacks a comma.",
        "close it with `}`",
    ),
    "no colon": (
        "version: 1\nb\n",
        3,
        1,
        "This line has no `:` after its key.",
        "write `key: value`, with a space after the colon",
    ),
    "reserved character": (
        "a: @x\n",
        1,
        4,
        "A value cannot start with this character.",
        "put the value in quotes",
    ),
    "unknown escape": (
        'a: "\\q"\n',
        1,
        5,
        "Text in double quotes contains an unknown `\\` escape.",
        "use single quotes",
    ),
    "item in a value": (
        "a: - b\n",
        1,
        4,
        "A list item cannot start here.",
        "put the `- ` on a separate line below the key",
    ),
    "list that ends in a key": (
        "- a\nb: 1\n",
        2,
        1,
        "A line in this list is not a list item.",
        "start every item of a list with `- ` in the same column",
    ),
    "key that is a list": ("? [a]\n: 1\n", 1, 3, "A key must be plain text.", None),
    "alias without an anchor": ("a: *x\n", 1, 4, "The alias `*x` has no preceding anchor.", None),
    "alias inside its own anchor": ("a: &x [*x]\n", 1, 8, "The alias `*x` contains itself.", None),
    "alias bomb": (
        BOMB,
        5,
        20,
        "Aliases repeat more than 50000 values.",
        "use node ranges and `defaults:` instead of nested aliases",
    ),
    "nested too deep": (
        "a: " + "[" * 60 + "]" * 60,
        1,
        43,
        "Values are nested more than 40 levels deep.",
        None,
    ),
    "a list": (
        "- a\n- b\n",
        1,
        1,
        "The cluster file must be a mapping of sections.",
        "start with `version: 1`",
    ),
    "a word": ("hello\n", 1, 1, "The cluster file must be a mapping of sections.", "start with `version: 1`"),
}


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"), WHOLE.values(), ids=[k.replace(" ", "-") for k in WHOLE]
)
def test_no_cluster_file(tmp_path, text, line, column, message, hint):
    (problem, *others) = problems_of(tmp_path, text)
    assert not others
    assert (problem.line, problem.column, problem.message, problem.hint) == (line, column, message, hint)


def test_every_tab_is_named(tmp_path):
    assert [problem.line for problem in problems_of(tmp_path, "a:\n\tb: 1\n  c:\n  \td: 1\n")] == [2, 4]


def test_too_large(tmp_path):
    (problem,) = problems_of(tmp_path, BASE + "#" * (8 * 1024 * 1024))
    assert problem.message == "The file is larger than 8 MiB."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "The file does not exist."),
        (lambda path: path.mkdir(), "This is a directory, not a file."),
        (lambda path: path.symlink_to(path), "Cannot read the file: too many levels of symbolic links."),
    ],
)
def test_no_readable_file(tmp_path, make, message):
    path = tmp_path / "x.yaml"
    make(path)
    with pytest.raises(ClusterFileError) as caught:
        load_cluster(path)
    assert caught.value.problems[0].message == message


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ClusterFileError, match=r"Cannot read the file: permission denied\."):
        load_cluster(tmp_path / "x.yaml")


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    assert problems_of(tmp_path, b"\xef\xbb\xbf" + BASE.encode()) == ()


def test_scalars_follow_yaml_1_2(tmp_path):
    """YAML 1.1 reads a MAC address as a number in base 60, `no` as false and 0640 in base 8."""
    text = change(
        (
            "position: 1",
            "position: 1\n    macs: [52:54:00:12:34:56, 52:54:00:12:34:57, 52:54:00:12:34:58, 52:54:00:12:34:59]",
        )
    )
    assert problems_of(tmp_path, text) == ()


def test_anchors_and_merges_work_and_keep_their_place(tmp_path):
    text = change(
        (
            "  - nodes: head1\n    roles: [head]\n",
            "  - &common\n    roles: [head]\n    nodes: head1\n    os: debian-14\n",
        ),
        (
            "  - nodes: w[1-4]\n    roles: [worker]\n",
            "  - <<: *common\n    nodes: w[1-4]\n    roles: [worker]\n",
        ),
    )
    found = problems_of(tmp_path, text)
    assert [problem.path for problem in found] == ["nodes[0].os", "nodes[1].os"]
    assert problems_of(tmp_path, text.replace("    os: debian-14\n", "")) == ()


def test_a_secret_that_a_role_would_quote_is_not_shown(tmp_path):
    text = change(("munge: {}", "munge: {}\n  base: {packages: [AGE-SECRET-KEY-1HUNTER2QQ, 'Ä?']}"))
    found = problems_of(tmp_path, text)
    assert "age identity in plaintext." in [problem.message for problem in found]
    assert not any("HUNTER2" in str(problem) for problem in found)


def test_the_error_says_everything(tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(change(("user: admin", "user: root"), ("mtu: 9000", "mtuu: 9000")))
    with pytest.raises(ClusterFileError) as caught:
        load_cluster(path)
    assert caught.value.message == (
        f"{path} has 2 mistakes.\n\n"
        f"{path}:19:5: networks.store.mtuu: Unknown key `mtuu`.\n"
        "  value: 9000\n"
        "  hint: did you mean `mtu`?\n\n"
        f"{path}:29:9: ssh.user: rackwright logs in as an unprivileged user and uses sudo; it never logs in as root.\n"
        "  value: root\n"
        "  hint: name an unprivileged user, e.g. `admin`"
    )
