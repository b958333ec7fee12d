"""A small git repository with long tests of its own, and suites over it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proof.suites import Suite

_README = "# Cluster\n\n<!-- proof: begin -->\nstale\n<!-- proof: end -->\n\nThe rest.\n"


class Repository:
    """A checkout in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "main")
        self.write("README.md", _README)
        self.write("docs/other.md", "text\n")
        self.write("src/engine.py", "x = 1\n")
        self.write(".gitignore", "/.cache/\n__pycache__/\n.pytest_cache/\n*.log\n")
        self.commit("first")

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout.strip()

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """One commit, whatever git is configured to do on this machine."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@lab.test")
    root = tmp_path / "repository"
    root.mkdir()
    return Repository(root)


@pytest.fixture
def make_suite() -> Callable[..., Suite]:
    """A suite over src/ and long/."""

    def make(**changes: object) -> Suite:
        fields: dict[str, object] = {
            "name": "engine",
            "proves": "The engine holds.",
            "paths": ("src", "long"),
            "tests": ("long",),
            "smoke": ("long", "-k", "quick"),
            "limit_seconds": 60,
        }
        return Suite(**{**fields, **changes})

    return make


@pytest.fixture(autouse=True)
def _few_plugins(monkeypatch):
    """The pytest that a runner starts loads no plugin that happens to be installed: a third of its start."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
