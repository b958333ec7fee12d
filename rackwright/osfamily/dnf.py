"""Shell scripts that query rpm, and that install and remove packages with dnf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from rackwright.osfamily.family import PackageChange

VERSIONLOCK = "/etc/dnf/plugins/versionlock.list"
"""What dnf's versionlock plugin keeps: one `name-epoch:version-release.*` a line."""

_QUERY = """\
rpm -q --qf 'have %{{NAME}} %|EPOCH?{{%{{EPOCH}}:}}|%{{VERSION}}-%{{RELEASE}} ii\\n' {names} 2>/dev/null |
  grep '^have '
sed -n '/^[^#!]/s/^/lock /p' {versionlock} 2>/dev/null
: """

_CHANGE = """\
set -eu
{release}
{act}
{hold}
"""

_VERSIONLOCK_PACKAGE = "python3-dnf-plugin-versionlock"


def query(packages: Sequence[str]) -> str:
    """Shell that prints what is installed, and dnf's version locks."""
    return _QUERY.format(names=" ".join(quote(name) for name in packages), versionlock=VERSIONLOCK)


def change(wanted: PackageChange) -> str:
    """Shell that installs or removes packages.

    dnf refreshes its index by itself, and EL packages start nothing. A lock of any version hides every
    other one from dnf, so old locks go before anything else.
    """
    dnf, hold = "dnf -q -y --setopt=install_weak_deps=False", wanted.hold or {}
    old = [*wanted.unhold, *(name for name in hold if name not in wanted.unhold)]
    steps = (
        [f"rpm -q {_VERSIONLOCK_PACKAGE} >/dev/null || {dnf} install {_VERSIONLOCK_PACKAGE}"] if old else []
    )
    steps += [f"dnf -q versionlock delete {quote(name)} >&2 || :" for name in old]
    return _CHANGE.format(
        release="\n".join(steps) or ":",
        act=f"{dnf} {wanted.verb} {_joined(wanted.packages)}" if wanted.packages else ":",
        hold=f"dnf -q versionlock add {_joined(hold)} >&2" if hold else ":",
    )


def _joined(packages: Mapping[str, str | None]) -> str:
    return " ".join(
        quote(name if version in (None, "*") else f"{name}-{version}") for name, version in packages.items()
    )
