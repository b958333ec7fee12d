"""Claims about HTTP services that require a password, tested with curl on the node."""

from __future__ import annotations

from typing import Any

from rackwright.boundary import Refused, printable, read_json
from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.model.options import RoleOptions

# The password goes from its file to curl's stdin, and into no argument: printf is the shell's own.
ASK = """\
set -eu
password=$(cat "$2")
printf 'user = "%s:%s"\\n' "$1" "$password" | curl --config - --silent --show-error --noproxy '*' --max-time 20 "$3"
"""
_STATUS = (
    "curl --silent --show-error --noproxy '*' --output /dev/null --max-time 10 --write-out '%%{http_code}' %s"
)
_NOT_CONNECTED, _BAD_TLS = 7, frozenset({35, 51, 58, 60, 77, 83})
"""curl's exit codes: could not connect; problems with TLS, of which 60 is a certificate that is not trusted (curl(1))."""
_ANSWERS = frozenset({"200", "400"})
"""400: it processed the request, which is incomplete."""


def answer(context: CheckContext[RoleOptions], user: str, password_file: str, url: str) -> str:
    """A service's answer to this user; raises Undetermined if there is none."""
    return context.output("sh -c %s sh %s %s %s", ASK, user, password_file, url)


def json_answer(
    context: CheckContext[RoleOptions], user: str, password_file: str, url: str, service: str
) -> Any:  # noqa: ANN401 - JSON
    """As `answer`; also raises Undetermined if it is not JSON. `service`: its name for the message."""
    try:
        return read_json(answer(context, user, password_file, url))
    except Refused as error:
        raise Undetermined(f"the answer of {service} cannot be read: {error}") from error


def requires_password(context: CheckContext[RoleOptions], url: str) -> None:
    """FAIL if the URL answers without a password, does not answer, or has a certificate that this node does not trust."""
    result = context.host.run(_STATUS, url)
    if result.rc == _NOT_CONNECTED:
        fail(f"no answer at {url}")
    if result.rc in _BAD_TLS:
        fail(f"this node does not trust the TLS certificate of {url}: {_first_line(result.stderr)}")
    if result.rc != 0:
        raise Undetermined(f"curl of {url} exited {result.rc}: {_first_line(result.stderr)}")
    if result.stdout in _ANSWERS:
        fail(f"{url} answers without a password")
    if result.stdout != "401":
        raise Undetermined(f"{url} answers {result.stdout!r}, neither content nor a refusal")


def _first_line(text: str) -> str:
    """What curl reports; below it, it gives advice."""
    return printable(text.strip().partition("\n")[0], 200) or "no message"
