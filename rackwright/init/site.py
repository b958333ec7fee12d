"""The files of a new site."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rackwright import __version__
from rackwright.atomic_write import write_atomically
from rackwright.clusterfile.json_schema import cluster_schema
from rackwright.clusterfile.load import load
from rackwright.errors import RackwrightError
from rackwright.init.start import FILE, LOCK, Start, cluster_files
from rackwright.model.text import label_mistake
from rackwright.render import render

SCHEMA = "cluster.schema.json"
_SECTION = "motd: {contact: the operators of this cluster} # the example in roles/motd"
_FILES = {
    "README.md": "init/README.md.j2",
    "requirements.txt": "init/requirements.txt.j2",
    ".gitignore": "init/gitignore.j2",
    ".github/workflows/rackwright.yml": "init/workflows/rackwright.yml.j2",
    "roles/__init__.py": "init/roles/__init__.py.j2",
    "roles/motd/__init__.py": "init/roles/motd/__init__.py.j2",
    "roles/motd/options.py": "init/roles/motd/options.py.j2",
    "roles/motd/deploy.py": "init/roles/motd/deploy.py.j2",
    "roles/motd/verify.py": "init/roles/motd/verify.py.j2",
    "templates/motd/motd.j2": "init/templates/motd/motd.j2.j2",
    "deploys/site.py": "init/deploys/site.py.j2",
    "checks/test_site.py": "init/checks/test_site.py.j2",
}
"""Path in the folder -> template."""


@dataclass(frozen=True)
class NewSite:
    """What `init` wrote."""

    folder: Path
    cluster: str
    written: tuple[Path, ...]
    """Relative to the folder; files that were there with the same text are left out."""

    @property
    def file(self) -> Path:
        """The cluster file."""
        return self.folder / FILE


def make_site(folder: Path, start: Start) -> NewSite:
    """Write the folder; the cluster is named after it where that is a valid name, else as the example.

    RackwrightError, and nothing written, where a file is there with another text.
    """
    files = cluster_files(start, _SECTION)
    example = _name_of(files[FILE])
    cluster = folder.absolute().name
    if label_mistake(cluster) is None:
        files[FILE] = files[FILE].replace(f"\n  name: {example}\n", f"\n  name: {cluster}\n", 1)
        if LOCK in files:
            files[LOCK] = files[LOCK].replace(f"\ncluster: {example}\n", f"\ncluster: {cluster}\n", 1)
    else:
        cluster = example
    files |= _rendered(cluster, start)
    differ = [name for name, text in files.items() if _other_text(folder / name, text)]
    if differ:
        shown = ", ".join(sorted(differ)[:5]) + (f" and {len(differ) - 5} more" if len(differ) > 5 else "")
        raise RackwrightError(
            f"{folder} has files that `init` would replace: {shown}.",
            hint="name a folder that does not exist yet",
        )
    written = [name for name in sorted(files) if not (folder / name).exists()]
    try:
        for name in written:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / name, files[name], mode=0o644)
        written += _write_schema(folder)
    except OSError as error:
        raise RackwrightError(f"{folder} cannot be written: {error.strerror}.") from error
    return NewSite(folder, cluster, tuple(map(Path, written)))


def _name_of(text: str) -> str:
    """`cluster.name` of an example, whose text is ours."""
    lines = text.splitlines()
    start = lines.index("cluster:")
    return next(line.split(":", 1)[1].strip() for line in lines[start:] if line.strip().startswith("name:"))


def _rendered(cluster: str, start: Start) -> dict[str, str]:
    """Path below the folder -> text, from templates/init."""
    values = {"cluster": cluster, "file": FILE, "lab": start is Start.LAB, "version": __version__}
    return {name: render(template, **values) for name, template in _FILES.items()}


def _other_text(path: Path, text: str) -> bool:
    try:
        return path.read_text(errors="replace") != text
    except FileNotFoundError:
        return False
    except OSError:
        return True  # a folder, or not readable


def _write_schema(folder: Path) -> list[str]:
    """The schema with the site's roles, for editors: it follows rackwright, so it is not kept in git."""
    text = json.dumps(cluster_schema(load(folder / FILE, locked=False).known), indent=1) + "\n"
    if not _other_text(folder / SCHEMA, text) and (folder / SCHEMA).exists():
        return []
    write_atomically(folder / SCHEMA, text, mode=0o644)
    return [SCHEMA]
