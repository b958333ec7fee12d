"""What goes wrong between us and a BMC: each message exactly, nothing hangs, no password leaves for elsewhere."""

from __future__ import annotations

import logging
import socket
import time

import pytest

from rackwright.bmc import redfish_http
from rackwright.bmc.interface import PowerAction
from rackwright.bmc.target import NoAnswer, ResourceBroken, ResourceMissing
from rackwright.errors import BmcError
from tests.unit.bmc import fake

SYSTEMS = "/redfish/v1/Systems"
SYSTEM = "/redfish/v1/Systems/System.Embedded.1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
HINT_ROLE = "give root the role Administrator on the BMC; some functions need a vendor license, and a new BMC may require a password change first"
HINT_RESET = "reset the BMC itself, e.g. in its web interface"


def _error(act, kind: type[BmcError] = BmcError) -> BmcError:
    with pytest.raises(kind) as caught:
        act()
    return caught.value


def test_a_wrong_password_is_sent_once(bmc):
    error = _error(lambda: bmc.client(password="wrong").power())
    assert error.message == (
        f"{bmc.target()} rejects the password of user root (POST /redfish/v1/SessionService/Sessions)."
    )
    assert error.hint == (
        "store the right one with: rackwright secrets put bmc_password FILE; after several wrong ones many BMCs lock "
        "the account for some minutes"
    )
    assert [asked for asked in bmc.asked if asked[1] != "/redfish/v1/"] == []


@pytest.mark.parametrize(
    ("status", "kind", "said", "hint"),
    [
        (
            403,
            ResourceMissing,
            f"does not allow user root to POST {RESET}: The reason.",
            HINT_ROLE,
        ),
        (
            404,
            ResourceMissing,
            f"has no {RESET} (POST).",
            "its firmware may be too old: `rackwright bmc status FILE` prints the version",
        ),
        (
            409,
            BmcError,
            f"cannot do POST {RESET} in its present state: The reason.",
            "it may be busy with an earlier request: wait a minute and run again",
        ),
        (
            500,
            ResourceBroken,
            f"failed at POST {RESET} with HTTP status 500: The reason.",
            f"run again; if it fails again, {HINT_RESET}",
        ),
        (
            400,
            BmcError,
            "cannot change the power: The reason.",
            "`rackwright bmc status FILE` prints its firmware; see the vendor's release notes",
        ),
    ],
)
def test_refusals_of_a_change(bmc, status, kind, said, hint):
    told = {
        "error": {
            "message": "general",
            "@Message.ExtendedInfo": [{"Message": "The reason.", "Severity": "Critical"}],
        }
    }
    bmc.fault(RESET, lambda handler: fake.answer(handler, status, told), "POST")
    error = _error(lambda: bmc.client().set_power(PowerAction.ON), kind)
    assert (error.message, error.hint) == (f"{bmc.target()} {said}", hint)
    assert len(bmc.changes()) == 1  # a change is asked for once


def test_a_busy_bmc_is_asked_again_when_it_says(bmc):
    waits: list[float] = []
    bmc.fault(SYSTEMS, lambda handler: len(waits) < 2 and fake.answer(handler, 503, Retry_After="7"))
    bmc.session(pauses=waits).get(SYSTEMS)
    assert waits == [7.0, 7.0]


@pytest.mark.parametrize(("after", "waits"), [("10", [10.0] * 4), ("31", []), ("soon", [2.0] * 4)])
def test_a_bmc_that_stays_busy(bmc, after, waits):
    done: list[float] = []
    bmc.fault(SYSTEMS, lambda handler: fake.answer(handler, 503, Retry_After=after))
    error = _error(lambda: bmc.session(pauses=done).get(SYSTEMS), NoAnswer)
    assert error.message == (
        f"{bmc.target()} is too busy for GET {SYSTEMS}: it answered 503 {len(waits) + 1} times."
    )
    assert error.hint == (
        "run again in a few minutes; if the BMC stays busy, reset it, e.g. in its web interface"
    )
    assert done == waits


def _endless(handler) -> bool:
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        handler.wfile.write(b"[" * 65536)


def test_an_answer_without_an_end(bmc, monkeypatch):
    monkeypatch.setattr(redfish_http, "ANSWER_MAX_BYTES", 2**20)
    bmc.fault(SYSTEMS, _endless)
    error = _error(lambda: bmc.client().power())
    assert error.message == f"{bmc.target()} answers GET {SYSTEMS} with more than 1 MiB."
    assert error.hint == "reset the BMC itself, or update its firmware"


@pytest.mark.parametrize(
    "first", [b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-One: "]
)
def test_an_answer_that_drips(bmc, first):
    bmc.fault(SYSTEMS, lambda handler: fake.drip(handler, first, b" "))
    began = time.monotonic()
    error = _error(lambda: bmc.client(timeout_seconds=1).power(), NoAnswer)
    assert time.monotonic() - began < 4
    assert error.message == f"{bmc.target()} did not finish its answer to GET {SYSTEMS} within 1 s."
    assert error.hint == f"raise `timeout_seconds` of its `bmc`, or {HINT_RESET}"


def test_a_bmc_that_hangs(bmc):
    bmc.fault(SYSTEMS, lambda handler: time.sleep(3) is None)
    error = _error(lambda: bmc.client(timeout_seconds=1).power(), NoAnswer)
    assert error.message == f"{bmc.target()} did not finish its answer to GET {SYSTEMS} within 1 s."


def test_a_bmc_that_hangs_in_the_handshake(bmc):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bmc.port = silent.getsockname()[1]
        error = _error(lambda: bmc.client(timeout_seconds=1).power(), NoAnswer)
    assert error.message == f"{bmc.target()} did not finish the TLS handshake within 1 s."


def test_what_is_asked_together_has_a_limit(bmc):
    client = bmc.client(within=0.0)
    error = _error(client.power, NoAnswer)
    assert error.message == f"{bmc.target()} is too slow: no time left for GET /redfish/v1/."
    assert error.hint == "run again with --limit for this node only"


def test_a_closed_connection_is_opened_again_for_reading(bmc):
    client = bmc.client()
    client.power()

    def hang_up(handler) -> bool:
        handler.close_connection = True
        del bmc.faults["GET", SYSTEM]
        return True

    bmc.fault(SYSTEM, hang_up)
    before = bmc.connections
    client.power()
    assert bmc.connections == before + 1


def test_a_change_whose_answer_is_lost_is_not_repeated(bmc):
    def hang_up(handler) -> bool:
        handler.close_connection = True
        return True

    bmc.fault(RESET, hang_up, "POST")
    error = _error(lambda: bmc.client().set_power(PowerAction.CYCLE), NoAnswer)
    assert error.message == f"{bmc.target()} did not answer POST {RESET}: it closed the connection."
    assert len(bmc.changes()) == 1


def test_a_redirect_to_the_same_host_is_followed(bmc):
    there = f"https://127.0.0.1:{bmc.port}{SYSTEMS}/"
    bmc.documents[f"{SYSTEMS}/"] = bmc.documents[SYSTEMS]
    bmc.fault(SYSTEMS, lambda handler: fake.answer(handler, 308, Location=there))
    assert bmc.client().power() == "on"


@pytest.mark.parametrize(
    "location", ["https://evil.example.com/redfish/v1/", "https://127.0.0.1:1/x", "//evil.example.com/"]
)
def test_a_redirect_to_another_host_is_not_followed(bmc, location):
    bmc.fault(SYSTEMS, lambda handler: fake.answer(handler, 302, Location=location))
    error = _error(lambda: bmc.client().power())
    assert error.message == f"{bmc.target()} refers to another host, {location}, which is not followed."
    assert error.hint == "is this the BMC's address, not that of a proxy or load balancer?"


def test_a_document_that_refers_to_another_host(bmc):
    bmc.documents[SYSTEMS]["Members"] = [{"@odata.id": "https://evil.example.com/redfish/v1/Systems/1"}]
    error = _error(lambda: bmc.client().power())
    assert error.message.endswith(
        "refers to another host, https://evil.example.com/redfish/v1/Systems/1, which is not followed."
    )


def test_a_circle_of_redirects(bmc):
    bmc.fault(SYSTEMS, lambda handler: fake.answer(handler, 302, Location=SYSTEMS))
    error = _error(lambda: bmc.client().power())
    assert error.message == f"{bmc.target()} redirects GET {SYSTEMS} in a loop."


def test_an_answer_that_is_no_json(bmc):
    def page(handler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "6")
        handler.end_headers()
        handler.wfile.write(b"<html>")
        return True

    bmc.fault(SYSTEMS, page)
    error = _error(lambda: bmc.client().power())
    assert error.message.startswith(
        f"The answer of the BMC of gpu001 (127.0.0.1, port {bmc.port}) to GET {SYSTEMS} is unreadable: it is not valid JSON"
    )


def test_a_bmc_that_is_off(bmc):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        bmc.port = closed.getsockname()[1]
    error = _error(lambda: bmc.client().power(), NoAnswer)
    assert error.message == f"Cannot reach {bmc.target().named}: connection refused."
    assert error.hint == ("check its address and cable; does this host have a route to its network?")


def test_a_port_without_tls(bmc):
    with socket.create_server(("127.0.0.1", 0)) as plain:
        bmc.port = plain.getsockname()[1]

        def answer_plainly(address: str, port: int, timeout: float) -> socket.socket:
            ours, theirs = socket.socketpair()
            theirs.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            theirs.shutdown(socket.SHUT_WR)
            opened.append(theirs)
            return ours

        opened: list[socket.socket] = []
        http = redfish_http.RedfishHttp(bmc.target(), answer_plainly)
        error = _error(lambda: http.request("GET", "/redfish/v1/", None, {}), NoAnswer)
        for one in opened:
            one.close()
    assert error.message == (
        f"The TLS handshake with the BMC of gpu001 (127.0.0.1, port {bmc.port}) on port {bmc.port} failed: wrong version "
        "number."
    )


def test_no_redfish_at_the_address(bmc):
    del bmc.documents["/redfish/v1/"]
    error = _error(lambda: bmc.client().power())
    assert error.message == f"{bmc.target()} has no Redfish service: /redfish/v1/ does not exist."


def test_a_certificate_of_an_unknown_ca(bmc, pki):
    other, _ = fake.certificate(pki, "127.0.0.9")
    error = _error(lambda: bmc.client(ca=other).power())
    assert error.message == (
        f"{bmc.target()} has a certificate that the CAs in {other} did not sign: self-signed certificate."
    )
    assert error.hint == (
        f"declare the CA that signed it as `ca`, or compare its SHA-256 in the BMC's web interface or console and pin it: certificate: {bmc.fingerprint}"
    )
    assert bmc.asked == []


def test_a_certificate_for_another_address(pki):
    with fake.serving(fake.tree("idrac"), pki, "127.0.0.2") as bmc:
        error = _error(lambda: bmc.client().power())
        assert "IP address mismatch, certificate is not valid for '127.0.0.1'." in error.message
        assert bmc.asked == []


def test_a_pinned_certificate(bmc):
    assert bmc.client(ca=None, certificate=bmc.fingerprint).power() == "on"


def test_another_certificate_than_the_pinned_one_gets_no_request(bmc):
    error = _error(lambda: bmc.client(certificate="0" * 64).power())
    assert error.message == (
        f"{bmc.target()} presents a different certificate than declared: its SHA-256 is {bmc.fingerprint}, declared is {'0' * 64}."
    )
    assert error.hint is not None
    assert error.hint.startswith("possible man-in-the-middle attack; ")
    assert (bmc.asked, bmc.headers) == ([], [])


def test_a_ca_file_that_is_not_there(bmc, tmp_path):
    error = _error(lambda: bmc.client(ca=tmp_path / "none.pem").power())
    assert error.message == (
        f"The CA file {tmp_path}/none.pem of gpu001's BMC is not usable: no such file or directory."
    )


def test_proxies_of_the_environment_are_ignored(bmc, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert bmc.client().power() == "on"


def test_sessions_are_closed_after_errors_too(bmc):
    client = bmc.client()
    client.power()
    assert len(bmc.sessions) == 1
    bmc.fault(SYSTEM, lambda handler: fake.answer(handler, 500))
    _error(client.power)
    client.close()
    assert bmc.sessions == {}


@pytest.mark.parametrize("document", [True, False])
@pytest.mark.parametrize("host", ["https://bmc-gpu001.oob.example.com", "https://[", ""])
def test_a_session_is_closed_where_its_location_has_another_host_name(bmc, host, document):
    def log_in(handler) -> bool:
        path = f"{fake.SESSIONS}/{len(bmc.headers)}"
        bmc.sessions[path] = token = f"token-{len(bmc.headers)}"
        body = {"@odata.id": path} if document else None
        return fake.answer(handler, 201, body, X_Auth_Token=token, Location=host + path)

    bmc.fault(fake.SESSIONS, log_in, "POST")
    for _ in range(3):
        client = bmc.client()
        client.power()
        client.close()
    unknown = host == "https://[" and not document
    assert len(bmc.sessions) == (3 if unknown else 0)


def test_closing_never_raises(bmc):
    client = bmc.client(timeout_seconds=1)
    client.power()
    (path,) = bmc.sessions
    bmc.fault(path, lambda handler: time.sleep(2) is None, "DELETE")
    client.close()


def test_a_session_that_has_expired_is_opened_again(bmc):
    client = bmc.client()
    client.power()
    bmc.sessions.clear()
    assert client.power() == "on"
    assert len(bmc.sessions) == 1


@pytest.mark.parametrize("status", [404, 405, 400, 501])
def test_basic_where_there_are_no_sessions(bmc, status):
    bmc.fault(fake.SESSIONS, lambda handler: fake.answer(handler, status), "POST")
    client = bmc.client()
    assert client.power() == "on"
    assert bmc.headers[-1]["Authorization"].startswith("Basic ")
    client.close()


def test_basic_with_a_wrong_password(bmc):
    bmc.session_service = False
    error = _error(lambda: bmc.client(password="wrong").power())
    assert error.message == f"{bmc.target()} rejects the password of user root (GET {SYSTEMS})."


def test_the_password_is_nowhere(bmc, caplog, capsys):
    """In no log, no error and no representation, though the BMC repeats it."""
    caplog.set_level(logging.DEBUG)
    told = {"error": {"message": f"the password {fake.PASSWORD} is too weak"}}
    client = bmc.client()
    client.identity()
    shown = [repr(client), repr(bmc.session()), repr(bmc.target()), str(bmc.target())]
    for status in (400, 401, 403, 409, 500):
        bmc.fault(RESET, lambda handler, status=status: fake.answer(handler, status, told), "POST")
        error = _error(lambda: client.set_power(PowerAction.ON))
        shown += [str(error), repr(error), str(error.hint)]
        assert error.__cause__ is None
    client.close()
    shown += [caplog.text, *capsys.readouterr()]
    assert not [text for text in shown if fake.PASSWORD in text]
    assert "(the password)" in "".join(shown)
