"""Changes over Redfish with vendor-specific handling: OpenStack's sushy behind typed functions.

sushy knows the ETags that must be weakened, the media that must be patched, and the parameters that one firmware
requires and another rejects. Its connector is replaced: requests, logins and limits are ours (`redfish_session.py`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from sushy import exceptions as sushy_errors
from sushy.connector import Connector
from sushy.resources.constants import ApplyTime
from sushy.resources.manager.virtual_media import VirtualMedia
from sushy.resources.system.bios import Bios
from sushy.resources.system.constants import BootSourceOverrideEnabled, BootSourceOverrideMode
from sushy.resources.system.secure_boot import SecureBoot
from sushy.resources.system.system import System

from rackwright.bmc.redfish_http import Answer
from rackwright.bmc.redfish_session import RedfishSession
from rackwright.bmc.redfish_tasks import begun
from rackwright.boundary import printable
from rackwright.errors import BmcError

T = TypeVar("T")
_REASON_MAX = 300
logging.getLogger("sushy").setLevel(logging.CRITICAL + 1)  # it logs BMC answers, which may repeat a password


class _Connection(Connector):  # type: ignore[misc] # sushy has no types
    """sushy's connector over our session, without its requests, retries and login."""

    def __init__(self, session: RedfishSession) -> None:
        self._rackwright = session
        self.task: str | None = None
        """Task that the BMC created for the last request; None if it was done immediately."""

    def _op(
        self,
        method: str,
        path: str = "",
        data: Any = None,  # noqa: ANN401 - JSON data
        headers: Mapping[str, str] | None = None,
        **_: object,
    ) -> Answer:
        sent = {name: value for name, value in (headers or {}).items() if value}
        if method == "POST" and data is None:
            data = {}  # several BMCs refuse a POST without a body
        answer = self._rackwright.exchange(method, path, data, sent, judged=False)
        self.task = begun(answer) if answer.status_code == 202 else None
        sushy_errors.raise_for_response(
            method, path, answer if answer.status_code < 400 else _document(answer)
        )
        return answer


class Changes:
    """What can be changed on one BMC; each method raises BmcError."""

    def __init__(self, session: RedfishSession) -> None:
        self._session = session
        self._connection = _Connection(session)

    def reset(self, system: str, kinds: tuple[str, ...]) -> None:
        """Change a system's power with the first of these reset types that the BMC supports."""

        def act() -> None:
            resource = System(self._connection, system)
            offered = {one.value: one for one in resource.get_allowed_reset_system_values()}
            fit = next((kind for kind in kinds if kind in offered), None)
            if fit is None:
                raise self._session.target.cannot(
                    f"do {' or '.join(kinds)}; it supports {', '.join(sorted(offered))}",
                    hint="try another action: on, off, soft, cycle, reset",
                )
            resource.reset_system(offered[fit])

        self._do("change the power", act)

    def boot(self, system: str, target: str, enabled: str, http_uri: str | None, *, mode: bool) -> None:
        """Override the boot order.

        + http_uri: for a BMC that can store one, in the same request
        + mode: also request UEFI
        """

        def act() -> None:
            resource = System(self._connection, system)
            offered = {one.value: one for one in resource.get_allowed_system_boot_source_values()}
            how_long = BootSourceOverrideEnabled(enabled)
            if enabled == "Disabled" and target not in offered:
                _drop_override(resource, offered)
                return
            if target not in offered:
                raise self._session.target.cannot(
                    f"boot from {target}; it supports {', '.join(sorted(offered))}",
                    hint="declare another `boot` method for this node",
                )
            uefi = BootSourceOverrideMode.UEFI if mode else None
            try:
                resource.set_system_boot_options(offered[target], how_long, uefi, http_boot_uri=http_uri)
            except sushy_errors.MissingAttributeError:  # nothing was sent: DHCP must provide the URL
                resource.set_system_boot_options(offered[target], how_long, uefi)

        self._do("set the boot order", act)

    def insert(self, media: str, url: str) -> str | None:
        """Insert an image into a virtual drive, write-protected; returns the task, None if it is done."""
        self._do("insert virtual media", lambda: VirtualMedia(self._connection, media).insert_media(url))
        return self._connection.task

    def eject(self, media: str) -> str | None:
        """Empty a virtual drive; returns the task, None if it is done."""
        self._do("eject virtual media", lambda: VirtualMedia(self._connection, media).eject_media())
        return self._connection.task

    def secure_boot(self, path: str, on: bool) -> None:
        """Turn Secure Boot on or off."""
        self._do("switch Secure Boot", lambda: SecureBoot(self._connection, path).set_enabled(on))

    def bios(self, path: str, changes: Mapping[str, object]) -> None:
        """Make the next boot set BIOS attributes."""

        def act() -> None:
            resource = Bios(self._connection, path)
            # without a time, iDRAC keeps the changes and never applies them
            on_reset = ApplyTime.ON_RESET in (resource.supported_apply_times or ())
            resource.set_attributes(dict(changes), apply_time=ApplyTime.ON_RESET if on_reset else None)

        self._do("set BIOS attributes", act)

    def patch(self, path: str, body: Mapping[str, object], etag: str) -> None:
        """Change members of a resource."""
        self._do("change " + path, lambda: self._connection.patch(path, data=dict(body), etag=etag or None))

    def _do(self, what: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except BmcError:
            raise
        except sushy_errors.HTTPError as error:
            raise self._refused(what, _words(error)) from None
        except sushy_errors.SushyError as error:
            raise self._refused(what, str(error)) from None
        except (
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            RecursionError,
        ):  # a document sushy cannot read
            raise self._refused(what, "a document does not follow Redfish") from None

    def _refused(self, what: str, why: str) -> BmcError:
        why = printable(why.replace(self._session.target.password.reveal(), "(the password)"), 300)
        return self._session.target.cannot(
            f"{what}: {why.rstrip('. ')}",
            hint="`rackwright bmc status FILE` prints its firmware; see the vendor's release notes",
        )


def _drop_override(resource: System, offered: Mapping[str, Any]) -> None:
    """Boot in the firmware's order, or from disk if the BMC always overrides it, as sushy-tools does."""
    try:
        resource.set_system_boot_options(enabled=BootSourceOverrideEnabled.DISABLED)
    except sushy_errors.BadRequestError:
        if "Hdd" not in offered:
            raise
        resource.set_system_boot_options(offered["Hdd"], BootSourceOverrideEnabled.CONTINUOUS)


def _document(answer: Answer) -> Answer:
    """A refusal as sushy parses it, also if the BMC gives its reason in plain text."""
    try:
        answer.json()
    except BmcError:
        text = answer.content.decode(errors="replace")[:_REASON_MAX]
        return replace(answer, content=json.dumps({"error": {"message": text}}).encode())
    return answer


def _words(error: Any) -> str:  # noqa: ANN401 - sushy has no types
    """The BMC's reason; sushy finds it in messages with `Severity`, but newer ones have only `MessageSeverity`."""
    detail = str(error.detail or f"HTTP status {error.status_code}")
    infos = error.extended_info if isinstance(error.extended_info, list) else []
    words = [one["Message"] for one in infos if isinstance(one, dict) and isinstance(one.get("Message"), str)]
    return detail if not words or detail in words else "; ".join(one.rstrip(". ") for one in words[:3])
