"""Fetches datasets: beside the cache, then into it by one rename. Runs on the node: standard library, Python 3.9."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rackwright.node_folders.mounted import Unsafe
from rackwright.node_folders.quota import NoQuota
from rackwright.roles.dataset_cache.node_cache import GIB, Cache, CacheMistake, locked
from rackwright.roles.dataset_cache.node_child import ChildFailed, in_child
from rackwright.roles.dataset_cache.node_copy import copy
from rackwright.roles.dataset_cache.node_files import (
    FilesMistake,
    compared,
    flush,
    read_sums,
    seal,
    size_of,
    write_sums,
)
from rackwright.roles.dataset_cache.node_readers import reader_of

_ROOM_SECONDS = 3600.0


def fetch(cache: Cache, name: str) -> str:
    """The folder of a dataset, which is fetched unless it is there."""
    if cache.is_complete(name):
        os.utime(cache.manifest(name))
        return cache.path(name)
    with locked(f"{name}.fetch", cache.state):
        if not cache.is_complete(name):
            if os.path.isdir(cache.path(name)):
                cache.drop(name)  # without its checksums it is not known to be whole
            cache.keep_limit()
            with locked(".room", cache.state, _ROOM_SECONDS):
                cache.make_room(name)
            _copy(cache, name)
            _accept(cache, name)
    return cache.path(name)


def _copy(cache: Cache, name: str) -> None:
    declared, target = cache.settings["datasets"][name], cache.incoming(name)
    seconds = cache.settings["fetch_seconds"]
    try:
        if declared["mount"] is None:
            os.makedirs(target, 0o700, exist_ok=True)
            _run(command_of(declared, target, cache.settings), seconds)
        else:
            folder = os.path.relpath(declared["from"], declared["mount"])
            in_child(partial(copy, declared["mount"], folder, target), seconds)
    except (TimeoutError, subprocess.TimeoutExpired):
        raise CacheMistake(
            f"{name}: the copy took longer than `fetch_hours`; the next fetch resumes"
        ) from None
    except ChildFailed as error:
        raise CacheMistake(f"{name}: {error}") from None


def _run(command: list[str], seconds: float) -> None:
    # Login shells may have it from the role object_store, and rclone refuses S3 then.
    environment = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1][:300]
        raise ChildFailed(f"{command[0]} exited {done.returncode}: {last}")


def command_of(declared: Mapping[str, Any], target: str, settings: Mapping[str, Any]) -> list[str]:
    """What copies from an object store."""
    return ["rclone", "sync", "--config", settings["rclone_config"], declared["from"], target]


def _accept(cache: Cache, name: str) -> None:
    """Complete into the cache, or removed."""
    declared, target = cache.settings["datasets"][name], cache.incoming(name)
    size = size_of(target)
    if size > declared["gib"] * GIB:
        cache.drop(name)
        raise CacheMistake(f"{name} has {size / GIB:.1f} GiB, but {declared['gib']} are declared")
    try:
        sums = seal(target, cache.group, cache.settings["group"] is None)
        if not sums:
            raise FilesMistake("its source is empty")
        if declared["checksums"] is not None:
            wanted = read_sums(os.path.join(target, declared["checksums"]))
            if wrong := list(compared(sums, wanted, whole=False)):
                raise FilesMistake(
                    f"{'; '.join(wrong[:3])}{f'; and {len(wrong) - 3} more' if wrong[3:] else ''}"
                )
    except (FilesMistake, FileNotFoundError) as error:
        cache.drop(name)  # another fetch would take what is here for whole
        raise CacheMistake(f"{name}: {error}") from None
    write_sums(cache.manifest(name), sums)
    flush(target)
    os.rename(target, cache.path(name))


def fill(cache: Cache) -> int:
    """Fetch the datasets that are kept and remove undeclared ones; exit status. One that fails does not stop the others."""
    failed = _reported(cache.keep_limit)
    for name in sorted({*cache.names(), *cache.begun()}):
        if name not in cache.settings["datasets"]:
            failed |= _reported(partial(_drop_unused, cache, name))
    for name, declared in cache.settings["datasets"].items():
        if declared["keep"] and not cache.is_complete(name):
            failed |= _reported(partial(fetch, cache, name))
    return failed


def _drop_unused(cache: Cache, name: str) -> None:
    """A job may have started while the dataset was declared, or under its former name."""
    if reader := reader_of(cache.path(name)):
        print(
            f"rackwright-dataset: {name} is no longer declared but in use by process {reader}: kept for now"
        )
    else:
        with locked(f"{name}.fetch", cache.state):  # a fetch from before may still copy
            cache.drop(name)


def _reported(work: Callable[[], object]) -> int:
    try:
        work()
    except (CacheMistake, NoQuota, Unsafe, OSError) as error:
        print(f"rackwright-dataset: {error}", file=sys.stderr)
        return 1
    return 0
