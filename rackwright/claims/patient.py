"""Runs a short Python program on a node in a separate process, which is left behind if a filesystem blocks it."""

from __future__ import annotations

import json
from typing import Any

from rackwright.claims.check import CheckContext, Undetermined
from rackwright.model.options import RoleOptions

PROGRAM = r"""
import errno, json, os, select, signal, sys, time
seconds, text = float(sys.argv[1]), sys.argv[2]
reads, writes = os.pipe()
pid = os.fork()
if pid == 0:
    # Close everything of the caller's, so that a hung process does not block its session.
    os.setsid()
    os.close(reads)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    space = {"arguments": sys.argv[3:]}
    try:
        exec(text, space)
        answer = {"reading": space["reading"]}
    except OSError as error:
        answer = {"error": errno.errorcode.get(error.errno, str(error.errno)), "text": str(error)}
    except Exception as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    left = json.dumps(answer).encode()
    while left:
        left = left[os.write(writes, left):]
    os._exit(0)
os.close(writes)
end, parts = time.monotonic() + seconds, []
while select.select([reads], [], [], max(0, end - time.monotonic()))[0]:
    part = os.read(reads, 65536)
    if not part:
        print(b"".join(parts).decode() or json.dumps({"error": "the child process ended", "text": ""}))
        break
    parts.append(part)
else:
    os.kill(pid, signal.SIGKILL)
    print(json.dumps({"hangs": True}))
sys.stdout.flush()
os._exit(0)
"""
"""Seconds, a Python text that sets `reading`, and its `arguments`. Prints an object: `reading`, `error` and `text`, or `hangs`."""


class AnswerError(Exception):
    """The text ended with an error; `name` is errno's, e.g. ENOENT, or the exception's."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name} ({text})")
        self.name = name


def run(context: CheckContext[RoleOptions], what: str, text: str, *arguments: str, seconds: float) -> Any:  # noqa: ANN401 - JSON data
    """What the text set as `reading`. Undetermined where it does not end in time; AnswerError where it ends with an error.

    `what` is asked, in a message: "/home".
    """
    limit = f"{seconds * context.cluster.ssh.time_factor:g}"
    given = (PROGRAM, limit, text, *arguments)
    printed = context.output(f"python3 -IS -c{' %s' * len(given)}", *given)
    try:
        found = json.loads(printed)
        if found.get("hangs"):
            raise Undetermined(f"{what} does not answer within {seconds:g} s")
        if "error" in found:
            raise AnswerError(str(found["error"]), str(found["text"]))
        return found["reading"]
    except (ValueError, KeyError, AttributeError) as error:
        raise Undetermined(f"cannot parse what the node printed about {what}: {printed[:80]!r}") from error
