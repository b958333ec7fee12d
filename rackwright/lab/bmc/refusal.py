"""Redfish's errors: a status and a message of the registry Base."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.lab.bmc.view import Document

_REGISTRY = "Base.1.18"


class Refusal(Exception):  # noqa: N818 - reads as the sentence it is
    """What a BMC does not do, as its answer."""

    def __init__(
        self, status: int, message_id: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message_id = message_id
        self.message = message
        self.headers = dict(headers or {})

    @property
    def body(self) -> Document:
        """The error as Redfish writes it (DSP0266, "Error responses")."""
        extended = {
            "@odata.type": "#Message.v1_2_1.Message",
            "MessageId": f"{_REGISTRY}.{self.message_id}",
            "Message": self.message,
            "MessageArgs": [],
            "Severity": "Critical",
            "MessageSeverity": "Critical",
            "Resolution": "See the message.",
        }
        code = f"{_REGISTRY}.{self.message_id}"
        return {"error": {"code": code, "message": self.message, "@Message.ExtendedInfo": [extended]}}


def bad_request(message: str, message_id: str = "PropertyValueError") -> Refusal:
    """The request is wrong."""
    return Refusal(400, message_id, message)


def unauthorized() -> Refusal:
    """Neither password nor token."""
    basic = {"WWW-Authenticate": 'Basic realm="Redfish"'}
    return Refusal(
        401, "NoValidSession", "The request has neither a valid session nor a valid password.", basic
    )


def not_found(path: str) -> Refusal:
    """The resource does not exist."""
    return Refusal(404, "ResourceMissingAtURI", f"The resource at {path} does not exist.")


def not_allowed(method: str, path: str, allowed: str) -> Refusal:
    """The resource does not support the method."""
    message = f"{method} is not a method of {path}."
    return Refusal(405, "OperationNotAllowed", message, {"Allow": allowed})


def conflict(message: str) -> Refusal:
    """The state of the machine does not allow it."""
    return Refusal(409, "ResourceInUse", message)


def changed(path: str) -> Refusal:
    """The client has seen another version of the resource."""
    return Refusal(412, "PreconditionFailed", f"{path} has changed since it was read.")
