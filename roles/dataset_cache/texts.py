"""Files of the dataset_cache role, by path."""

from __future__ import annotations

import json
from functools import cache

from rackwright.model.cluster import Node
from rackwright.node_programs import one_text
from rackwright.render import render
from rackwright.roles.dataset_cache import paths
from rackwright.roles.dataset_cache.options import Dataset, DatasetCacheOptions


@cache
def program() -> str:
    """The program on the node."""
    return one_text("rackwright.roles.dataset_cache.node")


def settings(node: Node, options: DatasetCacheOptions) -> str:
    """What the program reads; users read it too."""
    found = {
        "root": options.filesystem_of(node).path,
        "folder": paths.CACHE,
        "limit_gib": options.limit_gib,
        "project": options.project_id or 0,
        "group": options.group,
        "rclone_config": options.rclone_config,
        "fetch_seconds": options.fetch_hours * 3600,
        "datasets": {name: _dataset(node, one) for name, one in options.datasets.items()},
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def _dataset(node: Node, one: Dataset) -> dict[str, object]:
    mount = next((fs.path for fs in node.filesystems if fs.name == one.filesystem), None)
    return {
        "mount": mount,
        "from": one.remote if mount is None else f"{mount}/{one.folder}",
        "gib": one.size_gib,
        "keep": one.keep,
        "checksums": one.checksums,
    }


def files(node: Node, options: DatasetCacheOptions) -> dict[str, tuple[str, str]]:
    """(content, mode) by path."""
    path = options.filesystem_of(node).path
    seconds = options.fetch_hours * 3600 * sum(one.keep for one in options.datasets.values()) + 600
    service = render("dataset_cache/fill.service.j2", path=path, run=paths.RUN, seconds=seconds)
    timer = render("dataset_cache/fill.timer.j2", path=path)
    return {
        paths.PROGRAM: (program(), "644"),
        paths.COMMAND: (render("dataset_cache/command.sh.j2", run=paths.RUN), "755"),
        paths.SETTINGS: (settings(node, options), "644"),
        f"{paths.UNITS}/{paths.FILL}": (service, "644"),
        f"{paths.UNITS}/{paths.TIMER}": (timer, "644"),
    }
