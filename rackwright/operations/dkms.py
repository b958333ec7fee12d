"""Kernel modules that DKMS builds: for the named kernel, not for the running one."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.facts.settings import Answer
from rackwright.plan.changes import Change, record

# Name and version are in dkms.conf; a folder's name may have hyphens in both.
_EACH = """\
for conf in {sources}; do
  [ -e "$conf/dkms.conf" ] || continue
  name=$(sed -n 's/^PACKAGE_NAME="\\{{0,1\\}}\\([^"]*\\).*/\\1/p' "$conf/dkms.conf" | head -n 1)
  version=$(sed -n 's/^PACKAGE_VERSION="\\{{0,1\\}}\\([^"]*\\).*/\\1/p' "$conf/dkms.conf" | head -n 1)
  for kernel in {kernels}; do
{body}
  done
done"""

_STATE = """\
    state=$(dkms status -m "$name" -v "$version" -k "$kernel" 2>/dev/null | sed -n 's/.*: *\\([a-z]*\\).*/\\1/p')
    echo "$name $version $kernel" $state"""

# The compiler's messages in make's log come first: the rest only reports that something failed.
_BUILD = """\
    found=yes
    output=$(dkms install -m "$name" -v "$version" -k "$kernel" 2>&1) && continue
    log=/var/lib/dkms/$name/$version/build/make.log
    echo "$name $version does not build for $kernel (whole log: $log):" >&2
    lines=$(grep -hE '(^|[^a-z])(fatal )?error:|: No such file or directory' "$log" 2>/dev/null | head -n 5)
    [ -n "$lines" ] || lines=$(tail -n 5 "$log" 2>/dev/null)
    [ -n "$lines" ] || lines=$(echo "$output" | tail -n 8)
    echo "$lines" >&2
    exit 1"""

_ALL_WITH_HEADERS = "$(cd /lib/modules && ls -d */build 2>/dev/null | sed 's,/build$,,')"


@operation()
def built(sources: str, kernel: str | None) -> Generator[StringCommand, None, None]:
    """The modules of these sources are built and installed for a kernel whose headers are there.

    A build that fails ends in an error with the compiler's lines; no package is left half-way, and the
    next run builds again.

    + sources: folder below /usr/src, with the shell's patterns, e.g. /usr/src/nvidia*-535.261.03
    + kernel: as uname -r prints it; None: every kernel whose headers are installed
    """
    kernels = _ALL_WITH_HEADERS if kernel is None else quote(kernel)
    read = _EACH.format(sources=sources, kernels=kernels, body=_STATE)
    there: str | None = host.get_fact(Answer, read=read)
    lines = [line.split() for line in (there or "").splitlines()]
    missing = [words for words in lines if words[3:] != ["installed"]]
    if lines and not missing:
        host.noop(f"{sources} is built for {kernel or 'every kernel with headers'}")
        return
    for name, version, of, *state in missing or [[sources, "", kernel or "every kernel with headers"]]:
        before = " ".join(state) or None
        record(
            Change(
                "setting", f"DKMS module {name} {version}".strip(), before, f"built and installed for {of}"
            )
        )
    build = _EACH.format(sources=sources, kernels=kernels, body=_BUILD)
    yield StringCommand(f"# dkms install {sources}\n{build}\n{_NONE_FOUND.format(sources=sources)}")


_NONE_FOUND = """\
[ "${{found-}}" = yes ] || {{ echo "no DKMS sources {sources}, or no headers: nothing was built" >&2; exit 1; }}"""
