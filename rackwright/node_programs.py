"""Turns modules of rackwright into what a node runs: a package folder to install, or a single text to send.

    python -m rackwright.node_programs rackwright.health.probe.main > probe.py

Both hold an entry module and every module of rackwright that it imports, found by following the imports. They
need Python 3.9 or newer and its standard library alone.
"""

from __future__ import annotations

import re
import shlex
import sys
import zlib
from functools import cache
from pathlib import Path

FACT_HELPER = "rackwright.factcache.helper"
DRIFT_CHECK = "rackwright.drift.node"
PROBE = "rackwright.health.probe.main"
PROBE_AND_JUDGE = "rackwright.health.on_node"
HEALTH_CHECK = "rackwright.health.guard.main"
LOCK_HOLDER = "rackwright.engine.lock_holder"
RUNS_READER = "rackwright.engine.runs_reader"
BACKUP = "rackwright.backup.main"
PUT_BACK = "rackwright.backup.put_back"

_BOOT = (
    "import os,sys,zlib\nn=int(sys.argv.pop(1));b=b''\nwhile len(b)<n:\n c=os.read(0,n-len(b))\n if not c:sys.exit(1)\n"
    " b+=c\nexec(compile(zlib.decompress(b),'rackwright','exec'))"
)
"""Reads no byte more than the program, so that what follows it stays for the program to read."""
_ROOT = Path(__file__).parent
_IMPORT = re.compile(r"^ *from (rackwright[\w.]*) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)

# No finder is needed: a module is registered before the first one that imports it runs.
_ONE_TEXT = """\
# Made by rackwright from its modules, each below as it is; not meant to be edited. Python 3.9 or newer.
import sys

if sys.version_info < (3, 9):
    sys.exit("this needs Python 3.9 or newer")


def module(name, text):
    made = sys.modules[name] = type(sys)(name)
    exec(compile(text, name, "exec"), made.__dict__)


{modules}
exec(compile({entry}, {name!r}, "exec"))
"""


@cache
def sources(entry: str) -> dict[str, str]:
    """Text by name of a module and all of rackwright it imports, each after what it imports itself."""
    found: dict[str, str] = {}
    visited = set()

    def visit(name: str) -> None:
        if name in visited:
            return
        visited.add(name)
        file = _file(name)
        # the folder of roles has no __init__.py: it is a package without text
        text = "" if file.parent.name == "roles" and not file.is_file() else file.read_text(encoding="utf-8")
        package = name.rpartition(".")[0]
        for other in ([package] if package else []) + _imports(text):
            visit(other)
        found[name] = text

    visit(entry)
    return found


def package_files(entry: str) -> dict[str, str]:
    """Text by path, relative to the folder that the program on the node puts into sys.path."""
    found = sources(entry).items()
    return {_file(name).relative_to(_ROOT.parent).as_posix(): text for name, text in sorted(found)}


@cache
def one_text(entry: str) -> str:
    """A program for `python3 -` or for one file: the entry module, run as `__main__`, and what it imports."""
    *others, (name, text) = sources(entry).items()
    modules = "\n".join(f"module({other!r}, {_literal(other, source)})" for other, source in others)
    return _ONE_TEXT.format(modules=modules, entry=_literal(name, text), name=name)


def python_command(program: str, *arguments: str) -> tuple[str, bytes]:
    """The shell command that runs a program, and the program as the command wants it on stdin."""
    packed = zlib.compress(one_text(program).encode(), 9)
    return shlex.join(["python3", "-IS", "-c", _BOOT, str(len(packed)), *arguments]), packed


def _literal(name: str, text: str) -> str:
    """A module as people can read and search it."""
    if "'''" in text or text.endswith("\\"):
        raise ValueError(f"{name} does not fit into a raw string")
    return f"r'''{text}'''"


def _file(name: str) -> Path:
    path = _ROOT.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imports(text: str) -> list[str]:
    """Names of the rackwright modules that a module imports; a syntax tree would cost 50 times as much."""
    found = []
    for module, names in _IMPORT.findall(text):
        for name in re.findall(r"(\w+)(?: as \w+)?", names):
            inner = f"{module}.{name}"
            found.append(inner if _file(inner).is_file() else module)
    return found


if __name__ == "__main__":
    sys.stdout.write(one_text(sys.argv[1]))
