"""Commands over ssh, against a real ssh server: output, limits of time and size, lost connections."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import paramiko
import pytest

from rackwright.errors import ConnectionFailed
from rackwright.ssh import KILLED, TIMED_OUT, TOO_MUCH_OUTPUT, run


def test_output_status_and_both_streams(client):
    result = run(client, "echo out; echo err >&2; exit 7", sudo=False, stdin=None, timeout=240)
    assert (result.exit_status, result.stdout, result.stderr) == (7, "out\n", "err\n")


def test_many_commands_on_one_connection_are_fast(client):
    """As a busy machine starts programs: the same commands without a connection are the measure."""
    over_ssh = by_itself = math.inf
    for _ in range(30):  # until one of them was not disturbed
        start = time.monotonic()
        for number in range(6):
            assert run(client, f"echo {number}", sudo=False, stdin=None, timeout=240).stdout == f"{number}\n"
        over_ssh = min(over_ssh, time.monotonic() - start)
        start = time.monotonic()
        for number in range(6):
            subprocess.run(["sh", "-c", f"echo {number}"], stdout=subprocess.DEVNULL, check=True)
        by_itself = min(by_itself, time.monotonic() - start)
        if over_ssh < 0.6 + 10 * by_itself:
            return
    pytest.fail(f"6 commands took {over_ssh:.2f} s over ssh, {by_itself:.2f} s without")


def test_stdin_larger_than_both_windows_is_echoed_whole(client):
    data = bytes(range(256)) * 24_000  # 6 MiB: would stand still if one side blocked the other
    result = run(client, "base64 -w0", sudo=False, stdin=data, timeout=240)
    assert result.exit_status == 0
    assert len(result.stdout) == len(data) * 4 // 3


def test_a_command_that_does_not_read_its_stdin(client):
    assert (
        run(client, "exec <&-; echo done", sudo=False, stdin=b"x" * 9_000_000, timeout=240).stdout == "done\n"
    )


def test_timeout_is_124_keeps_what_was_said_and_the_connection(client):
    start = time.monotonic()
    result = run(client, "echo begun; sleep 600", sudo=False, stdin=None, timeout=2.5)
    assert (result.exit_status, result.stdout) == (TIMED_OUT, "begun\n")
    assert "not finished within 2.5 s" in result.stderr
    assert time.monotonic() - start < 120
    assert run(client, "echo on", sudo=False, stdin=None, timeout=240).stdout == "on\n"


def test_endless_output_is_stopped_and_is_no_success(client):
    result = run(client, "yes", sudo=False, stdin=None, timeout=240)
    assert result.exit_status == TOO_MUCH_OUTPUT
    assert "stopped reading" in result.stderr
    assert len(result.stdout) <= 16 * 2**20


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_smaller_limit_holds_for_both_streams(client, stream):
    told = {"sudo": False, "stdin": None, "timeout": 240, "limit": 64 * 2**10}
    whole = run(client, f"head -c 65536 /dev/zero{stream}", **told)
    assert (whole.exit_status, len(whole.stdout + whole.stderr)) == (0, 65536)
    cut = run(client, f"head -c 65537 /dev/zero{stream}", **told)
    assert (cut.exit_status, cut.stderr) == (TOO_MUCH_OUTPUT, "more than 64 KiB of output: stopped reading\n")
    assert len(cut.stdout) <= 65536


def test_a_command_ended_by_a_signal(client):
    result = run(client, "kill -9 $$", sudo=False, stdin=None, timeout=240)
    assert result.exit_status == KILLED
    assert "signal" in result.stderr


def test_bytes_that_are_not_utf8(client):
    assert run(client, r"printf 'a\377b'", sudo=False, stdin=None, timeout=240).stdout == "a�b"


def test_sudo_quotes_the_whole_command(client, sshd):
    run(client, "echo 'a b'; id", sudo=True, stdin=None, timeout=240)
    sent = """exec sudo -n -H env LC_ALL=C sh -c 'echo rackwright-output-begins\necho '"'"'a b'"'"'; id'"""
    assert sshd.commands[-1] == sent


def test_what_comes_after_the_exit_status_is_not_lost(client, sshd):
    """sshd tells the status as soon as it knows it; what the command printed last may still be under way."""
    sshd.late = 0.8
    result = run(client, "sleep 2.6; echo x", sudo=False, stdin=None, timeout=240)
    assert (result.exit_status, result.stdout) == (0, "x\n")


def test_a_daemon_that_holds_stdout_does_not_hold_us(client):
    result = run(client, "setsid sleep 600 & echo $!", sudo=False, stdin=None, timeout=240)
    assert result.exit_status == 0
    os.kill(int(result.stdout), signal.SIGKILL)  # it was still there


def test_a_status_known_in_time_is_told_when_the_wait_for_output_ends_late(client, monkeypatch):
    monkeypatch.setattr("rackwright.ssh.command._LINGER_SECONDS", 3.0)
    result = run(client, "setsid sleep 600 & echo $!; exit 3", sudo=False, stdin=None, timeout=4)
    os.kill(int(result.stdout), signal.SIGKILL)
    assert (result.exit_status, result.stderr) == (3, "")


def test_lost_connection_names_node_and_command(client, sshd):
    threading.Timer(0.4, sshd.close).start()
    with pytest.raises(
        ConnectionFailed, match=r"Lost the connection to n1 \(127.0.0.1, port \d+\) while running `sleep 600`"
    ):
        run(client, "sleep 600", sudo=False, stdin=None, timeout=240)
    with pytest.raises(ConnectionFailed, match="while running `true`"):
        run(client, "true", sudo=False, stdin=None, timeout=240)


def test_a_connection_that_breaks_kills_no_command(client, sshd, monkeypatch):
    """paramiko wakes who waits for a command a moment before it says that the connection is gone."""
    unlink = paramiko.Channel._unlink

    def unlink_slowly(channel):
        unlink(channel)
        time.sleep(0.5)

    monkeypatch.setattr(paramiko.Channel, "_unlink", unlink_slowly)
    threading.Timer(0.4, sshd.close).start()
    with pytest.raises(ConnectionFailed, match="while running `sleep 600`"):
        run(client, "sleep 600", sudo=False, stdin=None, timeout=240)


def test_a_command_that_had_no_time_to_begin_leaves_the_connection_alone(client, sshd):
    sshd.mute = True
    result = run(client, "true", sudo=False, stdin=None, timeout=0.5)
    assert (result.exit_status, result.stderr) == (TIMED_OUT, "not started within 0.5 s\n")
    sshd.mute = False
    sshd.thawed.set()
    assert run(client, "true", sudo=False, stdin=None, timeout=240).exit_status == 0


def test_a_node_that_never_starts_the_command(client, sshd, monkeypatch):
    monkeypatch.setattr("rackwright.ssh.command.PATIENCE_SECONDS", 0)
    sshd.mute = True
    start = time.monotonic()
    with pytest.raises(ConnectionFailed, match="Lost the connection"):
        run(client, "true", sudo=False, stdin=None, timeout=0.5)
    assert time.monotonic() - start < 120


def test_works_under_gevent(sshd, cluster_at, tmp_path):
    """In a process of its own: monkey patching cannot be undone. Each command waits for all others."""
    known = f"[127.0.0.1]:{sshd.port}"
    cluster = cluster_at(sshd.port, [(known, sshd.host_key)])
    met = tmp_path / "met"
    meet = (
        f"mkdir -p {met}/$$; for n in $(seq 1500); do [ $(ls {met} | wc -l) = 4 ] && exit 7; sleep 0.1; done"
    )
    script = f"""
from gevent import monkey; monkey.patch_all()
import gevent
from rackwright.model.cluster import Cluster
from rackwright.ssh import connect, run
cluster = Cluster.model_validate_json({cluster.model_dump_json()!r})
clients = [connect(cluster, cluster.primary) for _ in range(4)]
jobs = [gevent.spawn(run, c, {meet!r}, sudo=False, stdin=None, timeout=240) for c in clients]
print(*(job.get().exit_status for job in jobs))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "7 7 7 7\n", done.stderr
