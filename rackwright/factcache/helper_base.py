"""The base of the fact helper: commands, digests and JSON, without the modules that are slow to load.

Sent to nodes with rackwright/factcache/helper.py. Loading json, hashlib, base64 and
subprocess takes twice the time of forty questions; all that is needed of them are these functions.
Annotations are quoted, as a future import loads a module too.
"""

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from _sha2 import sha256 as sha256_hash  # type: ignore[import-not-found,unused-ignore] # Python 3.12 and newer
except ImportError:
    try:
        from _sha256 import sha256 as sha256_hash  # type: ignore[import-not-found,unused-ignore,no-redef]
    except ImportError:
        from hashlib import sha256 as sha256_hash

__all__ = ["ENGLISH", "WAITS", "as_json", "execute", "sha256_hash", "sha256_of_size"]
ENGLISH = dict(os.environ, LC_ALL="C")
LARGE = 16 << 20
WAITS = "waiting for "
"""Prefix of the helper's progress reports on stderr about slow questions."""
ESCAPED = {ordin: f"\\u{ordin:04x}" for ordin in (*range(32), 127)}
ESCAPED.update(
    str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"})
)


def execute(command: "str | list[str]", seconds: float) -> "tuple[int, bytes, bytes]":
    """(status, stdout, stderr) of one command, as a plain execution would have run it.

    What subprocess.run does; loading that takes as long as all the rest of this program.
    """
    argv, env = (command, ENGLISH) if isinstance(command, list) else (["sh", "-c", command], os.environ)
    out, err = os.pipe(), os.pipe()
    try:
        pid = os.posix_spawnp(
            argv[0],
            argv,
            env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, out[1], 1),
                (os.POSIX_SPAWN_DUP2, err[1], 2),
            ],
            setsigdef=[13, 25],  # SIGPIPE and SIGXFSZ, which Python ignores and its children should not
        )
    except OSError as error:
        os.close(out[0])
        os.close(err[0])
        return 127, b"", str(error).encode()
    finally:
        os.close(out[1])
        os.close(err[1])
    output = collect(out[0], err[0], time.monotonic() + seconds)
    if output is None:
        os.kill(pid, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return (status, *output) if output is not None else (124, b"", b"no end within %d s\n" % seconds)


def collect(out: int, err: int, deadline: float) -> "tuple[bytes, bytes] | None":
    """Everything written to two pipes, None if that had no end in time; closes them."""
    output = {out: bytearray(), err: bytearray()}
    waiting = select.poll()
    for pipe in output:
        waiting.register(pipe, select.POLLIN)
    still_open = len(output)
    while still_open:
        ready = waiting.poll(max(0, deadline - time.monotonic()) * 1000)
        for pipe, _ in ready:
            block = os.read(pipe, 1 << 16)
            output[pipe] += block
            if not block:
                waiting.unregister(pipe)
                still_open -= 1
        if not ready:
            break
    for pipe in output:
        os.close(pipe)
    return None if still_open else (bytes(output[out]), bytes(output[err]))


def sha256_of_size(size: int) -> "Any":  # noqa: ANN401 - of either library
    """OpenSSL's is worth its loading for large files."""
    if size < LARGE:
        return sha256_hash()
    import hashlib

    return hashlib.sha256()


def as_json(value: "Any") -> str:  # noqa: ANN401
    """What json.dumps makes of strings, integers, and lists of them."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join([as_json(one) for one in value])
        return f"[{inner}]"
    if not isinstance(value, str):
        return f"{value:d}"
    text = value.translate(ESCAPED)
    if not text.isascii():
        units = (one.encode("utf-16-be", "surrogatepass").hex() if one > "~" else one for one in text)
        text = "".join(
            one if len(one) == 1 else "".join("\\u" + one[at : at + 4] for at in range(0, len(one), 4))
            for one in units
        )
    return f'"{text}"'
