"""What roles claim of a Python environment of locked wheels: that it is the declared one, and untouched."""

from __future__ import annotations

import hashlib
from typing import Any

from rackwright.boundary import printable
from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.facts.python_environments import PythonEnvironments
from rackwright.model.python_environment import HasPythonEnvironment, locked, normal

_SHOWN = 5

# Reads each distribution's RECORD: PyPA's "Recording installed projects" (read 2026-11-28). Files without a digest are
# those that pip itself makes; `python_tags` and such need no reading, as the wheel was chosen by pip.
DISTRIBUTIONS = """\
import base64, csv, hashlib, importlib.metadata, json, pathlib
found, wrong = {}, []
for one in importlib.metadata.distributions():
    name = one.metadata["Name"]
    found[name] = one.version
    record = one.read_text("RECORD")
    if record is None:
        wrong.append(name + " has no RECORD")
        continue
    for path, digest, size in csv.reader(record.splitlines()):
        kind, _, value = digest.partition("=")
        if kind != "sha256":
            continue
        try:
            data = pathlib.Path(one.locate_file(path)).read_bytes()
        except OSError:
            wrong.append(path + " is missing")
            continue
        if base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() != value:
            wrong.append(path + " is not the wheel's")
print(json.dumps({"distributions": found, "wrong": wrong[:20], "count": len(wrong)}))
"""
_IGNORED = frozenset({"pip", "setuptools"})
"""Of the module venv itself."""


def installed_as_declared(context: CheckContext[HasPythonEnvironment]) -> str:
    """The one in use is of the declared lock, and no file of it was touched since it was installed."""
    root = context.options.environments
    there = context.fact(PythonEnvironments, root)
    digest = hashlib.sha256(context.options.lock_text(context.cluster).encode()).hexdigest()[:16]
    if there.current is None:
        fail(f"{root}/current does not exist")
    if there.current.partition(".")[0] != digest:
        fail(f"the environment is of the lock {there.current.partition('.')[0]}, not {digest}")
    if not there.whole:
        fail(f"files of {root}/{there.current} have changed since it was installed")
    return f"{there.current}, as installed"


def wheels_as_locked(context: CheckContext[HasPythonEnvironment], needed: str) -> str:
    """Each distribution has the locked version, and its files have the digests of its wheel; `needed` is among them."""
    options = context.options
    found = context.json(
        "timeout 55 %s -I -B -c %s", f"{options.environments}/current/bin/python", DISTRIBUTIONS
    )
    if problem := environment_problem(found, options.lock_text(context.cluster), needed):
        fail(problem)
    there = versions(found)
    return f"{needed} {there[needed]} and {len(there) - 1} more, as locked"


def versions(found: Any) -> dict[str, str]:  # noqa: ANN401 - JSON
    """Installed versions by normalised name. Undetermined if the answer has another form."""
    try:
        given = {normal(name): str(version) for name, version in found["distributions"].items()}
        wrong, count = found["wrong"], found["count"]
    except (AttributeError, KeyError, TypeError) as error:
        raise Undetermined("the list of distributions is not in the expected form") from error
    if not isinstance(wrong, list) or not isinstance(count, int) or not given:
        raise Undetermined("the list of distributions is not in the expected form")
    return {name: version for name, version in given.items() if name not in _IGNORED}


def environment_problem(found: Any, lock: str, needed: str) -> str | None:  # noqa: ANN401 - JSON
    """How the installed distributions differ from the lock, or None."""
    there, wanted = versions(found), locked(lock)
    if found["count"]:
        return f"{found['count']} files differ from their wheels: {printable('; '.join(map(str, found['wrong'][:_SHOWN])), 300)}"
    strange = sorted(there.keys() - wanted.keys())
    if strange:
        return f"{', '.join(strange[:_SHOWN])} is installed and not in the lock"
    for name, version in sorted(there.items()):
        if version not in wanted[name]:
            return f"{name} is {printable(version, 40)}, and {' or '.join(sorted(wanted[name]))} is locked"
    return None if needed in there else f"{needed} is not installed"
