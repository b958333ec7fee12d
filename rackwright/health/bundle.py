"""One self-contained script from the modules that run on a node.

    python -m rackwright.health.bundle > probe.py            # the probe alone
    python -m rackwright.health.bundle --judge > health.py   # the probe, the checks and the judge

The script needs Python 3.9 and nothing else; it holds each module's source as it stands here.
"""

from __future__ import annotations

import ast
import sys
import threading
from functools import cache
from importlib.resources import files

PROBE = "rackwright.health.probe.main"
ON_NODE = "rackwright.health.on_node"
GUARD = "rackwright.health.guard.main"

_one_at_a_time = threading.Lock()
"""CPython 3.11 counts the depth of `ast` per interpreter: two threads in it disturb each other."""

_HEAD = '''\
#!/usr/bin/env python3
"""{title} Made by rackwright {version}; not meant to be edited. Python 3.9 or newer."""

import importlib.machinery
import sys

SOURCES = {{
'''

_TAIL = '''\
}}


class Bundle:
    """Imports the modules above, before any of the same name elsewhere."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in SOURCES:
            return importlib.machinery.ModuleSpec(name, Bundle, is_package=name in PACKAGES)
        return None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        name = module.__name__
        exec(compile(SOURCES[name], name + ".py", "exec"), module.__dict__)


PACKAGES = {{name.rpartition(".")[0] for name in SOURCES}}
if sys.version_info < (3, 9):
    sys.exit("this needs Python 3.9 or newer")
sys.meta_path.insert(0, Bundle)

from {main} import main

main(sys.argv[1:])
'''


def script(main: str = PROBE) -> str:
    """The text of the script that runs `main(arguments)` of a module."""
    with _one_at_a_time:
        return _script(main)


@cache
def _script(main: str) -> str:
    from rackwright import __version__

    title = "Reads this node." if main == PROBE else "Reads this node and judges it."
    sources = sources_of(main)
    body = "".join(_literal(name, text) for name, text in sorted(sources.items()))
    return _HEAD.format(title=title, version=__version__) + body + _TAIL.format(main=main)


def sources_of(main: str) -> dict[str, str]:
    """A module and all of rackwright it imports, packages included, by name."""
    found: dict[str, str] = {"rackwright": ""}  # the real one's __init__ is not needed there
    waiting = [main]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = _source(name)
        parent = name.rpartition(".")[0]
        waiting.append(parent)
        waiting.extend(_imports(name, found[name]))
    return found


def _source(name: str) -> str:
    package, _, module = name.rpartition(".")
    folder = files(package)
    at = folder / module / "__init__.py"
    return (at if at.is_file() else folder / f"{module}.py").read_text(encoding="utf-8")


def _imports(name: str, text: str) -> list[str]:
    """Names of the rackwright modules a module imports."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rackwright."):
            module = str(node.module)
            if (files(module.rpartition(".")[0]) / module.rpartition(".")[2]).is_dir():
                found += [f"{module}.{alias.name}" for alias in node.names]
            else:
                found.append(module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("rackwright.")]
    return found


def _literal(name: str, text: str) -> str:
    """A module as one literal per line, so that the script can be read and searched."""
    lines = "".join(f"        {line!r}\n" for line in text.splitlines(keepends=True)) or '        ""\n'
    return f"    {name!r}: (\n{lines}    ),\n"


if __name__ == "__main__":
    sys.stdout.write(script(ON_NODE if "--judge" in sys.argv[1:] else PROBE))
