"""A site's folder as `rackwright init` writes it, and commands in it."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load
from rackwright.errors import ClusterFileError
from rackwright.init.site import make_site
from rackwright.init.start import FILE, Start
from tests.unit.cli.conftest import rackwright

__all__ = ["rackwright"]


@cache
def _made():
    """Made once in a process: its schema takes a second."""
    folder = tempfile.TemporaryDirectory(prefix="rackwright-site-")
    atexit.register(folder.cleanup)
    return make_site(Path(folder.name) / "lab", Start.LAB).folder


class Site:
    """A new site, to be changed file by file."""

    def __init__(self, folder):
        shutil.copytree(_made(), folder)
        self.folder = folder
        self.file = folder / FILE

    def change(self, name, old, new):
        """Replace text that is there once."""
        path = self.folder / name
        text = path.read_text()
        assert text.count(old) == 1, (name, old)
        path.write_text(text.replace(old, new))

    def load(self):
        """As a new process would: nothing of the site is imported yet."""
        for name in [name for name in sys.modules if name.split(".")[0] == "roles"]:
            del sys.modules[name]
        return load(self.file)

    def mistakes(self):
        """The mistakes of the cluster file: (line's text, message)."""
        with pytest.raises(ClusterFileError) as caught:
            self.load()
        lines = self.file.read_text().splitlines()
        return [(lines[one.line - 1].strip(), one.message) for one in caught.value.problems]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "site")
