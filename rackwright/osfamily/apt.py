"""Shell scripts that query apt and dpkg, and that install and remove packages."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from rackwright.osfamily.family import PackageChange

MARK = "# placed by rackwright for the length of one installation"
"""A line of the two files that keep packages from starting daemons and building modules."""
POLICY = "/usr/sbin/policy-rc.d"
"""deb-systemd-invoke asks it before it starts a daemon."""
NO_MODULES = "/etc/dkms/no-autoinstall"
"""While it is there, DKMS packages and kernel packages build no modules."""
LOCK = "/run/rackwright-packages.lock"
"""Held on the node during an installation, which continues to its end when its program is killed."""

CONFIGURE = "dpkg --configure -a --force-confdef --force-confold"
"""Finishes an interrupted dpkg; without it nothing else would install."""

_QUERY = """\
dpkg-query -W -f '${{binary:Package}} ${{Version}} ${{db:Status-Abbrev}}\\n' {names} 2>/dev/null |
  sed 's/^\\([^: ]*\\):[^ ]*/\\1/; s/^/have /; s/ *$//'
for n in {names}; do
  dpkg-query -W -f '${{db:Status-Abbrev}}' "$n" 2>/dev/null | grep -q '^.i' || missing="${{missing-}} $n"
done
[ -z "${{missing-}}" ] || LC_ALL=C apt-cache policy $missing | awk '
  /^[^ ]/ {{ sub(/:$/, ""); name = $0 }} /Candidate:/ {{ print "candidate", name, $2 }}'
for f in {placed}; do
  ! grep -qs {mark} "$f" || {{ [ -e {lock} ] && ! flock -n {lock} true; }} || echo "stale $f"
done
: """

# One at a time: the installation of a killed run continues without it, and two would collide in dpkg and
# in policy-rc.d. The script waits for installations of other users: dpkg never does, apt only for one of
# its locks. Output is collected, so that apt can still write it when the program that started it is gone.
# The index is fetched again when it is older than a day, or older than any source or proxy setting.
# An interrupted dpkg is finished first: nothing else would install. Recommended packages are left out:
# a node gets what its roles declare.
_CHANGE = """\
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
  until output=$("$@" 2>&1 9>&-); do
    case "$output" in
      *"frontend lock"* | *"database lock"* | *"Could not get lock"*)
        [ "$(date +%s)" -ge $deadline ] || {{ sleep 1; continue; }}
        echo "another process has held apt's lock for {wait} s:" >&2 ;;
    esac
    echo "$output" >&2
    return 1
  done
  echo "$output"
}}
{configure}
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

_ACT = """\
patiently apt-get -q -y --no-install-recommends -o Acquire::Retries=2 \\
  -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \\
  -o APT::Get::Allow-Downgrades=true {verb} {names}"""

# A file that the site placed itself stays.
_PLACE = """\
if [ ! -e {path} ]; then
  placed="$placed {path}"
  mkdir -p $(dirname {path})
  printf '%s\\n' '#!/bin/sh' {mark} 'exit 101' >{path}
  chmod 755 {path}
fi"""


def query(packages: Sequence[str]) -> str:
    """Shell that prints what is installed, what would be, and what an interrupted installation left."""
    names = " ".join(quote(name) for name in packages)
    return _QUERY.format(names=names, mark=quote(MARK), placed=f"{POLICY} {NO_MODULES}", lock=LOCK)


def change(wanted: PackageChange) -> str:
    """Shell that installs packages, or purges them."""
    names = " ".join(
        quote(name if version is None else f"{name}={version}") for name, version in wanted.packages.items()
    )
    verb = "purge" if wanted.verb == "remove" else wanted.verb
    kept_off = [
        path for path, may in ((POLICY, wanted.start_daemons), (NO_MODULES, wanted.build_modules)) if not may
    ]
    return script(
        _ACT.format(verb=verb, names=names) if names else ":",
        wait_seconds=wanted.wait_seconds,
        must_update=wanted.must_update,
        place="\n".join(_PLACE.format(path=path, mark=quote(MARK)) for path in kept_off),
        release=_mark("unhold", wanted.unhold),
        hold=_mark("hold", list(wanted.hold or ())),
    )


def script(
    act: str,
    *,
    wait_seconds: int,
    configure: str = f"patiently {CONFIGURE}",
    must_update: bool = False,
    place: str = "",
    release: str = ":",
    hold: str = ":",
) -> str:
    """Shell that runs `act` while no other installation runs, with dpkg finished and the index read."""
    return _CHANGE.format(
        mark=quote(MARK),
        lock=LOCK,
        policy=POLICY,
        no_modules=NO_MODULES,
        place=place or ":",
        must_update="true" if must_update else "false",
        wait=wait_seconds,
        configure=configure,
        release=release,
        act=act,
        hold=hold,
    )


def _mark(verb: str, names: Sequence[str]) -> str:
    return f"apt-mark {verb} {' '.join(quote(name) for name in names)} >&2" if names else ":"
