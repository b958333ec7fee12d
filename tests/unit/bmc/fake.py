"""A Redfish service on 127.0.0.1 over TLS that serves one maker's tree, and misbehaves where a test asks it to."""

from __future__ import annotations

import copy
import json
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.x509.oid import NameOID

from rackwright.bmc.redfish import RedfishClient
from rackwright.bmc.redfish_http import RedfishHttp
from rackwright.bmc.redfish_session import RedfishSession
from rackwright.bmc.target import Target
from rackwright.model.bmc import Bmc
from rackwright.secrets.secret import Secret

DIALECTS = Path(__file__).parent / "dialects"
NAMES = ("hgx", "idrac", "ilo", "openbmc", "supermicro", "xcc")
USER, PASSWORD = "root", "s3cret-Of-The-BMC"
SESSIONS = "/redfish/v1/SessionService/Sessions"


@cache
def certificate(folder: Path, address: str = "127.0.0.1") -> tuple[Path, str]:
    """A PEM file with key and self-signed certificate for an address, and its SHA-256."""
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"bmc {address}")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / f"{address}-{made.serial_number}.pem"
    path.write_bytes(key.private_bytes(*pem) + made.public_bytes(serialization.Encoding.PEM))
    return path, made.fingerprint(hashes.SHA256()).hex()


def tree(name: str) -> dict[str, Any]:
    """The documents of a dialect by path."""
    return json.loads((DIALECTS / name / "tree.json").read_text())


@dataclass
class Fake:
    """What the service has, what it was asked, and how it misbehaves."""

    documents: dict[str, Any]
    pem: Path
    fingerprint: str
    port: int = 0
    sessions: dict[str, str] = field(default_factory=dict)
    """Path of each open session -> its token."""
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    """Method, path and body of each request, sessions excepted."""
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: int = 0
    session_service: bool = True
    faults: dict[tuple[str, str], Callable[[Any], bool]] = field(default_factory=dict)
    """(method, path) -> answers itself; False: as usual this time."""

    def fault(self, path: str, act: Callable[[Any], bool], method: str = "GET") -> None:
        """Answer this way to requests of this path."""
        self.faults[method, path] = act

    def changes(self) -> list[tuple[str, str, Any]]:
        """Requests that were no reading."""
        return [one for one in self.asked if one[0] != "GET"]

    def client(self, *, within: float | None = None, password: str = PASSWORD, **bmc: Any) -> RedfishClient:
        """A client of it."""
        return RedfishClient(self.session(within=within, password=password, **bmc))

    def session(
        self,
        *,
        within: float | None = None,
        password: str = PASSWORD,
        pauses: list[float] | None = None,
        **bmc: Any,
    ) -> RedfishSession:
        """A session with it; waits are noted in `pauses`."""
        return RedfishSession(
            RedfishHttp(
                self.target(password, **bmc),
                lambda address, port, timeout: socket.create_connection((address, port), timeout),
                within=within,
                pause=(pauses if pauses is not None else []).append,
            )
        )

    def target(self, password: str = PASSWORD, **bmc: Any) -> Target:
        """It, as declared; its own certificate is the CA unless `bmc` says otherwise."""
        given = {"ca": self.pem, "timeout_seconds": 5, **bmc}
        declared = Bmc(
            address=IPv4Address("127.0.0.1"), port=self.port, user=USER, password="bmc_password", **given
        )
        return Target("gpu001", declared, Secret("bmc_password", password))


def answer(handler: Any, status: int, document: Any = None, **headers: str) -> bool:
    """Send one answer."""
    data = b"" if document is None else json.dumps(document).encode()
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)
    return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: Fake

    def setup(self) -> None:
        self.request.settimeout(10)
        self.fake.connections += 1
        super().setup()

    def log_message(self, *args: object) -> None: ...

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_PATCH(self) -> None:
        self._serve("PATCH")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def _serve(self, method: str) -> None:
        fake = self.fake
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        fake.headers.append(dict(self.headers.items()))
        if not self.path.startswith(SESSIONS):
            fake.asked.append((method, self.path, body))
        act = fake.faults.get((method, self.path))
        if act is not None and act(self):
            return
        if self.path.startswith(SESSIONS):
            self._session(method, body)
        elif self.path != "/redfish/v1/" and not self._logged_in():
            answer(self, 401)
        elif method == "GET":
            self._get()
        else:
            self._change(method, body)

    def _session(self, method: str, body: Any) -> None:
        if not self.fake.session_service:
            answer(self, 404)
        elif method == "DELETE":
            self.fake.sessions.pop(self.path, None)
            answer(self, 204)
        elif body != {"UserName": USER, "Password": PASSWORD}:
            answer(
                self, 401, {"error": {"message": f"no login for {body['UserName']} with {body['Password']}"}}
            )
        else:
            path, token = f"{SESSIONS}/{len(self.fake.asked)}", f"token-{len(self.fake.headers)}"
            self.fake.sessions[path] = token
            answer(self, 201, {"@odata.id": path}, X_Auth_Token=token, Location=path)

    def _logged_in(self) -> bool:
        basic = "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        token = self.headers.get("X-Auth-Token")
        return self.headers.get("Authorization") == basic or token in self.fake.sessions.values()

    def _get(self) -> None:
        path, _, query = self.path.partition("?")
        document = copy.deepcopy(self.fake.documents.get(path))
        if document is None:
            answer(self, 404, {"error": {"message": "The resource was not found."}})
            return
        if "$expand" in query:
            paths = [one["@odata.id"] for one in document["Members"]]
            inline = dict(zip(paths, document["Members"], strict=True))
            document["Members"] = [self.fake.documents.get(one, inline[one]) for one in paths]
        answer(self, 200, document, ETag=document.get("@odata.etag", ""), Allow="GET, PATCH")

    def _change(self, method: str, body: Any) -> None:
        resource = self.path.partition("/Actions/")[0]
        document = self.fake.documents.get(resource)
        if document is None:
            answer(self, 404)
        elif method == "PATCH":
            for name, value in body.items():
                merged = isinstance(value, dict) and isinstance(document.get(name), dict)
                document[name] = {**document[name], **value} if merged else value
            answer(self, 200, document)
        else:
            if self.path.endswith("InsertMedia"):
                document.update(Image=body["Image"], Inserted=True)
            if self.path.endswith("EjectMedia"):
                document.update(Image=None, Inserted=False)
            answer(self, 204)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(
        self, request: Any, client_address: Any
    ) -> None: ...  # a client that hangs up is part of tests


@contextmanager
def serving(documents: dict[str, Any], folder: Path, address: str = "127.0.0.1") -> Iterator[Fake]:
    """The service on 127.0.0.1, with a certificate for this address, until the block is left."""
    pem, fingerprint = certificate(folder, address)
    fake = Fake(documents, pem, fingerprint)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": fake}))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()


def drip(handler: Any, first: bytes, each: bytes, seconds: float = 0.05) -> bool:
    """Send this, then a few bytes again and again until the client hangs up."""
    handler.close_connection = True
    handler.wfile.write(first)
    for _ in range(400):
        handler.wfile.write(each)
        time.sleep(seconds)
    return True
