"""The shell scripts that change packages: one at a time on a node, and whole after an interruption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from pyinfra.api.command import StringCommand

from rackwright.facts.packages import LOCK, MARK, NO_MODULES, POLICY
from rackwright.model.types import Family

LOCK_WAIT_SECONDS = 300

# One at a time: the installation of a run that was killed goes on without it, and both would meet in
# dpkg and in policy-rc.d. Other people's installations are waited for here: dpkg never does it, apt
# only for one of its locks. What they say is kept, so that apt has somebody to say it to when the
# program that asked is gone.
# The index is fetched again when it is older than a day, or older than any source or proxy setting.
# An interrupted dpkg is finished first: nothing else would install. Recommended packages are left
# out: what a node gets is what its role declares.
_APT = """\
set -eu
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C
stamp=/var/lib/apt/rackwright-index-read
exec 9>{lock}
flock -w {wait} 9 || {{ echo "another installation of rackwright has not ended within {wait} s" >&2; exit 1; }}
placed=
trap 'rm -f $placed' EXIT
trap 'exit 1' HUP INT PIPE TERM
for f in {policy} {no_modules}; do ! grep -qs {mark} "$f" || rm -f "$f"; done
{place}
deadline=$(($(date +%s) + {wait}))
patiently() {{
  until said=$("$@" 2>&1 9>&-); do
    case "$said" in
      *"frontend lock"* | *"database lock"* | *"Could not get lock"*)
        [ "$(date +%s)" -ge $deadline ] || {{ sleep 1; continue; }}
        echo "another process has held apt's lock for {wait} s:" >&2 ;;
    esac
    echo "$said" >&2
    return 1
  done
  echo "$said"
}}
patiently dpkg --configure -a --force-confdef --force-confold
if {must_update} || [ -z "$(find "$stamp" -mmin -1440 2>/dev/null)" ] ||
   [ -n "$(find /etc/apt -newer "$stamp" -print -quit)" ]; then
  for try in 1 2 3; do
    patiently apt-get -q -o Acquire::Retries=2 update && break
    [ $try -lt 3 ] || exit 1
    sleep 3
  done
  touch "$stamp"
fi
{release}
{act}
{hold}
"""

_APT_ACT = """\
patiently apt-get -q -y --no-install-recommends -o Acquire::Retries=2 \\
  -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \\
  -o APT::Get::Allow-Downgrades=true {verb} {names}"""

# A file of the site's own stays and says the same.
_PLACE = """\
if [ ! -e {path} ]; then
  placed="$placed {path}"
  mkdir -p $(dirname {path})
  printf '%s\\n' '#!/bin/sh' {mark} 'exit 101' >{path}
  chmod 755 {path}
fi"""


_DNF = """\
set -eu
{release}
{act}
{hold}
"""

_VERSIONLOCK = "python3-dnf-plugin-versionlock"


def change_script(
    family: Family,
    verb: str,
    wanted: Mapping[str, str | None],
    *,
    start_daemons: bool = True,
    build_modules: bool = True,
    must_update: bool = False,
    release: Sequence[str] = (),
    hold: Mapping[str, str | None] | None = None,
    wait_seconds: int = LOCK_WAIT_SECONDS,
) -> StringCommand:
    """Install or remove packages, by name and version.

    `release` are held ones that are to move or go; `hold` are kept where they are afterwards. With
    nothing wanted, only holds are set. `must_update`: the index has to be read first. `wait_seconds`: for
    whoever else is installing something.
    """
    if family is Family.EL:  # dnf refreshes its index by itself, and EL packages start nothing
        return StringCommand(_dnf(verb, wanted, release, hold or {}))
    names = _joined(wanted, "=")
    kept_off = [path for path, may in ((POLICY, start_daemons), (NO_MODULES, build_modules)) if not may]
    return StringCommand(
        _APT.format(
            mark=quote(MARK),
            lock=LOCK,
            policy=POLICY,
            no_modules=NO_MODULES,
            place="\n".join(_PLACE.format(path=path, mark=quote(MARK)) for path in kept_off) or ":",
            must_update="true" if must_update else "false",
            wait=wait_seconds,
            release=f"apt-mark unhold {_listed(release)} >&2" if release else ":",
            act=_APT_ACT.format(verb=verb, names=names) if names else ":",
            hold=f"apt-mark hold {_listed(hold)} >&2" if hold else ":",
        )
    )


def _dnf(
    verb: str, wanted: Mapping[str, str | None], release: Sequence[str], hold: Mapping[str, str | None]
) -> str:
    """A lock of any version hides every other one from dnf, so old locks go before anything else."""
    dnf = "dnf -q -y --setopt=install_weak_deps=False"
    old = [*release, *(name for name in hold if name not in release)]
    steps = [f"rpm -q {_VERSIONLOCK} >/dev/null || {dnf} install {_VERSIONLOCK}"] if old else []
    steps += [f"dnf -q versionlock delete {quote(name)} >&2 || :" for name in old]
    return _DNF.format(
        release="\n".join(steps) or ":",
        act=f"{dnf} {verb} {_joined(wanted, '-')}" if wanted else ":",
        hold=f"dnf -q versionlock add {_joined(hold, '-')} >&2" if hold else ":",
    )


def _joined(wanted: Mapping[str, str | None], joint: str) -> str:
    return " ".join(
        quote(name if version is None else f"{name}{joint}{version}") for name, version in wanted.items()
    )


def _listed(names: Sequence[str] | Mapping[str, str | None]) -> str:
    return " ".join(quote(name) for name in names)
