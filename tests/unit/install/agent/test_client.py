"""The agent's calls, against a server over TLS that breaks off, is silent, and lies."""

from __future__ import annotations

import http.client
import socket
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from rackwright.install.agent import client
from rackwright.install.agent.programs import AgentError
from rackwright.install.authority import credentials_in
from tests.racks.agent import head as served

LOOPBACK = frozenset({IPv4Address("127.0.0.1")})


@pytest.fixture
def authority(tmp_path):
    return credentials_in(tmp_path, LOOPBACK)


@pytest.fixture
def head(tmp_path, authority):
    listener = socket.create_server(("127.0.0.1", 0))
    image = tmp_path / "image"
    image.write_bytes(bytes(range(256)) * 8192)
    port = listener.getsockname()[1]
    made = served.Head(listener, authority.chain, image)
    made.port = port
    yield made
    made.close()


@pytest.fixture
def agent(tmp_path, head):
    return _agent(tmp_path, head.port, head.token)


def _agent(folder: Path, port: int, token: str, patience: float = 5) -> client.Head:
    url = f"https://127.0.0.1:{port}"
    return client.Head(url, token, str(folder / "ca.pem"), patience=patience, sleep=lambda _: None)


def test_a_token_is_spent_on_a_session(head, agent, tmp_path):
    assert agent.hello({"serial": "SN1"}) > 1_700_000_000
    assert head.hello == {"serial": "SN1"}
    assert agent.post("/v1/inventory", {"disks": []})["action"] == "off"
    with pytest.raises(client.Refused, match=r"403 .*spent"):
        _agent(tmp_path, head.port, head.token).hello({})


def test_a_stranger_is_not_believed(head, agent, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "ca.pem").write_bytes(credentials_in(other, LOOPBACK).ca)
    with pytest.raises(AgentError, match=r"does not answer: .*CERTIFICATE_VERIFY_FAILED"):
        _agent(tmp_path, head.port, head.token, patience=0).hello({})
    assert head.hello is None


def test_a_head_with_another_address_is_not_believed(head, tmp_path):
    url = f"https://localhost:{head.port}"
    with pytest.raises(AgentError, match="does not answer"):
        client.Head(url, head.token, str(tmp_path / "ca.pem"), patience=0, sleep=lambda _: None).hello({})


def test_a_connection_that_breaks_is_resumed_at_the_byte_that_is_missing(head, agent):
    agent.hello({})
    size = head.image.stat().st_size
    head.breaks_at = [300_000, 300_001, 1_500_000]
    assert b"".join(agent.image(size)) == head.image.read_bytes()
    assert head.ranges == ["bytes=0-", "bytes=300000-", "bytes=300001-", "bytes=1500000-"]


def test_an_image_of_another_size_is_refused(head, agent):
    agent.hello({})
    with pytest.raises(client.Refused, match="image has 2097152 bytes, but 5 were announced"):
        list(agent.image(5))


@pytest.mark.parametrize("header", ["", "bytes 5-9/10", "bytes 0-9/*"])
def test_bytes_from_elsewhere_are_refused(header):
    with pytest.raises(client.Refused, match="instead of the image from byte 0 on"):
        client._require_range(header, 0, 10)


def test_a_head_that_is_down_is_waited_for_and_then_given_up(tmp_path, authority):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(AgentError, match=f"the head at 127.0.0.1:{port} does not answer"):
        _agent(tmp_path, port, "t", patience=0.2).post("/v1/done", {})
    with pytest.raises(AgentError, match="stopped at byte 0 of 10"):
        list(_agent(tmp_path, port, "t", patience=0.2).image(10))


def test_a_head_that_is_busy_is_asked_again(head, agent, monkeypatch):
    answers = [(503, {}), (200, {"fine": True})]
    monkeypatch.setattr(head, "answer", lambda *_: answers.pop(0))
    assert agent.post("/v1/progress", {}) == {"fine": True}


def test_an_answer_that_is_no_object_is_refused(head, agent, monkeypatch):
    monkeypatch.setattr(head, "answer", lambda *_: (200, ["no"]))
    with pytest.raises(client.Refused, match="not a JSON object"):
        agent.post("/v1/progress", {})


def test_what_is_repeated():
    assert issubclass(http.client.IncompleteRead, client._TRANSIENT)
    assert not issubclass(client.Refused, client._TRANSIENT)
