"""Connections over ssh, against a real ssh server, good and bad: host keys, user keys, jump hosts."""

import socket

import paramiko
import pytest
from paramiko.hostkeys import HostKeys

from rackwright.errors import ConnectionFailed
from rackwright.ssh import connect, run
from rackwright.ssh.hostkeys import in_words, known_keys, parse_jump_host, refusal
from tests.unit.answers import is_harmless


def refused(cluster):
    with pytest.raises(ConnectionFailed) as caught:
        connect(cluster, cluster.primary).close()
    return caught.value


def test_unknown_host_key_is_refused_and_not_added(sshd, cluster_at):
    cluster = cluster_at(sshd.port, [("10.0.0.1", sshd.host_key)])
    before = cluster.ssh.known_hosts.read_text()
    error = refused(cluster)
    assert f"host key of n1 (127.0.0.1, port {sshd.port}) is unknown" in error.message
    assert str(cluster.ssh.known_hosts) in error.message
    assert f"ssh-keyscan -p {sshd.port} 127.0.0.1" in error.hint
    assert cluster.ssh.known_hosts.read_text() == before


def test_missing_known_hosts_file(sshd, cluster_at, tmp_path):
    error = refused(cluster_at(sshd.port, known_hosts=tmp_path / "none"))
    assert "No such file" in error.message


def test_changed_host_key(sshd, cluster_at):
    cluster = cluster_at(sshd.port, [(f"[127.0.0.1]:{sshd.port}", paramiko.ECDSAKey.generate())])
    error = refused(cluster)
    assert "has changed" in error.message
    assert sshd.host_key.fingerprint in error.message
    assert str(cluster.ssh.known_hosts) in error.hint


def test_key_of_another_type_than_known(sshd, cluster_at):
    cluster = cluster_at(sshd.port, [(f"[127.0.0.1]:{sshd.port}", paramiko.RSAKey.generate(2048))])
    assert "no common SSH algorithm" in refused(cluster).message


def test_rsa_host_key_is_accepted_with_sha2(cluster_at, sshd):
    sshd.host_key = paramiko.RSAKey.generate(2048)
    cluster = cluster_at(sshd.port, [(f"[127.0.0.1]:{sshd.port}", sshd.host_key)])
    with connect(cluster, cluster.primary) as opened:
        assert opened.get_transport().host_key_type.startswith("rsa-sha2-")


def test_either_of_two_known_keys_will_do(sshd, cluster_at):
    name = f"[127.0.0.1]:{sshd.port}"
    cluster = cluster_at(sshd.port, [(name, sshd.host_key), (name, paramiko.ECDSAKey.generate())])
    connect(cluster, cluster.primary).close()


def test_user_key_refused(sshd, cluster_at):
    sshd.allowed = paramiko.ECDSAKey.generate()
    cluster = cluster_at(sshd.port, [(f"[127.0.0.1]:{sshd.port}", sshd.host_key)])
    error = refused(cluster)
    assert f"refused user ops with {cluster.ssh.key}" in error.message
    assert "authorized_keys" in error.hint


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: None, "Cannot read the SSH key"),
        (lambda path: path.write_text("nonsense"), "is not usable"),
        (
            lambda path: paramiko.ECDSAKey.generate().write_private_key_file(str(path), password="x"),
            "has a passphrase",
        ),
    ],
)
def test_bad_user_key(sshd, cluster_at, tmp_path, write, says):
    write(tmp_path / "bad")
    cluster = cluster_at(sshd.port, [(f"[127.0.0.1]:{sshd.port}", sshd.host_key)], key=tmp_path / "bad")
    assert says in refused(cluster).message


def test_nobody_listens(cluster_at):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = refused(cluster_at(port, [(f"[127.0.0.1]:{port}", paramiko.ECDSAKey.generate())]))
    assert error.message == f"Cannot connect to n1 (127.0.0.1, port {port}): Connection refused."


def test_something_listens_that_is_not_sshd(cluster_at):
    with socket.create_server(("127.0.0.1", 0)) as listener:  # accepts, says nothing
        port = listener.getsockname()[1]
        cluster = cluster_at(
            port, [(f"[127.0.0.1]:{port}", paramiko.ECDSAKey.generate())], connect_timeout_seconds=1
        )
        assert "could not be opened" in refused(cluster).message


def test_jump_host_is_checked_used_and_shared(sshd, cluster_at, user_key):
    inner = type(sshd)(paramiko.ECDSAKey.generate(), paramiko.PKey.from_path(user_key))
    known = [(f"[127.0.0.1]:{sshd.port}", sshd.host_key), (f"[127.0.0.1]:{inner.port}", inner.host_key)]
    cluster = cluster_at(inner.port, known, jump_host=f"ops@127.0.0.1:{sshd.port}")
    with connect(cluster, cluster.primary) as one, connect(cluster, cluster.primary) as two:
        assert run(one, "echo 1", sudo=False, stdin=None, timeout=240).stdout == "1\n"
        assert run(two, "echo 2", sudo=False, stdin=None, timeout=240).stdout == "2\n"
    assert len(sshd.transports) == 1
    assert [command.rpartition("\n")[2] for command in inner.commands] == ["echo 1'", "echo 2'"]
    inner.close()


def test_jump_host_with_an_unknown_key(sshd, cluster_at):
    known = [("[127.0.0.1]:9", sshd.host_key)]
    error = refused(cluster_at(9, known, jump_host=f"ops@127.0.0.1:{sshd.port}"))
    assert "host key of the jump host 127.0.0.1" in error.message


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ops@gate", ("ops", "gate", 22)),
        ("ops@gate:2222", ("ops", "gate", 2222)),
        ("ops@[fd00::1]:2222", ("ops", "fd00::1", 2222)),
        ("ops@[fd00::1]", ("ops", "fd00::1", 22)),
    ],
)
def test_jump_host_forms(text, parts):
    assert parse_jump_host(text) == parts


@pytest.mark.parametrize("text", ["gate", "@gate", "ops@", "ops@gate:ssh"])
def test_malformed_jump_host(text):
    with pytest.raises(ConnectionFailed, match="Not a valid jump host"):
        parse_jump_host(text)


def test_hashed_and_revoked_lines(tmp_path):
    good, bad = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    path = tmp_path / "known_hosts"
    hashed = HostKeys.hash_host("10.0.0.1")
    path.write_text(
        f"# comment\n{hashed} {good.get_name()} {good.get_base64()}\n"
        f"10.0.0.1,n1 {bad.get_name()} {bad.get_base64()}\n"
        f"@revoked * {bad.get_name()} {bad.get_base64()}\n10.0.0.1 ssh-ed25519 broken\n"
    )
    assert known_keys(path, "n1", "10.0.0.1", 22, in_lab=False) == [good]
    with pytest.raises(ConnectionFailed, match="all of its known keys are revoked"):
        known_keys(path, "n1", "n1", 22, in_lab=False)


FORGED = "\x1b[2J\x1b]0;owned\x07\nerror: forged" + "x" * 9999


@pytest.mark.parametrize(
    "error",
    [
        paramiko.SSHException(FORGED),
        paramiko.AuthenticationException(FORGED),
        paramiko.ssh_exception.IncompatiblePeer(FORGED),
        paramiko.BadAuthenticationType(FORGED, [FORGED]),
        EOFError(FORGED),
        OSError(5, FORGED),
        OSError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_the_other_side_says_of_a_refusal_is_printable(error, tmp_path):
    for message in (in_words(error), refusal(error, "n1", tmp_path, "ada", None).message):
        assert message
        assert is_harmless(message)
        assert len(message) < 600
