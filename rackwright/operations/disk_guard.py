"""The final check before a disk is written: in the same shell script, on the device that will be opened.

Serial, size, signatures and use are compared with what the plan was made from, under a lock on the device; any
differs ends the script before its first write.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from weakref import WeakKeyDictionary

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.host import Host
from pyinfra.context import ctx_host, state

from rackwright.data import site_of
from rackwright.facts.block_devices import READ_SERIAL, READ_SIGNATURES
from rackwright.facts.block_records import Disk
from rackwright.facts.disk_choice import usable
from rackwright.model.platforms import Capability, why_lacking
from rackwright.plan.changes import Change

_FUNCTIONS = f"""\
set -eu
export LC_ALL=C LVM_SUPPRESS_FD_WARNINGS=1
{READ_SERIAL}{READ_SIGNATURES}refuse() {{
  echo "$1: nothing was written to it" >&2
  exit 1
}}
locks=()
settle() {{ # udev waits for our locks before it looks at what was written
  for lock in "${{locks[@]}}"; do exec {{lock}}<&-; done
  udevadm settle --timeout=60 || :
}}
guard() {{ # name, serial, bytes, digest of the signatures
  [ -b "/dev/$1" ] || refuse "/dev/$1 is not there any more"
  exec {{lock}}<"/dev/$1" # kept open, and the lock with it, until the script ends
  flock --timeout 30 "$lock" || refuse "/dev/$1 is locked by another program"
  locks+=("$lock")
  found=$(serial_of "$1" | sed 's/^ *//; s/ *$//')
  [ "$found" = "$2" ] || refuse "/dev/$1 now has the serial '$found', not '$2'"
  found=$(($(cat "/sys/class/block/$1/size") * 512))
  [ "$found" = "$3" ] || refuse "/dev/$1 now has $found bytes, not $3"
  for holder in "/sys/class/block/$1/holders/"* "/sys/class/block/$1/$1"*/holders/*; do
    [ ! -e "$holder" ] || refuse "/dev/$1 is in use by ${{holder##*/}}"
  done
  found=$(lsblk --noheadings --raw --output MOUNTPOINT "/dev/$1" | tr -d ' \\n')
  [ -z "$found" ] || refuse "/dev/$1 is in use: $found"
  found=$(signatures_of "$1") || refuse "what is on /dev/$1 cannot be read"
  found=$(printf %s "$found" | sha256sum | cut -c1-64)
  [ "$found" = "$4" ] || refuse "what is on /dev/$1 has changed since it was planned"
}}
"""
_planned: WeakKeyDictionary[Host, dict[str, tuple[Disk, ...]]] = WeakKeyDictionary()
"""The disks each operation was planned with: pyinfra runs it anew to carry it out."""


def refuse_container() -> None:
    """OperationError on a platform whose disks are another machine's."""
    node = site_of().node
    if (why := why_lacking(node.platform, Capability.DISKS)) is not None:
        raise OperationError(f"cannot lay out storage on {node.name}: {why}")


def same_as_planned(what: str, disks: Sequence[Disk]) -> None:
    """OperationError where an operation is carried out with other disks, names or contents than it was planned with."""
    of_host = _planned.setdefault(ctx_host.get(), {})  # type: ignore[no-untyped-call]
    if not state.is_executing:
        of_host[what] = tuple(disks)
        return
    before = {disk.serial: disk for disk in of_host.get(what, ())}
    for disk in disks:
        then = before.get(disk.serial)
        if then is None:
            raise OperationError(f"{disk.description} was not part of the plan: nothing was written")
        if (then.name, then.size, then.digest) != (disk.name, disk.size, disk.digest):
            raise OperationError(
                f"{then.description} had {then.content} when it was planned, but is now {disk.description} with "
                f"{disk.content}: nothing was written; plan again"
            )


def change_of(disk: Disk, after: str) -> Change:
    """The change of a disk that is written to; OperationError, when carried out, unless that is allowed."""
    usable(disk)
    erases = disk.serial if disk.signatures else None
    if state.is_executing and erases is not None and site_of().erasable.get(erases) != disk.content:
        raise OperationError(
            f"{disk.description} has {disk.content}, and its serial was not confirmed for this run: it was not changed"
        )
    return Change("disk", disk.description, disk.content, after, disruptive=True, erases=erases)


def guarded(disks: Sequence[Disk], write: str) -> StringCommand:
    """A script that writes only where each disk is what it was; signatures whose serials were typed are removed."""
    lines = [_FUNCTIONS]
    for disk in disks:
        words = (disk.name, disk.serial or "", str(disk.size), disk.digest or "")
        lines.append(f"guard {' '.join(map(quote, words))}\n")
    for disk in disks:
        if disk.signatures:
            parts = dict.fromkeys(one.device for one in reversed(disk.signatures) if one.device != disk.name)
            devices = " ".join(quote(f"/dev/{name}") for name in (*parts, disk.name))
            lines.append(f"wipefs --all --quiet {devices}\n")
    # bash: sh may be dash, which has no numbers for the locks of more than seven disks
    return StringCommand(f"bash -c {quote(''.join(lines) + write)}")
