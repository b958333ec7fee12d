"""Asks the directory's servers for TLS from a node: the node connects and prints, and everything is judged here."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from rackwright.claims.check import CheckContext, Undetermined
from rackwright.roles.accounts import texts
from rackwright.roles.accounts.options import AccountsOptions

Context = CheckContext[AccountsOptions]

# RFC 4511, 4.14.1: an extended request with the name 1.3.6.1.4.1.1466.20037; in its response the result code follows
# the tag 0a (enumerated), of length 1. Read 2026-11-26.
PROGRAM = """\
import socket, ssl, sys
seconds, ca = float(sys.argv[1]), sys.argv[2]
for one in sys.argv[3:]:
    scheme, host, port = one.split("|")
    try:
        context = ssl.create_default_context(cafile=ca)
        with socket.create_connection((host, int(port)), seconds) as plain:
            if scheme == "ldap":
                name = b"1.3.6.1.4.1.1466.20037"
                body = b"\\x02\\x01\\x01\\x77" + bytes([len(name) + 2]) + b"\\x80" + bytes([len(name)]) + name
                plain.sendall(b"\\x30" + bytes([len(body)]) + body)
                outcome = plain.recv(4096)
                if b"\\x0a\\x01\\x00" not in outcome:
                    print("fail", "it refuses StartTLS" if outcome else "it closes the connection", flush=True)
                    continue
            with context.wrap_socket(plain, server_hostname=host) as secure:
                print("ok", secure.version(), flush=True)
    except ssl.SSLCertVerificationError as error:
        print("fail", "its certificate is refused: " + error.verify_message.replace("\\n", " "), flush=True)
    except TimeoutError:
        print("fail no answer within", sys.argv[1], "s", flush=True)
    except OSError as error:
        reason = error.strerror or getattr(error, "reason", None) or str(error) or type(error).__name__
        print("fail", reason.replace("\\n", " "), flush=True)
"""
"""Seconds for each server, file of CAs, then `SCHEME|HOST|PORT` of each. Prints a line for each: `ok VERSION`, or `fail`
and why."""


class Answer(NamedTuple):
    """What became of one server."""

    uri: str
    ok: bool
    outcome: str
    """TLS version, or why there is no connection."""

    def __str__(self) -> str:
        return f"{self.uri}: {self.outcome}"


def ask(context: Context) -> list[Answer]:
    """Whether each server speaks TLS with a certificate that the node accepts. Undetermined where the node cannot ask."""
    options = context.options
    ca = texts.ca_path(context.node, options)
    asked = [_server(uri) for uri in options.servers]
    arguments = (PROGRAM, str(options.server_seconds), ca, *asked)
    lines = context.output(f"python3 -IS -c{' %s' * len(arguments)}", *arguments).splitlines()
    if len(lines) != len(asked):
        raise Undetermined(f"the node printed {len(lines)} lines about {len(asked)} servers")
    return [_answer(uri, line) for uri, line in zip(options.servers, lines, strict=True)]


def _server(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.scheme}|{parts.hostname}|{parts.port or texts.SERVER_PORTS[parts.scheme]}"


def _answer(uri: str, line: str) -> Answer:
    word, _, outcome = line.partition(" ")
    if word not in ("ok", "fail") or not outcome:
        raise Undetermined(f"the node printed a line that cannot be read: {line[:80]!r}")
    return Answer(uri, word == "ok", outcome)
