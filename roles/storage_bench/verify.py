"""Checks of the storage_bench role: the programs are there and can do what the bench needs."""

from __future__ import annotations

import re

from rackwright.boundary import last_line
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.packages import installed
from rackwright.roles.storage_bench.options import StorageBenchOptions

ENGINES = "timeout 20 fio --enghelp"
TORCH = "timeout %s %s -I -c %s"
TORCH_SECONDS = 120
"""To load PyTorch from a cold disk; times `ssh.time_factor`."""
ASK_TORCH = (
    "import torch, torch.distributed as d, torch.distributed.checkpoint as c; "
    "print(torch.__version__, d.is_available() and d.is_gloo_available(), hasattr(c, 'save'))"
)
_TIMED_OUT = 124
"""Of timeout(1)."""
_TORCH = re.compile(r"([0-9][0-9A-Za-z.+_-]{0,60}) (True|False) (True|False)")


def _packages(context: CheckContext[StorageBenchOptions]) -> str:
    return installed(context, context.options.packages(context.node))


def _engines(context: CheckContext[StorageBenchOptions]) -> str:
    """`fio --enghelp` lists the engines, one a line, after a heading."""
    found = {line.strip() for line in context.output(ENGINES).splitlines() if line.startswith("\t")}
    if not found:
        raise Undetermined("`fio --enghelp` lists no engine")
    wanted = {one.bench.engine for one in context.node.filesystems if not one.read_only}
    if missing := sorted(wanted - found):
        fail(f"fio has no engine {', '.join(missing)}")
    return f"fio has {', '.join(sorted(wanted))}"


def _torch(context: CheckContext[StorageBenchOptions]) -> str:
    seconds = TORCH_SECONDS * context.cluster.ssh.time_factor
    result = context.host.run(TORCH, str(seconds), context.options.python, ASK_TORCH)
    if result.rc == _TIMED_OUT:
        raise Undetermined(f"{context.options.python} did not load torch within {seconds} s")
    if result.rc != 0:
        message = last_line(result.stdout, result.stderr)
        raise Undetermined(f"{context.options.python} cannot load torch: status {result.rc}, {message}")
    printed = result.stdout.strip()
    match = _TORCH.fullmatch(printed)
    if match is None:
        raise Undetermined(f"{context.options.python} printed {printed!r}")
    version, gloo, saves = match.groups()
    if gloo == "False":
        fail(f"torch {version} lacks gloo")
    if saves == "False":
        fail(f"torch {version} lacks torch.distributed.checkpoint.save: install 2.2 or newer")
    return f"torch {version}"


CHECKS = (
    Check("the storage benchmark tools are installed", _packages),
    Check("fio has the declared I/O engines", _engines),
    Check(
        "PyTorch can save checkpoints",
        _torch,
        applies=lambda node, options: options.has_torch,
        live=True,  # seconds of CPU: not beside the commands that are sent ahead
        timeout_seconds=TORCH_SECONDS + 30,
    ),
)
