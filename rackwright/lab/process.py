"""Runs other programs: always with a time limit, and with errors that show the command and its output."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rackwright.errors import LabError

PACKAGES = {
    "apt-cacher-ng": "apt-cacher-ng",
    "chroot": "coreutils",
    "cp": "coreutils",
    "dpkg-deb": "dpkg",
    "gpg": "gpg",
    "gpg-agent": "gpg-agent",
    "gpgconf": "gpgconf",
    "ionice": "util-linux",
    "ip": "iproute2",
    "lldpd": "lldpd",
    "mcopy": "mtools",
    "mformat": "mtools",
    "mke2fs": "e2fsprogs",
    "mmd": "mtools",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "nice": "coreutils",
    "nsenter": "util-linux",
    "qemu-img": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
    "setpriv": "util-linux",
    "setsid": "util-linux",
    "sfdisk": "fdisk",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "systemd-nspawn": "systemd-container",
    "tar": "tar",
    "unshare": "util-linux",
    "xorriso": "xorriso",
    "zstd": "zstd",
}
"""Program -> the Debian package which has it."""

_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_TAIL_LINES = 15

# A killed `up` must not go on working through its children beside the next one.
_UNTIL_PARENT_ENDS = ("setpriv", "--pdeathsig", "KILL", "--")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment in English, with the administrator's programs in reach."""
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {**os.environ, "PATH": f"{path}:{_SBIN}", "LC_ALL": "C.UTF-8", **(extra or {})}


def require(programs: Sequence[str], what: str = "the lab") -> None:
    """Refuse to go on without root and these programs; all missing ones are named at once."""
    if os.geteuid() != 0:
        raise LabError(f"{what} needs root", hint="run the same command with sudo")
    missing = [p for p in programs if shutil.which(p, path=environment()["PATH"]) is None]
    if missing:
        packages = " ".join(sorted({PACKAGES[program] for program in missing}))
        verb = "is" if len(missing) == 1 else "are"
        raise LabError(f"{', '.join(missing)} {verb} missing: apt-get install {packages}")


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    stdin: str | None = None,
    check: bool = True,
    shown: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return its output; failure and timeout are a LabError which shows it."""
    # In a separate session, so that a timeout ends the program's children too.
    with subprocess.Popen(
        [*_UNTIL_PARENT_ENDS, *argv],
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(),
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate(timeout=10)
            if isinstance(error, subprocess.TimeoutExpired):
                raise _failure(shown or shlex.join(argv), f"took more than {timeout:g} s", out, err) from None
            raise
    if check and process.returncode != 0:
        raise _failure(shown or shlex.join(argv), f"failed with exit code {process.returncode}", out, err)
    return subprocess.CompletedProcess(list(argv), process.returncode, out, err)


_JOIN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1/cgroup.procs"; shift; n=$((n-1)); done; exec "$@"'


def joined(argv: Sequence[str], groups: Sequence[Path]) -> list[str]:
    """The command which joins these control groups and then becomes `argv`."""
    return ["sh", "-ec", _JOIN, "join", str(len(groups)), *map(str, groups), *argv]


def launch(
    argv: Sequence[str], groups: Sequence[Path], log: Path, env: Mapping[str, str] | None = None
) -> None:
    """Start a program in the background, a member of these groups from its first instruction on."""
    # The shell is in the groups before it forks, so on return the groups show whether the program is alive.
    with log.open("ab") as output:
        code = subprocess.run(
            [*_UNTIL_PARENT_ENDS, *joined(["setsid", "--fork", *argv], groups)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(env),
            timeout=30,
            check=False,
        ).returncode
    if code != 0:
        raise LabError(f"{shlex.join(argv)} could not be started: exit code {code}", hint=f"see {log}")


def wait_until(condition: Callable[[], bool], what: str, timeout: float = 120.0) -> None:
    """Poll until a condition holds; LabError if it does not in time."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"timed out after {timeout:g} s waiting for {what}")
        time.sleep(0.01)


def attach(argv: Sequence[str]) -> int:
    """Run a program on this terminal and return its exit code; the user ends it, not a timeout."""
    try:
        code = subprocess.run(argv, env=environment(), check=False).returncode
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 128 - code if code < 0 else code


def _failure(command: str, what: str, out: str, err: str) -> LabError:
    tail = "\n".join((err.strip() or out.strip()).splitlines()[-_TAIL_LINES:])
    return LabError(f"{command} {what}" + (f"\n{tail}" if tail else ""))
