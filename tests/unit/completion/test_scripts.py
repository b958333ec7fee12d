"""Words of a line that may end anywhere, and the answer as each shell reads it."""

from __future__ import annotations

import os

import pytest

from rackwright.cli import run
from rackwright.completion.line import Answer, Files
from rackwright.completion.scripts import Shell, lines, script, typed_words


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rackwright ", [""]),
        ("rackwright ap", ["ap"]),
        ("rackwright apply 'my si", ["apply", "my si"]),
        ('rackwright apply "my site.yaml" --li', ["apply", "my site.yaml", "--li"]),
        ("rackwright apply my\\ site.yaml ", ["apply", "my site.yaml", ""]),
        ("rackwright apply it\\'s.yaml ", ["apply", "it's.yaml", ""]),
        ("rackwright lab fault n1 disk:f", ["lab", "fault", "n1", "disk:f"]),
        ("rackwright why a.yaml '' ", ["why", "a.yaml", "", ""]),
    ],
)
def test_words_of_a_bash_line(line, words):
    assert typed_words(Shell.BASH, [line, "=:"]) == words


def test_bash_gets_what_follows_its_word_breaks():
    found = Answer({"disk:fail": "", "disk:slow": ""})
    assert lines(Shell.BASH, found, ["rackwright lab fault n1 disk:", " =:"]) == ["none", "fail", "slow"]
    assert lines(Shell.BASH, found, ["rackwright lab fault n1 disk:", " ="]) == [
        "none",
        "disk:fail",
        "disk:slow",
    ]


def test_zsh_gets_escaped_colons_and_descriptions():
    found = Answer({"disk:fail": "", "plan": "Show: all."}, Files.YAML)
    assert lines(Shell.ZSH, found, []) == ["yaml", "disk\\:fail", "plan:Show: all."]


def test_fish_gets_descriptions_after_a_tab():
    assert lines(Shell.FISH, Answer({"plan": "Show."}), []) == ["none", "plan\tShow."]


def test_a_name_with_control_characters_reaches_no_terminal():
    assert lines(Shell.FISH, Answer({"a\x1b[2Jb": ""}), [])[1] == r"a\x1b[2Jb"


@pytest.mark.parametrize("shell", list(Shell))
def test_each_script_is_printed(rackwright_output, shell):
    assert rackwright_output("completion", shell.value) == script(shell)


@pytest.fixture
def rackwright_output(capsys):
    def call(*words: str) -> str:
        assert run(words) == 0
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize(
    "words", [[], ["tcsh", "--", ""], ["bash"], ["bash", "--"], ["zsh", "--"], ["fish", "--", "\udcff"]]
)
def test_nothing_is_an_error(capfd, words):
    assert run(["completion", "answer", *words]) == 0
    assert capfd.readouterr().err == ""


def test_a_cache_that_cannot_be_written_is_done_without(capfd, monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert run(["completion", "answer", "fish", "--", "why", "--j"]) == 0
    out, err = capfd.readouterr()
    assert (out.splitlines()[1:], err) == (["--json\tPrint the JSON document."], "")


def test_a_damaged_cache_is_read_past(capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for text in (None, "{", "[]", '{"help": 1}'):
        for path in tmp_path.rglob("why.json"):
            if text is not None:
                path.write_text(text)
        assert run(["completion", "answer", "fish", "--", "why", "--j"]) == 0
        assert "--json" in capfd.readouterr().out
    kept = list(tmp_path.rglob("*.json"))
    assert len(kept) == 1
    old = kept[0].parent.parent / "0.0.1-1"
    old.mkdir()
    os.rename(kept[0].parent, tmp_path / "gone")
    assert run(["completion", "answer", "fish", "--", "why", "--j"]) == 0
    assert not old.exists()
