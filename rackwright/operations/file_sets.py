"""Several text files of root's at once, after their folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from pyinfra.context import host

from rackwright.extra_lines import named
from rackwright.operations import files


def file_set(
    wanted: Mapping[str, str | None],
    programs: tuple[str, ...] = (),
    validated: Mapping[str, str] | None = None,
    there: tuple[str, ...] = (),
) -> None:
    """Files by path; None for one that must not exist.

    + programs: paths of those that may be run
    + validated: command with `%s` for the new file, by path; it does not land when the command fails
    + there: folders that are made already
    """
    folders = {str(PurePosixPath(path).parent) for path, content in wanted.items() if content is not None}
    for folder in host.loop(sorted(folders.difference(there))):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {folder}", path=folder)
    for path, content in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        if content is None:
            files.absent(name=f"Remove {path}", path=path)
            continue
        files.file(
            name=named(f"Write {path}", content),
            path=path,
            content=content,
            mode="755" if path in programs else "644",
            validate=(validated or {}).get(path),
        )
