"""The tools and the kernel log of a lab node with simulated GPUs.

Everything lies on the machine's side and is bound into the node, so that a fault is one change of
files, a reboot keeps it, and the node's own disk holds nothing of it. /dev/kmsg of the node is a
pipe that its journald reads like a kernel's: a line written there belongs only to this node,
kernel log (`journalctl -k`), and no other node or machine ever hears of it.
"""

import errno
import fcntl
import json
import os
import shutil
import struct
import termios
import time
from collections.abc import Iterable
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import dcgm_stand_in, gpu_fields, gpus, names, state
from rackwright.lab.spec import NodeSpec
from rackwright.model.sku import Gpus

_REPLIES = "replies"
KMSG = "kmsg"
NEXT = "kmsg.next"
"""Sequence number of the next kernel line; journald takes no number twice in one boot."""
PRINTED = str(dcgm_stand_in.STATE.parent)
EXPORTER, EXPORTER_UNIT = "/usr/bin/dcgm-exporter", "/usr/lib/systemd/system/nvidia-dcgm-exporter.service"
"""Where NVIDIA's package has them (packaging/ of NVIDIA/dcgm-exporter, read 2026-11-27)."""
_READ_SECONDS = 20.0
_TOOL = """\
#!/bin/sh
# Simulated by rackwright's lab: this node has no GPU. Prints what was made for it, word for word.
if [ -s {replies}/fails ]; then
    cat {replies}/fails
    exit {mismatch}
fi
IFS=_
[ $# -gt 0 ] && [ -f "{replies}/{tool}/$*" ] && exec cat "{replies}/{tool}/$*"
[ -x /usr/bin/{tool} ] && exec /usr/bin/{tool} "$@" # an installed tool answers for itself, e.g. its version
echo "{tool}, simulated by rackwright's lab, knows only:" $(cd {replies}/{tool} && ls | tr '\\n_' ', ') >&2
exit 2
"""
_UNIT = """\
[Unit]
Description=dcgm-exporter, simulated by rackwright's lab: this node has no GPU

[Service]
ExecStart=/usr/bin/dcgm-exporter -f /etc/dcgm-exporter/default-counters.csv -a 127.0.0.1:9400

[Install]
WantedBy=multi-user.target
"""


def declared(node: NodeSpec) -> tuple[Gpus, tuple[str, ...]]:
    """What the node pretends to have: its GPUs, and the MIG profiles each is divided into."""
    contents = json.loads(node.gpus or "{}")
    return Gpus(**contents["gpus"]), tuple(contents["mig"])


def place(rack: str, node: NodeSpec, faults: Iterable[str] = ()) -> None:
    """Make the tools of a node report healthy GPUs, or GPUs with these faults."""
    kind, mig = declared(node)
    faults = tuple(faults)
    try:
        tools = gpus.tools(kind, mig, faults)
    except ValueError as error:
        raise LabError(f"node {node.name}: {error}") from None
    replies = _folder(rack, node.name) / _REPLIES
    contents = {"nvidia-smi": dict(tools.documents), "dcgmi": {}}
    if listing := tools.documents.get("-L"):
        contents["dcgmi"]["discovery -l"] = gpus.discovery(kind, listing)
    for tool, texts in contents.items():
        folder = replies / tool
        folder.mkdir(parents=True, exist_ok=True)
        for path in {*folder.iterdir()} - {folder / _file(arguments) for arguments in texts}:
            path.unlink()
        for arguments, text in texts.items():
            state.write_text(folder / _file(arguments), text)
    state.write_text(replies / "fails", tools.fails)
    state.write_text(
        replies / dcgm_stand_in.STATE.name, json.dumps(gpu_fields.report(kind, faults, time.time()))
    )


def make(rack: str, node: NodeSpec) -> list[str]:
    """Make what a node's container needs before it starts, and the options that bind it in."""
    folder = _folder(rack, node.name)
    shutil.rmtree(folder, ignore_errors=True)
    place(rack, node)
    fifo = folder / KMSG
    os.mkfifo(fifo, 0o600)
    options = [f"--bind={fifo}:/dev/kmsg", f"--bind-ro={folder / _REPLIES}:{PRINTED}"]
    for tool in ("nvidia-smi", "dcgmi"):
        text = _TOOL.format(replies=PRINTED, tool=tool, mismatch=gpus.MISMATCH_EXIT)
        state.write_text(folder / tool, text, 0o755)
        options.append(f"--bind-ro={folder / tool}:/usr/local/bin/{tool}")
    exporter = "#!/usr/bin/python3\n" + Path(dcgm_stand_in.__file__).read_text()
    for path, text, mode in ((EXPORTER, exporter, 0o755), (EXPORTER_UNIT, _UNIT, 0o644)):
        state.write_text(folder / Path(path).name, text, mode)
        options.append(f"--bind-ro={folder / Path(path).name}:{path}")
    return options


def say(rack: str, node: NodeSpec, kind: str) -> bool:
    """Write the driver's message about a fault to the node's kernel log; False if there is none."""
    lines = gpus.kernel_lines(declared(node)[0], kind)
    for line in lines:
        _log(_folder(rack, node.name), line)
    return bool(lines)


def write(rack: str, node: str, line: str, *, by_program: bool) -> None:
    """One record in the kernel log of a node with simulated GPUs: the kernel's own, or what a program wrote there.

    The kernel sets the latter's facility to 1, ignoring the program's (Documentation/ABI/testing/dev-kmsg, read
    2026-11-23).
    """
    _log(_folder(rack, node), line, priority=2 + (8 if by_program else 0))


def check(node: NodeSpec, kind: str) -> None:
    """Refuse a fault that this node cannot have."""
    if node.gpus is None:
        raise LabError(
            f"node {node.name} has no GPUs to break",
            hint="lab: {gpus: simulated}, and a SKU with GPUs",
        )
    try:
        gpus.kernel_lines(declared(node)[0], kind)
    except ValueError as error:
        raise LabError(
            str(error), hint=f"{', '.join(f'gpu:{one}' for one in gpus.KINDS)}, gpu:xid:N"
        ) from None


def logs(node: NodeSpec, kind: str) -> bool:
    """Whether a fault leaves a line in the kernel's log, which only a power cycle takes away."""
    return bool(gpus.kernel_lines(declared(node)[0], kind))


def _log(folder: Path, line: str, priority: int = 2) -> None:
    """One record, as the kernel would give it out; waits until journald has taken it."""
    number = int((folder / NEXT).read_text())
    record = f"{priority},{number},{time.monotonic_ns() // 1000},-;{line}\n".encode()
    try:
        pipe = os.open(folder / KMSG, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise LabError(f"the node is not running: no reader on {folder / KMSG}") from None
    try:
        _taken(pipe)  # two records in the pipe would be read as one
        os.write(pipe, record)
        (folder / NEXT).write_text(f"{number + 1}\n")
        _taken(pipe)
    finally:
        os.close(pipe)


def _taken(pipe: int) -> None:
    deadline = time.monotonic() + _READ_SECONDS
    while struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0]:
        if time.monotonic() > deadline:
            raise LabError(f"journald of the node has read nothing for {_READ_SECONDS:g} s")
        time.sleep(0.05)


def _file(arguments: str) -> str:
    return arguments.replace(" ", "_")


def _folder(rack: str, node: str) -> Path:
    return names.node_state(rack, node) / "gpus"
