"""Probes filesystems on a node, each in a separate process that is left behind if it hangs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rackwright.claims.check import CheckContext, Undetermined
from rackwright.model.options import RoleOptions
from rackwright.model.storage import Filesystem

PROGRAM = r"""
import errno, json, os, select, signal, stat, sys, time
state = "/run/rackwright-mounts"

def began(pid):
    with open("/proc/%d/stat" % pid) as text:
        return text.read().rpartition(")")[2].split()[19]

def hangs(mark, seconds):
    # A process from an earlier probe still waits: do not start a second one.
    try:
        with open(mark) as text:
            pid, start = text.read().split()
        with open("/proc/uptime") as text:
            age = float(text.read().split()[0]) - int(start) / os.sysconf("SC_CLK_TCK")
        return began(int(pid)) == start and age > seconds
    except (OSError, ValueError, IndexError):
        return False

def writer(path):
    # A user who can test it, and where: (uid, gid, folder), of the folder or of one in it. "root": by the modes, only root
    # may write. None: unknown: squashed root may not list it, or a group may write (with an ACL, its bits are the mask).
    top = os.stat(path)
    if top.st_mode & stat.S_IWOTH:
        return 65534, 65534, path
    if top.st_uid:
        return top.st_uid, top.st_gid, path
    known = not top.st_mode & stat.S_IWGRP
    try:
        with os.scandir(path) as entries:
            for number, entry in enumerate(entries):
                if number == 512:
                    return None
                try:
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    one = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # its user removed it
                except OSError:
                    known = False
                    continue
                if one.st_uid == 0 and entry.name.startswith("."):
                    continue  # a filer's snapshots: writable by their modes, and read-only
                if one.st_mode & stat.S_IWOTH:
                    return 65534, 65534, entry.path
                if one.st_uid and one.st_mode & stat.S_IWUSR:
                    return one.st_uid, one.st_gid, entry.path
                known = known and not one.st_mode & stat.S_IWGRP
    except PermissionError:
        return None
    return "root" if known else None

def may_write(folder):
    # os.access answers no to every error; only a refusal is one.
    if os.access(folder, os.W_OK):
        return 0
    import ctypes
    ctypes.CDLL(None, use_errno=True).access(os.fsencode(folder), os.W_OK)
    return 1 if ctypes.get_errno() in (errno.EACCES, errno.EPERM, errno.EROFS) else 2

def user_may_write(path):
    # Root may be squashed by the server: a user asks instead (access(2) asks the server, and a read-only export answers no).
    found = writer(path)
    if not isinstance(found, tuple):
        return found
    uid, gid, folder = found
    pid = os.fork()
    if pid == 0:
        answer = 2
        try:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
            answer = may_write(folder)
        finally:
            os._exit(answer)
    return {0: True, 256: False}.get(os.waitpid(pid, 0)[1])

def writes(path):
    name = os.path.join(path, ".rackwright-%s-%d" % (os.uname().nodename, os.getpid()))
    try:
        with open(name, "x") as text:
            text.write("written by rackwright verify\n")
            text.flush()
            os.fsync(text.fileno())
        return True
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            return user_may_write(path)
        raise
    finally:
        try:
            os.unlink(name)
        except OSError:
            pass

def ask(path, write):
    try:
        os.stat(path + "/.")  # a bare stat(2) would not make the automounter mount it
    except PermissionError:
        pass  # it is mounted by now; a server that squashes root may not let it search the folder
    began = time.monotonic()
    room = os.statvfs(path)  # asks the server, where stat(2) may be answered by the cache
    seconds = round(time.monotonic() - began, 3)
    answer = {"seconds": seconds, "blocks": room.f_blocks, "available": room.f_bavail, "files": room.f_files, "files_available": room.f_favail}
    if write:
        if room.f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, "")
        answer["writes"] = writes(path)
    return answer

def child(path, write, pipe):
    # Close everything of the caller's, so that a hung process does not block its session.
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    try:
        answer = ask(path, write)
    except OSError as error:
        answer = {"error": errno.errorcode.get(error.errno, str(error.errno)), "text": os.strerror(error.errno or 0)}
    os.write(pipe, json.dumps(answer).encode())
    os._exit(0)

os.makedirs(state, 0o700, exist_ok=True)
write, asked = sys.argv[1] == "write", list(zip(sys.argv[2::2], map(float, sys.argv[3::2])))
waiting, answers = {}, {}
for path, seconds in asked:
    mark = os.path.join(state, path.replace("/", "!"))
    if hangs(mark, seconds):
        answers[path] = {"hangs": True, "seconds": 0}
        continue
    reads, writes_to = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reads)
        child(path, write, writes_to)
    os.close(writes_to)
    with open(mark, "w") as text:
        text.write("%d %s" % (pid, began(pid)))
    waiting[reads] = (path, pid, time.monotonic() + seconds, seconds, mark)
while waiting:
    now = time.monotonic()
    ready, _, _ = select.select(list(waiting), [], [], max(0, min(one[2] for one in waiting.values()) - now))
    for reads in list(waiting):
        path, pid, end, seconds, mark = waiting[reads]
        if reads in ready:
            text = os.read(reads, 65536)
            answers[path] = json.loads(text) if text else {"error": "the probing process ended", "text": ""}
            os.waitpid(pid, 0)
            try:
                os.unlink(mark)
            except FileNotFoundError:
                pass  # another question's, asked at the same time
        elif time.monotonic() >= end:
            os.kill(pid, signal.SIGKILL)
            answers[path] = {"hangs": True, "seconds": seconds}
        else:
            continue
        os.close(reads)
        del waiting[reads]
print(json.dumps(answers))
sys.stdout.flush()
os._exit(0)
"""
"""Arguments: `read` or `write`, then path and time limit in seconds of each filesystem. Prints an object by path."""


@dataclass(frozen=True)
class Answer:
    """The result of probing one filesystem."""

    seconds: float
    hangs: bool = False
    """Whether no answer came within the deadline; then nothing else is known."""
    error: str = ""
    """As errno names it, e.g. `ESTALE`; empty: it answered."""
    text: str = ""
    blocks: int = 0
    available: int = 0
    files: int = 0
    files_available: int = 0
    writes: bool | None = None
    """Whether files can be written; None if that was not tested, or if a root-squashing server hides it."""
    only_root: bool = False
    """If `writes` is None: by its modes only root may write, and the server squashes root."""


def ask(
    context: CheckContext[RoleOptions], filesystems: tuple[Filesystem, ...], *, write: bool = False
) -> dict[str, Answer]:
    """Each filesystem's answer, by its path. Undetermined where the node cannot ask."""
    slower = context.cluster.ssh.time_factor
    words = [word for one in filesystems for word in (one.path, f"{one.stat_seconds * slower:g}")]
    arguments = (PROGRAM, "write" if write else "read", *words)
    text = context.output(f"python3 -IS -c{' %s' * len(arguments)}", *arguments)
    return answers(text, filesystems)


def answers(text: str, filesystems: tuple[Filesystem, ...]) -> dict[str, Answer]:
    """What PROGRAM printed. Undetermined where it cannot be read."""
    try:
        found = json.loads(text)
        return {one.path: _answer(found[one.path]) for one in filesystems}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Undetermined(
            f"cannot parse what the node printed about its filesystems: {text[:80]!r}"
        ) from error


def _answer(answer: dict[str, Any]) -> Answer:
    if answer.get("hangs"):
        return Answer(float(answer["seconds"]), hangs=True)
    if "error" in answer:
        return Answer(float(answer.get("seconds", 0)), error=str(answer["error"]), text=str(answer["text"]))
    writes = answer.get("writes")
    if writes not in (None, True, False, "root"):
        raise ValueError(writes)
    return Answer(
        float(answer["seconds"]),
        blocks=int(answer["blocks"]),
        available=int(answer["available"]),
        files=int(answer["files"]),
        files_available=int(answer["files_available"]),
        writes=None if writes == "root" else writes,
        only_root=writes == "root",
    )
