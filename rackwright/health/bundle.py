"""One self-contained script from the modules that run on a node.

    python -m rackwright.health.bundle > probe.py            # the probe alone
    python -m rackwright.health.bundle --judge > health.py   # the probe, the checks and the judge

The script needs Python 3.9 and nothing else; it holds each module's source as it stands here. Installed for
the scheduler, it keeps their code between its starts (`loader`).
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from functools import cache, partial
from importlib.resources import files

from rackwright.health.guard import places
from rackwright.health.loader import MARK

PROBE = "rackwright.health.probe.main"
ON_NODE = "rackwright.health.on_node"
GUARD = "rackwright.health.guard.main"

_one_at_a_time = threading.Lock()
"""Threads that ask for a script at the same time wait for one that makes it."""
_IMPORT = re.compile(r"^ *from (rackwright\.[\w.]+) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)

_SCRIPT = '''\
#!/usr/bin/env {python}
"""{title} Made by rackwright {version}; not meant to be edited. Python 3.9 or newer.

Its modules stand below as they are, each under a line with its name.
"""

{loader}

SOURCES = r\'\'\'
{body}\'\'\'

if sys.version_info < (3, 9):
    sys.exit("this needs Python 3.9 or newer")
sys.meta_path.insert(
    0, Bundle(load(SOURCES, globals().get("__file__"), {program!r}, {kept!r}, {digest!r}))
)

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
    text = partial(
        _SCRIPT.format,
        title=title,
        python="-S python3 -IS" if main == GUARD else "python3",  # a start without site costs a third less
        version=__version__,
        loader=_source("rackwright.health.loader").split('"""\n', 1)[1].strip(),
        body="".join(_module(name, source) for name, source in sorted(sources_of(main).items())),
        main=main,
        program=places.PROGRAM if main == GUARD else None,
        kept=places.CODE,
    )
    return text(digest=hashlib.sha256(text(digest="").encode()).hexdigest())


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
        waiting.extend(_imports(found[name]))
    return found


def _source(name: str) -> str:
    package, _, module = name.rpartition(".")
    folder = files(package)
    at = folder / module / "__init__.py"
    return (at if at.is_file() else folder / f"{module}.py").read_text(encoding="utf-8")


def _imports(text: str) -> list[str]:
    """Names of the rackwright modules a module imports; by its lines, as a syntax tree costs 50 times as much."""
    found = []
    for module, names in _IMPORT.findall(text):
        if (files(module.rpartition(".")[0]) / module.rpartition(".")[2]).is_dir():
            found += [f"{module}.{name}" for name in re.findall(r"(\w+)(?: as \w+)?", names)]
        else:
            found.append(module)
    return found


def _module(name: str, text: str) -> str:
    """A module under its name, as one can read and search it."""
    if "'''" in text or text.endswith("\\") or MARK in text:
        raise ValueError(f"{name} cannot stand in a raw literal between marks")
    return f"{MARK}{name}\n{text}" + ("" if text.endswith("\n") else "\n")


if __name__ == "__main__":
    sys.stdout.write(script(ON_NODE if "--judge" in sys.argv[1:] else PROBE))
