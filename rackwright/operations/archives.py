"""Package archives other than the distribution's: their keys, and packages that are plain files."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.files import AtPath, PathState
from rackwright.facts.packages import Packages, PackageState
from rackwright.facts.settings import Answer
from rackwright.osfamily.family import PackageChange
from rackwright.plan.changes import Change, record

# Every primary key of the file: one more than declared would be trusted as well.
_FINGERPRINTS = (
    "gpg --batch --quiet --show-keys --with-colons {path} | "
    "awk -F: '$1 == \"pub\" {{ p = 1 }} $1 == \"fpr\" && p {{ print $10; p = 0 }}' | paste -sd ' '"
)

_FETCH = """\
set -eu
t={path}.rackwright-new
trap 'rm -f "$t"' EXIT
trap 'exit 1' HUP INT PIPE TERM
curl -fsSL --retry 2 --connect-timeout 20 --max-time 600 -o "$t" {url}
found=$({found})
[ "$found" = {wanted} ] || {{ echo {url}" has "{what}" $found, and "{wanted}" is declared" >&2; exit 1; }}
chmod 644 "$t"
mv -f "$t" {path}
"""


def _fetch(path: str, url: str, found: str, wanted: str, what: str) -> StringCommand:
    return StringCommand(
        _FETCH.format(path=quote(path), url=quote(url), found=found, wanted=quote(wanted), what=quote(what))
    )


@operation()
def key(path: str, url: str, fingerprint: str) -> Generator[StringCommand, None, None]:
    """The key that signs an archive, in a separate file; a key with another fingerprint is never installed.

    + fingerprint: of the primary key, 40 hexadecimal digits; the file may hold no second one
    """
    there: str | None = host.get_fact(Answer, read=_FINGERPRINTS.format(path=quote(path)))
    if there == fingerprint:
        host.noop(f"{path} is as declared")
        return
    record(Change("file", path, there and f"key {there}", f"key {fingerprint} from {url}"))
    yield _fetch(path, url, _FINGERPRINTS.format(path='"$t"'), fingerprint, "the key")


@operation()
def download(path: str, url: str, sha256: str) -> Generator[StringCommand, None, None]:
    """A file from a site's mirror or the internet; content with another digest never lands."""
    state: PathState = host.get_fact(AtPath, path=path, digest_only=True)
    if state.sha256 == sha256:
        host.noop(f"{path} is as declared")
        return
    before = None if state.kind == "absent" else f"sha256 {(state.sha256 or '')[:12]}"
    record(Change("file", path, before, f"sha256 {sha256[:12]} from {url}"))
    yield _fetch(path, url, 'sha256sum <"$t" | cut -d" " -f1', sha256, "sha256")


@operation()
def installed(package: str, version: str, path: str) -> Generator[StringCommand, None, None]:
    """A package in exactly this version, out of a .deb or .rpm that stands on the node."""
    family = site_of().node.family
    state: PackageState = host.get_fact(Packages, family=family.name, packages=(package,))
    there = state.installed.get(package)
    if there == version:
        host.noop(f"{package} is as declared")
        return
    record(Change("package", package, there or state.broken.get(package), version))
    yield StringCommand(family.package_change(PackageChange("install", {path: None})))
