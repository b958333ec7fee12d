"""Disks with their serials, slots, signatures and uses; md arrays; LVM volumes; mounts. util-linux and sysfs only.

Read before mdadm and lvm2 are installed too, so that the plan of a new node is whole. What stands on a disk is what
libblkid finds by probing it (`wipefs --no-act`), never what udev remembers of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyinfra.api.facts import FactBase

from rackwright.boundary import Refused, printable, read_json
from rackwright.facts.block_records import Array, Disk, Mount, Signature, Storage
from rackwright.model.disks import SERIAL

_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

READ_SERIAL = """\
serial_of() {
  for file in "/sys/class/block/$1/device/serial" "/sys/class/block/$1/serial"; do
    if [ -s "$file" ]; then tr -d '\\n' <"$file"; return; fi
  done
  lsblk --nodeps --noheadings --output SERIAL "/dev/$1" | tr -d '\\n'
}
"""
"""Reads the device itself: sysfs has the serial of NVMe and virtio drives; udev's database has it for other kinds."""
READ_SIGNATURES = """\
signatures_of() {
  for part in "/sys/class/block/$1" "/sys/class/block/$1/$1"*; do
    [ -e "$part" ] || continue
    one=$(wipefs --no-act --json "/dev/${part##*/}") || return 1
    [ -z "$one" ] || printf '%s\\n' "$(printf %s "$one" | tr -d '\\n')"
  done
}
"""
"""Of a disk and its partitions, a line for each that has any."""
_OF_A_DISK = ("serial", "address", "path", "udev", "digest", "signatures", "unreadable")
_READ = f"""\
export LC_ALL=C
{READ_SERIAL}{READ_SIGNATURES}
echo "begin"
echo "lsblk $(lsblk --json --bytes --output NAME,KNAME,TYPE,SIZE,RO,MOUNTPOINT | tr -d '\\n')"
for path in /sys/class/block/*; do
  name=${{path##*/}}
  case $name in loop*|ram*|zram*|md*|dm-*|sr*|fd*) continue ;; esac
  [ -e "$path/device" ] && [ ! -e "$path/partition" ] || continue
  [ "$(cat "$path/size")" != 0 ] || continue
  case $(cat "$path/hidden" 2>/dev/null) in 1) continue ;; esac
  echo "disk $name"
  echo "serial $(serial_of "$name" | sed 's/^ *//; s/ *$//')"
  echo "address $(cat "$path/device/address" "$path/device/"nvme*/address 2>/dev/null | tr '\\n' ' ')"
  echo "path $(readlink -f "$path/device")"
  udevadm info --query=property "/dev/$name" | grep -E '^(ID_PATH|DEVLINKS)=' | sed 's/^/udev /'
  if found=$(signatures_of "$name"); then
    echo "digest $(printf %s "$found" | sha256sum | cut -c1-64)"
    [ -z "$found" ] || printf '%s\\n' "$found" | sed 's/^/signatures /'
  else
    echo "unreadable"
  fi
done
for path in /sys/class/block/md*/md; do
  [ -e "$path" ] || continue
  device=${{path%/md}}
  for file in "$path"/array_state "$path"/level "$path"/raid_disks "$path"/degraded "$path"/metadata_version \\
    "$path"/sync_action "$path"/sync_completed "$path"/dev-*/state; do
    if [ -r "$file" ]; then echo "md ${{device##*/}}/md/${{file#"$path"/}}: $(tr '\\n' ' ' <"$file")"; fi
  done
  if size=$(cat "$device/size"); then echo "md ${{device##*/}}/size: $size"; fi
  udevadm info --query=property "/dev/${{device##*/}}" | grep -E '^(MD_NAME|MD_UUID|DEVLINKS)=' | sed "s|^|mdudev ${{device##*/}} |"
  if found=$(wipefs --no-act --json "/dev/${{device##*/}}"); then
    printf 'on /dev/%s %s\\n' "${{device##*/}}" "$(printf %s "$found" | tr -d '\\n')"
  fi
done
{{lvm}}grep ' - [^ ]* /dev/' /proc/self/mountinfo | cut -d ' ' -f 4- | sed 's/^/mount /'
echo "end"
"""
_LVM = """\
if command -v lvs >/dev/null; then
  echo "vgs $(vgs --reportformat json --units b --nosuffix --options vg_name,vg_size,vg_free,vg_extent_size | tr -d '\\n')"
  echo "pvs $(pvs --reportformat json --units b --nosuffix --options pv_name,vg_name,pv_missing | tr -d '\\n')"
  echo "lvs $(lvs --reportformat json --units b --nosuffix --options vg_name,lv_name,lv_size,lv_path,lv_active | tr -d '\\n')"
  for volume in /dev/mapper/*; do
    [ -b "$volume" ] || continue
    if found=$(wipefs --no-act --json "$volume"); then
      printf 'on %s %s\\n' "$volume" "$(printf %s "$found" | tr -d '\\n')"
    fi
  done
fi
"""


class BlockDevices(FactBase[Storage]):
    """The storage of a node; `lvm`: with its LVM volumes, which takes three more programs."""

    def command(self, lvm: bool = False) -> str:
        return _READ.replace("{lvm}", _LVM if lvm else "")

    @staticmethod
    def default() -> Storage:
        return Storage()

    def process(self, output: list[str]) -> Storage:
        return parse(output)


@dataclass
class _Reading:
    """Lines of one kind, in order."""

    lines: list[tuple[str, str]]

    def all(self, kind: str) -> Iterator[str]:
        return (text for name, text in self.lines if name == kind)

    def disks(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        current: tuple[str, list[tuple[str, str]]] | None = None
        for kind, text in self.lines:
            if kind == "disk":
                if current is not None:
                    yield current
                current = (text, [])
            elif current is not None and kind in _OF_A_DISK:
                current[1].append((kind, text))
        if current is not None:
            yield current


def parse(output: list[str]) -> Storage:
    """Read what the command prints; Refused where it is not that."""
    if not output or output[0] != "begin" or output[-1] != "end":
        raise Refused("the node's list of block devices is incomplete")
    parts = [line.partition(" ") for line in output[1:-1] if line]
    reading = _Reading([(kind, text) for kind, _, text in parts])
    nodes = _lsblk(next(reading.all("lsblk"), ""))
    on = {}
    for line in reading.all("on"):
        device, _, text = line.partition(" ")
        on[device] = _signatures([text])
    return Storage(
        True,
        tuple(_disk(name, lines, nodes) for name, lines in reading.disks()),
        tuple(_arrays(reading)),
        {row["vg_name"]: row for row in _report(reading, "vgs", "vg")},
        {row["pv_name"]: row["vg_name"] for row in _report(reading, "pvs", "pv")},
        {f"{row['vg_name']}/{row['lv_name']}": row for row in _report(reading, "lvs", "lv")},
        on,
        dict(_mounts(reading)),
    )


def _lsblk(text: str) -> dict[str, dict[str, Any]]:
    try:
        devices = read_json(text)["blockdevices"]
        return {str(one["kname"]): one for one in devices}
    except (KeyError, TypeError) as error:
        raise Refused(f"lsblk's output lacks {error}") from None


def _uses(one: dict[str, Any]) -> Iterator[str]:
    if one.get("mountpoint"):
        yield f"{one['name']} is mounted on {one['mountpoint']}"
    for child in one.get("children") or ():
        if child.get("type") != "part":
            yield f"{one['name']} is part of {child.get('name')} ({child.get('type')})"
        yield from _uses(child)


def _disk(name: str, lines: list[tuple[str, str]], nodes: dict[str, dict[str, Any]]) -> Disk:
    one = nodes.get(name)
    if one is None:
        raise Refused(f"lsblk does not list {name}")
    values = dict(lines)
    udev = dict(text.partition("=")[::2] for kind, text in lines if kind == "udev")
    addresses = [word for word in values.get("address", "").split() if _PCI.fullmatch(word)]
    slots = addresses or _PCI.findall(values.get("path", ""))[-1:]
    readable = "digest" in values
    serial = values.get("serial", "").strip()
    return Disk(
        name,
        int(one["size"]),
        serial if SERIAL.fullmatch(serial) else None,
        tuple(dict.fromkeys((*slots, *(udev[key] for key in ("ID_PATH",) if key in udev)))),
        tuple(sorted(udev.get("DEVLINKS", "").split())),
        _signatures([text for kind, text in lines if kind == "signatures"]) if readable else None,
        values.get("digest"),
        tuple(printable(use, 200) for use in _uses(one)),
        read_only=bool(one.get("ro")),
    )


def _signatures(texts: list[str]) -> tuple[Signature, ...]:
    found = []
    for text in texts:
        if not text.strip():
            continue
        try:
            for row in read_json(text)["signatures"]:
                words = {
                    key: str(row.get(key) or "") for key in ("device", "type", "offset", "uuid", "label")
                }
                found.append(Signature(**words))
        except (KeyError, TypeError, AttributeError) as error:
            raise Refused(f"wipefs printed no list of signatures: {error}") from None
    return tuple(found)


def _arrays(reading: _Reading) -> Iterator[Array]:
    values: dict[str, dict[str, str]] = {}
    for line in reading.all("md"):
        key, _, value = line.partition(": ")
        name, _, rest = key.partition("/")
        values.setdefault(name, {})[rest.removeprefix("md/")] = value.strip()
    udev: dict[str, dict[str, str]] = {}
    for line in reading.all("mdudev"):
        name, _, rest = line.partition(" ")
        key, _, value = rest.partition("=")
        udev.setdefault(name, {})[key] = value
    for name, found in values.items():
        members = {
            key.removeprefix("dev-").removesuffix("/state"): state
            for key, state in found.items()
            if key.startswith("dev-")
        }
        properties = udev.get(name, {})
        size = found.get("size", "0")
        yield Array(
            name,
            {key: value for key, value in found.items() if not key.startswith("dev-")},
            members,
            properties.get("MD_NAME", "").rpartition(":")[2],
            tuple(sorted(properties.get("DEVLINKS", "").split())),
            int(size) * 512 if size.isdecimal() else 0,
        )


def _report(reading: _Reading, kind: str, member: str) -> list[dict[str, str]]:
    text = next(reading.all(kind), None)
    if text is None:
        return []
    try:
        rows = read_json(text)["report"][0][member]
        return [{str(key): str(value) for key, value in row.items()} for row in rows]
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise Refused(f"{kind} printed no report: {error}") from None


def _mounts(reading: _Reading) -> Iterator[tuple[str, Mount]]:
    for line in reading.all("mount"):
        left, _, right = line.partition(" - ")
        mine, theirs = left.split(" "), right.split(" ")
        if len(mine) < 3 or len(theirs) < 3:
            raise Refused(f"/proc/self/mountinfo: a line reads {line[:80]!r}")
        options = frozenset((*mine[2].split(","), *theirs[2].split(",")))
        yield mine[1], Mount(theirs[1], theirs[0], options)
