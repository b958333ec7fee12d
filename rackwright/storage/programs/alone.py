"""Runs fio on this node: each job writes its file and syncs it, then all files are read and every block is verified."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

from rackwright.storage.programs.children import become, say

OUTPUT_MAX_CHARACTERS = 64 * 1024


def command(asked: dict[str, Any], kind: str) -> list[str]:
    """fio's arguments for `write` or `read`; options as in fio(1) of 3.33 and 3.39 (read 2026-11-26)."""
    words = [
        "fio",
        "--name=rackwright",
        f"--directory={asked['folder']}",
        "--filename_format=alone.$jobnum",
        f"--numjobs={asked['jobs']}",
        f"--size={asked['size']}",
        f"--bs={asked['block']}",
        f"--ioengine={asked['engine']}",
        f"--iodepth={asked['depth']}",
        f"--direct={int(asked['direct'])}",
        f"--rw={kind}",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_state_save=0",  # would leave files in the working directory
        "--fallocate=none",  # some filesystems take blocks that were set aside faster
        "--refill_buffers",  # else a compressing server gets identical data each time
        "--group_reporting",
        "--thread",
        "--output-format=json",
    ]
    if kind == "write":
        return [*words, "--do_verify=0", "--end_fsync=1"]
    return [*words, "--invalidate=1", "--unlink=1"]


def run(asked: dict[str, Any], kind: str, deadline: float) -> dict[str, Any]:
    """What fio printed and how it ended."""
    try:
        process = subprocess.Popen(
            command(asked, kind),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )
    except OSError as error:
        return {"missing": f"fio cannot be started: {error.strerror}"}
    try:
        output, _ = process.communicate(timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # and no wait: the kernel may hold it
        return {"hung": True}
    text = output.decode("utf-8", "replace")[:OUTPUT_MAX_CHARACTERS]
    return {"exit_status": process.returncode, "output": text}


def main(asked: dict[str, Any]) -> dict[str, Any]:
    """Write, then read what was written."""
    wrong = become(asked["user"])
    if wrong is not None:
        return {"error": wrong}
    deadline = time.monotonic() + asked["seconds"]
    done = {"write": run(asked, "write", deadline)}
    if done["write"].get("exit_status") == 0:
        done["read"] = run(asked, "read", deadline)
    return done


if __name__ == "__main__":
    say(main(json.loads(sys.argv[1])))
    os._exit(0)
