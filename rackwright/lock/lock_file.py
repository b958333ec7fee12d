"""The lock file next to the cluster file: sorted and stable, read by the roles."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from rackwright import __version__
from rackwright.documents.document import read_document
from rackwright.documents.syntax import DocumentError
from rackwright.errors import RackwrightError
from rackwright.lock.content import Lock
from rackwright.model.cluster import Cluster

_HEADER = """\
# Written by `rackwright lock` ({version}); do not edit. Change `gpu_stack` in {file}, lock again,
# and commit both. Solved from tables last read {dates}; {index}.
"""


_IMAGES_HEADER = """\
# Written by `rackwright bundle {file} --resolve` ({version}); do not edit. Digests of images, as their registries
# had them; {file} has no GPU stack to lock.
"""


def requested_stack(cluster: Cluster) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The section gpu_stack as a lock stores it, and its indexes as the cluster file names them.

    Defaults are left out, and so is the checkout's own folder.
    """
    if cluster.gpu_stack is None:
        return {}, ()
    stack = cluster.gpu_stack.model_dump(mode="json", exclude_defaults=True, exclude={"package_index"})
    folder = f"{cluster.path.parent}/"
    return stack, tuple(place.removeprefix(folder) for place in cluster.gpu_stack.package_index)


def lock_text(lock: Lock, file: str) -> str:
    """The file's whole text; equal locks give equal texts."""
    dates = sorted(set(lock.tables.values()))
    if not dates:
        return _IMAGES_HEADER.format(version=__version__, file=file) + _body(lock)
    when = f"on {dates[0]}" if len(dates) == 1 else f"from {dates[0]} to {dates[-1]}"
    index = "package indexes were read" if lock.index else "no package index was read"
    return _HEADER.format(version=__version__, file=file, dates=when, index=index) + _body(lock)


def _body(lock: Lock) -> str:
    data = lock.model_dump(mode="json", exclude_none=False, exclude=set() if lock.images else {"images"})
    body: str = yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True)
    return body


def with_locked_images(lock: Lock, cluster: Cluster) -> Lock:
    """A new lock with the digests of images that the old one has: they are not solved, but read from registries."""
    try:
        return lock.model_copy(update={"images": read_lock(cluster).images})
    except RackwrightError:  # none, or damaged: it is written anew
        return lock


def read_lock(cluster: Cluster) -> Lock:
    """The lock beside the cluster file. Raises RackwrightError where there is none or it is damaged."""
    path = cluster.lock_path
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    return _read(path, stamp, cluster.path.name)


@lru_cache(maxsize=8)
def _read(path: Path, stamp: int, file: str) -> Lock:
    """Read once for all nodes and roles of a run; `stamp` distinguishes versions of the file."""
    again = f"run: rackwright lock {file}"
    if not stamp:
        raise RackwrightError(f"The lock file {path} does not exist.", hint=again)
    try:
        return Lock.model_validate(read_document(path).data)
    except (DocumentError, ValidationError):
        raise RackwrightError(f"The lock file {path} is damaged.", hint=again) from None
