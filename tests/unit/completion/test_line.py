"""What can stand in the word that is being typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.cli import _COMMANDS, _load
from rackwright.cli.completion_tree import describe, root
from rackwright.completion.commands import Command
from rackwright.completion.line import Files, answer

SITE = """\
version: 1
nodes:
  - nodes: head[1-2]
    roles: [head]
  - nodes: gpu[001-003],gpu005
    roles: [worker]
networks: {management: {}, fabric: {}}
storage: {scratch: {}}
roles: {base: {}, slurm: {}}
"""


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    return str(path)


def offered(*words):
    return answer(root(), lambda name: describe(_load(name)) if name in _COMMANDS else None, words)


def test_commands_with_their_descriptions():
    assert offered("ap").words == {"apply": "Show the plan, confirm, bring nodes to the declared state."}
    assert {"plan", "apply", "lab"} <= set(offered("").words)


def test_options_of_a_command():
    found = offered("apply", "--c")
    assert list(found.words) == ["--canary", "--confirm"]
    assert found.words["--canary"] == "Number of canary nodes, applied first and alone."


def test_a_flag_is_offered_once_and_an_option_with_a_value_again(site):
    assert "--yes" not in offered("apply", "--yes", "--y").words
    assert "--role" in offered("apply", "--role", "base", "--r").words


def test_the_cluster_file_comes_from_the_shell():
    assert offered("apply", "").files is Files.YAML
    assert offered("apply", "x.yaml", "--plan", "").files is Files.ANY
    assert offered("accept", "x.yaml", "--report", "").files is Files.FOLDERS
    assert offered("apply", "x.yaml", "--wave", "").files is Files.NONE


def test_nodes_of_the_file_on_the_line(site):
    assert list(offered("why", site, "").words) == ["head1", "head2", "gpu001", "gpu002", "gpu003", "gpu005"]
    assert list(offered("why", site, "gpu00").words) == ["gpu001", "gpu002", "gpu003", "gpu005"]


def test_nodesets(site):
    assert list(offered("apply", site, "--limit", "").words) == ["head[1-2]", "gpu[001-003],gpu005"]
    assert list(offered("apply", site, "--limit", "head").words) == ["head[1-2]", "head1", "head2"]
    assert "gpu[001,003],head1" in offered("apply", site, "--limit", "gpu[001,003],he").words
    assert "--limit=head1" in offered("apply", site, "--limit=he").words


def test_roles_networks_and_filesystems_of_the_file(site):
    assert list(offered("plan", site, "--role", "").words) == ["base", "slurm"]
    assert list(offered("fabric", "show", site, "--network", "f").words) == ["fabric"]
    assert list(offered("storage", "bench", site, "--fs", "").words) == ["scratch"]
    assert "gpu001=" in offered("decommission", site, "--serial", "").words


def test_words_that_need_no_file(site):
    assert {"bmc:hang", "disk:fail", "gpu:xid:N"} <= set(offered("lab", "fault", "n1", "").words)
    assert list(offered("bmc", "power", site, "c").words) == ["cycle"]
    assert list(offered("burnin", "run", site, "--profile", "").words) == ["quick", "acceptance", "soak"]


def test_the_file_of_a_lab_command_is_an_option(site):
    assert list(offered("lab", "heal", "--file", site, "head").words) == ["head1", "head2"]
    assert list(offered("lab", "heal", "-f", site, "head").words) == ["head1", "head2"]


def test_without_a_file_a_lab_command_reads_its_default(monkeypatch, tmp_path, site):
    monkeypatch.chdir(tmp_path)
    assert offered("lab", "heal", "").words == {}
    (tmp_path / "inventory").mkdir()
    Path(site).rename(tmp_path / "inventory" / "lab.yaml")
    assert list(offered("lab", "heal", "").words)[:2] == ["head1", "head2"]


def test_a_group_with_a_default_command(site):
    found = offered("drift", "")
    assert {"check", "install", "uninstall"} <= set(found.words)
    assert found.files is Files.YAML
    assert "--repair" in offered("drift", site, "--r").words


def test_arguments_are_followed_by_options(site):
    assert "--json" in offered("why", site, "gpu001", "").words
    assert offered("why", site, "--", "--").words == {}


def test_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "rackwright" / "lab" / "runs"
    folder.mkdir(parents=True)
    for day in range(10, 40):
        (folder / f"202611{day}T000000Z-abcdef.jsonl").touch()
    found = list(offered("resume", "").words)
    assert found[0] == "20261139T000000Z-abcdef"
    assert len(found) == 20


@pytest.mark.parametrize(
    "text", ["", "nodes: [", "nodes: 3", "- 1", "nodes: [{nodes: 'gpu[1-'}]", "\0", "é: {"]
)
def test_a_file_that_is_being_edited_offers_nothing(tmp_path, text):
    path = tmp_path / "site.yaml"
    path.write_text(text)
    for words in (
        ("why", str(path), ""),
        ("plan", str(path), "--role", ""),
        ("apply", str(path), "--limit", "g"),
    ):
        assert [one for one in offered(*words).words if not one.startswith("--")] == []


@pytest.mark.parametrize("words", [("nothing", ""), ("lab", "nothing", ""), ("apply", "--nothing=", "")])
def test_what_is_not_known_is_no_error(words):
    assert offered(*words).words == {}


def test_every_command_survives_the_cache():
    for name in ("apply", "lab", "burnin", "bmc", "runs"):
        described = describe(_load(name))
        assert Command.from_json(described.to_json()) == described
