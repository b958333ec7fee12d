"""A login to one BMC's Redfish service: one session, closed afterwards, or Basic authentication where the service has no sessions.

The password is sent once: a BMC that rejects it is not asked again, since some lock the account after a few tries.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from rackwright.bmc.documents import Document, document, link, sub
from rackwright.bmc.redfish_http import Answer, RedfishHttp
from rackwright.bmc.target import ResourceBroken, ResourceMissing, Target
from rackwright.boundary import printable
from rackwright.errors import BmcError

ROOT = "/redfish/v1/"
_SESSIONS = "/redfish/v1/SessionService/Sessions"


class RedfishSession:
    """Requests as a logged-in user; logs in on the first one."""

    def __init__(self, http: RedfishHttp) -> None:
        self._http = http
        self._login: dict[str, str] = {}
        self._session: str | None = None
        self._root: Document | None = None

    def __repr__(self) -> str:
        return f"RedfishSession({self.target.node})"

    @property
    def target(self) -> Target:
        """Whose BMC it is."""
        return self._http.target

    def root(self) -> Document:
        """The service root, which needs no login."""
        if self._root is None:
            answer = self._http.request("GET", ROOT, None, {})
            if answer.status_code == 404:
                raise BmcError(
                    f"{self.target} has no Redfish service: {ROOT} does not exist.",
                    hint="is this the BMC's address? old BMCs need `protocol: ipmi`",
                )
            self._check(answer, "GET", ROOT)
            self._root = document(answer.json())
        return self._root

    def get(self, path: str) -> Document:
        """The document at a path; ResourceMissing if there is none."""
        return document(self.exchange("GET", path).json())

    def exchange(
        self,
        method: str,
        path: str,
        body: Any = None,  # noqa: ANN401 - JSON data
        headers: Mapping[str, str] | None = None,
        *,
        judged: bool = True,
    ) -> Answer:
        """An authenticated request; BmcError if it is refused.

        + judged: False leaves refusals of the request itself, such as 400 and 412, to the caller
        """
        self._log_in()
        answer = self._http.request(method, path, body, {**(headers or {}), **self._login})
        if answer.status_code == 401 and self._session is not None:  # the session has expired
            self._login, self._session = {}, None
            self._log_in()
            answer = self._http.request(method, path, body, {**(headers or {}), **self._login})
        if judged or answer.status_code in (401, 403, 404, 409) or answer.status_code >= 500:
            self._check(answer, method, path)
        return answer

    def upload(self, path: str, body: Iterable[bytes], headers: Mapping[str, str], seconds: float) -> Answer:
        """Send a long body once; call it soon after another request, because an expired login is not renewed."""
        self._log_in()
        answer = self._http.upload(path, body, {**headers, **self._login}, seconds)
        self._check(answer, "POST", path)
        return answer

    def pause(self, seconds: float) -> bool:
        """Wait before the BMC is asked again; False if its time is used up."""
        return self._http.pause(seconds)

    def close(self) -> None:
        """Log out: BMCs allow few sessions at once. If that fails, the BMC ends the idle session."""
        try:
            if self._session is not None:
                self._http.request("DELETE", self._session, None, self._login)
        except BmcError:
            pass
        finally:
            self._login, self._session = {}, None
            self._http.close()

    def _log_in(self) -> None:
        if self._login:
            return
        root, password = self.root(), self.target.password.reveal()
        user = self.target.bmc.user
        path = link(sub(root, "Links"), "Sessions")
        if path is not None or "SessionService" in root:
            body = {"UserName": user, "Password": password}
            path = path or _SESSIONS
            answer = self._http.request("POST", path, body, {})
            token = answer.header("X-Auth-Token")
            if answer.status_code < 300 and token.isascii() and token.isprintable() and token:
                self._login = {"X-Auth-Token": token}
                self._session = _session_in(answer)
                return
            if answer.status_code in (401, 403):
                self._check(answer, "POST", path)
        basic = b64encode(f"{user}:{password}".encode()).decode()
        self._login = {"Authorization": f"Basic {basic}"}

    def _check(self, answer: Answer, method: str, path: str) -> None:
        """BmcError for every status that is a refusal."""
        status, asked = answer.status_code, f"{method} {printable(path, 200)}"
        if status < 400:
            return
        reason = _said(answer, self.target.password.reveal())
        user, secret = self.target.bmc.user, self.target.bmc.password
        if status == 401:
            raise BmcError(
                f"{self.target} rejects the password of user {user} ({asked}).",
                hint=f"store the right one with: rackwright secrets put {secret} FILE; after several wrong ones "
                "many BMCs lock the account for some minutes",
            )
        if status == 403:
            raise ResourceMissing(
                f"{self.target} does not allow user {user} to {asked}{reason}.",
                hint=f"give {user} the role Administrator on the BMC; some functions need a vendor license, and "
                "a new BMC may require a password change first",
            )
        if status == 404:
            raise ResourceMissing(
                f"{self.target} has no {printable(path, 200)} ({method}).",
                hint="its firmware may be too old: `rackwright bmc status FILE` prints the version",
            )
        if status == 409:
            raise BmcError(
                f"{self.target} cannot do {asked} in its present state{reason}.",
                hint="it may be busy with an earlier request: wait a minute and run again",
            )
        if status >= 500:
            raise ResourceBroken(
                f"{self.target} failed at {asked} with HTTP status {status}{reason}.",
                hint="run again; if it fails again, reset the BMC itself, e.g. in its web interface",
            )
        raise BmcError(
            f"{self.target} refuses {asked} with HTTP status {status}{reason}.",
            hint="`rackwright bmc status FILE` prints its firmware; see the vendor's release notes",
        )


def _session_in(answer: Answer) -> str | None:
    """The path of a new session, needed to close it; None if the BMC does not return it."""
    try:
        named = link({"self": answer.json()}, "self")
    except BmcError:
        named = None  # no document: some omit it
    try:
        # only the path: some BMCs put another host name there than the declared address
        return named or urlsplit(answer.header("Location")).path or None
    except ValueError:
        return None


def _said(answer: Answer, password: str) -> str:
    """`: ` and the BMC's reason, with the password removed; empty if there is none."""
    try:
        error = sub(document(answer.json()), "error")
    except BmcError:
        return ""
    infos = error.get("@Message.ExtendedInfo")
    first = document(infos[0]) if isinstance(infos, list) and infos else document(infos)
    text = first.get("Message") or error.get("message")
    if not isinstance(text, str) or not text.strip():
        return ""
    return ": " + printable(text.replace(password, "(the password)"), 200).rstrip(". ")
