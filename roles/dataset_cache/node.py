"""Runs on the node: a read cache of datasets. Standard library alone, Python 3.9.

rackwright-dataset fetch NAME    as root: fetches a dataset unless it is cached, and prints its folder
rackwright-dataset path NAME     prints the folder of a complete dataset
rackwright-dataset verify NAME   compares its files with the checksums taken when it was fetched
rackwright-dataset drop NAME     as root: removes it
rackwright-dataset fill          as root, from a timer: fetches kept datasets, removes undeclared ones
rackwright-dataset list          prints JSON: the state and size of each
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from rackwright.node_folders.mounted import Unsafe
from rackwright.node_folders.quota import NoQuota
from rackwright.roles.dataset_cache.node_cache import Cache, CacheMistake, locked, opened_cache
from rackwright.roles.dataset_cache.node_fetch import fetch, fill
from rackwright.roles.dataset_cache.node_files import differences
from rackwright.roles.dataset_cache.paths import SETTINGS

WITH_NAME = ("fetch", "path", "verify", "drop")
WITHOUT = ("fill", "list")


def run(command: str, name: str, settings: dict[str, Any]) -> int:
    """One command; exit status."""
    if name and name not in settings["datasets"]:
        raise CacheMistake(
            f"dataset {name!a} is not declared; declared: {', '.join(sorted(settings['datasets']))}"
        )
    if command == "path":
        return _path(settings, name)
    with opened_cache(settings) as cache:
        if command == "drop":
            with locked(f"{name}.fetch", cache.state):
                cache.drop(name)
        elif command == "fetch":
            print(fetch(cache, name))
        elif command == "fill":
            return fill(cache)
        elif command == "verify":
            return _verify(cache, name)
        else:
            print(json.dumps(cache.listing()))
    return 0


def _path(settings: dict[str, Any], name: str) -> int:
    """For users, who may not read the cache's state: a folder exists only when it is complete."""
    folder = os.path.join(settings["root"], settings["folder"], name)
    if not os.path.isdir(folder):
        raise CacheMistake(f"{name} is not on this node")
    print(folder)
    return 0


def _verify(cache: Cache, name: str) -> int:
    if not cache.is_complete(name):
        raise CacheMistake(f"{name} is not on this node")
    wrong = 0
    for line in differences(cache.path(name), cache.manifest(name)):
        print(line)
        wrong = 1
    return wrong


def main(arguments: list[str], path: str = SETTINGS) -> int:
    """Reports errors without a traceback."""
    command = arguments[0] if arguments else ""
    if len(arguments) != (2 if command in WITH_NAME else 1) or command not in (*WITH_NAME, *WITHOUT):
        print("usage: rackwright-dataset {fetch|path|verify|drop} NAME | fill | list", file=sys.stderr)
        return 64
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    os.umask(0o077)
    try:
        with open(path, encoding="utf-8") as text:
            settings = json.load(text)
            if command != "path" and os.fstat(text.fileno()).st_uid != os.geteuid():
                raise CacheMistake("this command needs root; users can run `rackwright-dataset path NAME`")
        return run(command, "".join(arguments[1:]), settings)
    except (Unsafe, NoQuota, CacheMistake) as error:
        print(f"rackwright-dataset: {error}", file=sys.stderr)
    except (OSError, ValueError) as error:
        print(f"rackwright-dataset: {type(error).__name__}: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
