"""What a suite depends on: its digest, and which suites a change touches."""

from __future__ import annotations

import pytest

from rackwright.errors import RackwrightError
from tests.proof.suites import Tier
from tests.proof.tree import Tree, UnknownRef, touched


@pytest.fixture
def digest(repository, make_suite):
    """The digest of the full tier, now."""
    return lambda **changes: Tree(repository.root).digest(make_suite(**changes), Tier.FULL)


def test_content_counts_and_history_does_not(repository, digest):
    before = digest()
    repository.write("src/engine.py", "x = 2\n")
    changed = digest()
    assert changed != before
    repository.commit("second")
    assert digest() == changed
    repository.write("src/engine.py", "x = 1\n")
    assert digest() == before


def test_an_untracked_file_counts_unless_git_ignores_it(repository, digest):
    before = digest()
    repository.write("src/new.log", "ignored\n")
    assert digest() == before
    repository.write("src/new.py", "")
    assert digest() != before


def test_a_renamed_and_a_deleted_file_count(repository, digest):
    before = digest()
    (repository.root / "src/engine.py").rename(repository.root / "src/motor.py")
    renamed = digest()
    assert renamed != before
    (repository.root / "src/motor.py").unlink()
    assert digest() not in (before, renamed)


def test_a_link_counts_by_its_target(repository, digest):
    link = repository.root / "src/link"
    link.symlink_to("nowhere")
    before = digest()
    link.unlink()
    link.symlink_to("engine.py")
    to_a_file = digest()
    assert to_a_file != before
    link.unlink()
    link.write_text((repository.root / "src/engine.py").read_text())
    assert digest() not in (before, to_a_file)


def test_other_files_do_not_count(repository, digest):
    before = digest()
    repository.write("docs/other.md", "other\n")
    repository.write("src2/engine.py", "x = 2\n")
    assert digest() == before


def test_how_the_tests_are_run_counts_and_the_description_does_not(digest):
    before = digest()
    assert digest(environment={"RACKWRIGHT_TEST_ROUNDS": "40"}) != before
    assert digest(tests=("long", "-x")) != before
    assert digest(proves="Something else.", limit_seconds=1, smoke=("long",)) == before


def test_since_a_ref_counts_what_is_committed_uncommitted_and_untracked(repository, make_suite):
    repository.git("checkout", "-q", "-b", "topic")
    suites = tuple(make_suite(name=name, paths=(name,)) for name in ("a", "b", "c", "d", "docs"))
    tree = Tree(repository.root)
    assert touched(suites, tree.changed_since("main")) == ()
    repository.write("a/1", "committed")
    repository.commit("second")
    repository.write("b/1", "staged")
    repository.git("add", "b")
    repository.write("c/1", "untracked")
    repository.write("cc/1", "of no suite")
    (repository.root / "docs/other.md").unlink()
    assert [suite.name for suite in touched(suites, tree.changed_since("main"))] == ["a", "b", "c", "docs"]


def test_since_a_ref_leaves_out_what_others_did_there(repository):
    repository.git("checkout", "-q", "-b", "topic")
    repository.git("checkout", "-q", "main")
    repository.write("theirs", "")
    repository.commit("theirs")
    repository.git("checkout", "-q", "topic")
    repository.write("ours", "")
    assert Tree(repository.root).changed_since("main") == ["ours"]


def test_a_rename_touches_both_places(repository):
    repository.git("mv", "src/engine.py", "moved.py")
    assert Tree(repository.root).changed_since("HEAD") == ["moved.py", "src/engine.py"]


@pytest.mark.parametrize("ref", ["origin/none", "", "--all"])
def test_an_unknown_ref_is_refused(repository, ref):
    with pytest.raises(UnknownRef, match="git knows no commit") as error:
        Tree(repository.root).changed_since(ref)
    assert error.value.exit_code == 64


def test_uncommitted_is_about_the_suite_s_files(repository):
    tree = Tree(repository.root)
    assert tree.commit() == repository.git("rev-parse", "HEAD")
    repository.write("docs/other.md", "other\n")
    assert not tree.uncommitted(["src"])
    repository.write("src/new.py", "")
    assert tree.uncommitted(["src"])


def test_a_folder_without_git_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(RackwrightError, match="not a git repository"):
        Tree(tmp_path).commit()
