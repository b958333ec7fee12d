"""A Python environment of exactly the locked wheels, made beside the one in use and put in its place whole."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from shlex import join, quote

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.python_environments import (
    DIGEST_COMMAND,
    MANIFEST,
    EnvironmentsState,
    PythonEnvironments,
)
from rackwright.model.proxy import proxy_variables
from rackwright.model.python_environment import HasPythonEnvironment
from rackwright.operations.packages import installed
from rackwright.osfamily.names import names
from rackwright.plan.changes import Change, record

INSTALL_SECONDS = 1800

# pip compares each wheel with the lock and takes no other: not even a web server under a stranger's control changes
# what is installed. The folder has its final name from the start, because programs in it name their interpreter.
_SCRIPT = """\
set -eu
umask 022
mkdir -p {root}
cd {root}
e={digest}.$(date +%s)
trap 'rm -rf "$PWD/$e"' EXIT
trap 'exit 1' HUP INT PIPE TERM
{python} -m venv "$e"
cat >"$e/requirements.txt"
[ "$(sha256sum <"$e/requirements.txt" | cut -d' ' -f1)" = {sha256} ] || {{ echo "the lock did not arrive whole" >&2; exit 1; }}
{proxy}timeout {seconds} "$e/bin/python" -m pip --isolated --no-input --disable-pip-version-check --no-cache-dir --quiet \\
  install --no-deps --require-hashes --only-binary :all: {source} --requirement "$e/requirements.txt"
cd "$e"
digest=$({manifest})
echo "$digest" >../.{name}.new
mv -fT ../.{name}.new {name}
cd ..
trap - EXIT
ln -sfn "$e" .current.new
mv -fT .current.new current
"""


def locked_environment(options: HasPythonEnvironment) -> None:
    """A role's environment, as its options declare it, and the packages that make it."""
    site = site_of()
    needed = names(site.node.family, "python_environments").packages
    installed(name="Install what makes environments", packages=needed)
    lock = options.lock_text(site.cluster)
    environment(
        name="Install the locked Python environment",
        root=options.environments,
        lock=lock,
        sha256=hashlib.sha256(lock.encode()).hexdigest(),
        python=options.python,
        source=options.pip_source(site.cluster),
        keep=options.keep,
        proxy=proxy_variables(site.cluster, site.node),
    )


@operation()
def environment(
    root: str,
    lock: str,
    sha256: str,
    python: str,
    source: Sequence[str],
    keep: int,
    proxy: Sequence[str] = (),
) -> Generator[StringCommand, None, None]:
    """`root`/current is an environment of exactly the wheels of a lock, as they were installed.

    + lock: pip's requirements, each with its version and hashes; `sha256` is that of its text
    + python: the interpreter that the environment is made with; its module venv is installed
    + source: pip's options for where wheels come from
    + keep: how many former environments stay
    + proxy: `NAME=value` of environment variables of the download
    """
    there: EnvironmentsState = host.get_fact(PythonEnvironments, root=root)
    digest = sha256[:16]
    right = there.current is not None and there.current.partition(".")[0] == digest and there.whole
    others = [name for name in there.names if name != there.current]
    if right and len(others) <= keep:
        host.noop(f"{root}/current is as declared")
        return
    if not right:
        record(Change("directory", f"{root}/current", _before(there), f"wheels of lock {digest}"))
        yield StringCommand(
            _SCRIPT.format(
                root=quote(root),
                digest=digest,
                sha256=sha256,
                python=quote(python),
                proxy=f"env {join(proxy)} " if proxy else "",
                seconds=INSTALL_SECONDS,
                source=join(source),
                manifest=DIGEST_COMMAND,
                name=MANIFEST,
            ),
            _stdin=lock,
        )
    former = others if right or there.current is None else [*others, there.current]
    gone = former[: max(0, len(former) - keep)]
    for name in gone:
        record(Change("directory", f"{root}/{name}", "no longer in use", None))
        yield StringCommand(f"rm -rf -- {quote(f'{root}/{name}')}")


def _before(there: EnvironmentsState) -> str | None:
    if there.current is None:
        return None
    digest = there.current.partition(".")[0]
    if there.changed:
        return f"wheels of lock {digest}, whose files have been changed"
    return f"wheels of lock {digest}" + ("" if there.whole else ", not finished")
