"""Text types of the cluster file, each with its own error message."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from rackwright.documents.yaml_data import Data

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def mistake(message: str, hint: str | None = None) -> PydanticCustomError:
    """A validation error whose message and hint are shown unchanged."""
    return PydanticCustomError("mistake", "{message}", {"message": message, "hint": hint})


def host_label_mistake(name: str) -> str | None:
    """Why this is not a valid host name (one label, RFC 1123), or None."""
    if len(name) > 63:
        return "A host name may have at most 63 characters."
    if not _LABEL.fullmatch(name):
        return "A host name may contain only lower-case letters, digits and inner hyphens."
    if name == "localhost":
        return "`localhost` cannot be a node name."
    if name.isdigit():
        return "A host name must not be a number."
    return None


def label_mistake(name: str) -> str | None:
    """Why this is not a valid name for a cluster, network, SKU or rack, or None."""
    if _LABEL.fullmatch(name) and len(name) <= 40:
        return None
    return "A name may contain only lower-case letters, digits and inner hyphens, at most 40 characters."


def _label(value: Data) -> str:
    if not isinstance(value, str) or not value:
        raise mistake("Expected a name.")
    wrong = label_mistake(value)
    if wrong is not None:
        raise mistake(wrong, "e.g. `gpu-west`")
    return value


def _domain(value: Data) -> str:
    if not isinstance(value, str) or not value:
        raise mistake("Expected a domain.", "e.g. `cluster.example.com`")
    if len(value) > 190:
        raise mistake("A domain may have at most 190 characters, to leave room for host names.")
    for label in value.split("."):
        if not _LABEL.fullmatch(label) or len(label) > 63:
            raise mistake("Not a valid domain.", "e.g. `cluster.example.com`: lower case, no dot at the end")
    return value


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def _network(value: Data) -> IPv4Network:
    if isinstance(value, IPv4Network):
        return value
    if not isinstance(value, str):
        raise mistake("Expected a network.", "e.g. `10.1.0.0/16`")
    if ":" in value:
        raise mistake("IPv6 networks are not supported.", "e.g. `10.1.0.0/16`")
    if "/" not in value:
        example = f"{value}/24" if _is_address(value) else "10.1.0.0/16"
        raise mistake("The prefix length is missing.", f"e.g. `{example}`")
    try:
        network = IPv4Network(value, strict=False)
    except ValueError:
        raise mistake("Not a valid IPv4 network.", "e.g. `10.1.0.0/16`") from None
    if str(network.network_address) != value.split("/")[0]:
        raise mistake("The address has bits set after the prefix length.", f"write `{network}`")
    if network.is_multicast or network.is_loopback or network.is_link_local or network.is_reserved:
        raise mistake("This network cannot have host addresses.", "use a private network, e.g. `10.1.0.0/16`")
    if network.prefixlen > 30 or network.prefixlen < 8:
        raise mistake("The prefix length must be from 8 to 30.")
    return network


def _address(value: Data) -> IPv4Address:
    if isinstance(value, IPv4Address):
        return value
    if isinstance(value, str):
        if "/" in value:
            raise mistake("Write the address without a prefix length.", f"write `{value.split('/')[0]}`")
        try:
            return IPv4Address(value)
        except ValueError:
            pass
    raise mistake("Not a valid IPv4 address.", "e.g. `10.1.0.11`")


def _mac(value: Data) -> str:
    text = value.lower().replace("-", ":") if isinstance(value, str) else ""
    if not _MAC.fullmatch(text):
        raise mistake("Not a valid MAC address.", "e.g. `52:54:00:12:34:56`")
    if int(text[:2], 16) & 1:
        raise mistake("This is a multicast MAC address; a network port cannot have one.")
    return text


def _schema(pattern: str, example: str) -> FieldInfo:
    info: FieldInfo = Field(json_schema_extra={"pattern": pattern, "examples": [example]})
    return info


Label = Annotated[str, BeforeValidator(_label), _schema(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "gpu")]
"""Name of a cluster, network or SKU."""

Domain = Annotated[str, BeforeValidator(_domain), _schema(r"^[a-z0-9.-]+$", "cluster.example.com")]
Cidr = Annotated[IPv4Network, BeforeValidator(_network), _schema(r"^[0-9./]+$", "10.1.0.0/16")]
Address = Annotated[IPv4Address, BeforeValidator(_address), _schema(r"^[0-9.]+$", "10.1.0.11")]
Mac = Annotated[
    str, BeforeValidator(_mac), _schema(r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$", "52:54:00:12:34:56")
]
