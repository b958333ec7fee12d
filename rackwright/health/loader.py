"""The modules of a bundled script: read from its text, compiled once, kept for the next start.

`bundle` puts this file's source at the top of the scripts it makes; nothing else uses it. Compiling is most of
what a start costs, and the scheduler starts the health check around every job. The kept code is an optimization and
nothing more: where it is absent, damaged, another's, or of another script or Python, the text is compiled.
Python 3.6 can parse this file, so that an old Python is told what is missing: hence the quoted annotations.
"""

import importlib.machinery
import importlib.util
import marshal
import os
import sys
import time
from types import CodeType, ModuleType
from typing import Any

MARK = "#### module "
"""Begins the line before each module's text, with its name."""
LEFTOVER_SECONDS = 60.0
"""A file half written for so long is of a start that was killed."""


def split(text: str) -> "dict[str, str]":
    """Each module's text by its name."""
    parts = ("\n" + text.rstrip("\n")).split("\n" + MARK)[1:]
    return {name: source + "\n" for name, _, source in (part.partition("\n") for part in parts)}


def compiled(text: str) -> "dict[str, CodeType]":
    """Each module's code by its name."""
    return {
        name: compile(source, name + ".py", "exec", dont_inherit=True) for name, source in split(text).items()
    }


def identity(script: str, digest: str) -> bytes:
    """What kept code must be of: this Python, and this script as it stands (somebody may have edited it)."""
    told, python = os.stat(script), sys.implementation.cache_tag
    magic, optimize = importlib.util.MAGIC_NUMBER.hex(), sys.flags.optimize
    file = f"{told.st_ino} {told.st_size} {told.st_mtime_ns} {told.st_ctime_ns}"
    return f"rackwright {python} {magic} {optimize} {file} {digest}\n".encode()


def kept(path: str, wanted: bytes) -> "dict[str, CodeType] | None":
    """The code another start has kept, None where it cannot be used. Only our own file is believed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            told = os.fstat(handle)
            if told.st_uid != os.geteuid() or told.st_mode & 0o022:
                return None
            if file.read(len(wanted)) != wanted:
                return None
            check, code = file.read(8), file.read()
            if importlib.util.source_hash(code) != check:
                return None
            found: dict[str, CodeType] = marshal.loads(code)
            return found
    except (OSError, ValueError, EOFError, TypeError):
        return None


def keep(path: str, wanted: bytes, found: "dict[str, CodeType]") -> None:
    """Keep the code for the next start, whole or not at all, in place of what was kept."""
    new = path + ".new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        folder = os.stat(os.path.dirname(path))
        if folder.st_uid != os.geteuid() or folder.st_mode & 0o022:
            return
        code = marshal.dumps(found)
        handle = os.open(new, flags, 0o600)
    except FileExistsError:
        _clear(new)
        return
    except (OSError, ValueError):
        return
    try:
        with open(handle, "wb") as file:
            file.write(wanted + importlib.util.source_hash(code) + code)
        os.replace(new, path)
    except OSError:  # on a full disk
        _remove(new)


def _clear(new: str) -> None:
    """Another start is writing, or was killed while it did."""
    try:
        if abs(time.time() - os.lstat(new).st_mtime) > LEFTOVER_SECONDS:
            _remove(new)
    except OSError:
        return


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def load(
    text: str, script: "str | None", installed: "str | None", path: str, digest: str
) -> "dict[str, CodeType]":
    """Code by module. It is kept for the script at its installed place alone: any other leaves nothing behind."""
    if script is None or script != installed:
        return compiled(text)
    try:
        wanted = identity(script, digest)
    except OSError:
        return compiled(text)
    found = kept(path, wanted)
    if found is None:
        found = compiled(text)
        keep(path, wanted, found)
    return found


class Bundle:
    """Imports the modules of the script, before any of the same name elsewhere."""

    def __init__(self, codes: "dict[str, CodeType]") -> None:
        self._codes = codes
        self._packages = {name.rpartition(".")[0] for name in codes}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ANN401 - importlib's
        """A module of the script."""
        if name in self._codes:
            return importlib.machinery.ModuleSpec(name, self, is_package=name in self._packages)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: Any) -> None:  # noqa: ANN401
        """As Python does it."""

    def exec_module(self, module: ModuleType) -> None:
        """Run its code."""
        exec(self._codes[module.__name__], module.__dict__)  # noqa: S102 - what importing is
