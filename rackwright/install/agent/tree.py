"""Writes node files below its mounted root; links are followed only inside it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rackwright.install.agent.order import File, Folder
from rackwright.install.agent.programs import AgentError

_LINKS_MAX = 40


def inside(root: str, path: str) -> str:
    """Location of a node path below `root`, with folder links followed as the node would follow them."""
    parts, place, links = [part for part in path.split("/") if part], "", 0
    while parts:
        part = parts.pop(0)
        if part == ".":
            continue
        if part == "..":
            place = os.path.dirname(place)
            continue
        whole = f"{root}{place}/{part}"
        if parts and os.path.islink(whole):
            links += 1
            if links > _LINKS_MAX:
                raise AgentError(f"{path}: too many links in the image")
            pointed = os.readlink(whole)
            if pointed.startswith("/"):
                place = ""
            parts = [one for one in pointed.split("/") if one] + parts
            continue
        place = f"{place}/{part}"
    return root + place


def write(root: str, file: File) -> None:
    """Write one file, replacing the image's."""
    place = inside(root, file.path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.isdir(place) and not os.path.islink(place):
        raise AgentError(f"{file.path} is a folder in the image, but the head sends a file")
    unfinished = f"{place}.rackwright-new"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(file.content)
        os.fchown(opened.fileno(), file.uid, file.gid)
        os.fchmod(opened.fileno(), file.mode)
    os.replace(unfinished, place)


def make_folder(root: str, folder: Folder) -> None:
    """Create a folder with owner and mode; missing parents belong to root."""
    place = inside(root, f"{folder.path}/.")
    os.makedirs(place, exist_ok=True)
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchown(descriptor, folder.uid, folder.gid)
        os.fchmod(descriptor, folder.mode)
    finally:
        os.close(descriptor)


def put(root: str, path: str, content: str, mode: int = 0o644) -> None:
    """Write a file owned by root."""
    write(root, File(path, content, mode, 0, 0))


def require_programs(root: str, programs: Sequence[tuple[str, str]]) -> None:
    """AgentError naming the packages of missing programs; takes pairs of program and package."""
    missing = sorted(
        {
            package
            for program, package in programs
            if not any(
                os.path.exists(inside(root, f"/{folder}/{program}")) for folder in ("usr/sbin", "usr/bin")
            )
        }
    )
    if missing:
        raise AgentError(
            f"the image lacks programs for this layout: build it with the package {', '.join(missing)} "
            "(rackwright image build --format root)"
        )
