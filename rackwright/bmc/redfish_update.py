"""Firmware over Redfish: installed versions, and updates through the UpdateService. See `updates.BmcUpdates`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from rackwright.bmc.documents import Document, document, last_part, link, links, sub, text
from rackwright.bmc.interface import Firmware
from rackwright.bmc.redfish_bios import read_registry, refusals
from rackwright.bmc.redfish_session import RedfishSession
from rackwright.bmc.redfish_tasks import begun, read_task, read_without_task, tasks_under_way
from rackwright.bmc.redfish_tree import Tree
from rackwright.bmc.updates import UpdateTask, UpdateWay
from rackwright.errors import BmcError

_COMPONENTS_MAX = 512
_DEVICES_MAX = 64
_SIMPLE = "#UpdateService.SimpleUpdate"
_CHUNK = 1 << 18
_UPLOAD_BYTES_PER_SECOND = 128 * 1024
_UPLOAD_SECONDS = 600.0
"""Allowance for the BMC's work on an image before it answers, in addition to the upload."""
_NOT_INSTALLED = ("Previous-", "Available-")
"""iDRAC also lists versions for rollback and staged ones."""


class RedfishUpdates:
    """Firmware of one node, through its BMC; for one thread."""

    def __init__(self, session: RedfishSession, tree: Tree) -> None:
        self._session = session
        self._tree = tree

    def components(self) -> list[Firmware]:
        """Entries of the firmware inventory."""
        path = link(self._service(), "FirmwareInventory")
        if path is None:
            raise self._session.target.cannot(
                "list its firmware: it has no firmware inventory",
                hint="update its firmware, or query IPMI and the operating system instead",
            )
        return components_of(self._tree.members(path, _COMPONENTS_MAX))

    def devices(self) -> list[Firmware]:
        """Drives, network adapters and processors with firmware."""
        tree, system = self._tree, self._tree.system()
        found = [_device("Processor", one) for one in tree.members(link(system, "Processors"), _DEVICES_MAX)]
        for storage in tree.members(link(system, "Storage"), _DEVICES_MAX):
            drives = links(storage, "Drives")[:_DEVICES_MAX]
            found += [_device("Drive", tree.optional(path)) for path in drives]
        for chassis in tree.chassis(system):
            for adapter in tree.members(link(chassis, "NetworkAdapters"), _DEVICES_MAX):
                found.append(_device("NetworkAdapter", adapter))
        return [one for one in found if one is not None]

    def ways(self) -> frozenset[UpdateWay]:
        """By the update service's actions."""
        service = self._service()
        if service.get("ServiceEnabled") is False:
            return frozenset()
        found = {UpdateWay.URL} if _target(service) is not None else set()
        return frozenset(found | ({UpdateWay.FILE} if text(service, "MultipartHttpPushUri") else set()))

    def begin(self, image: str | Path, *, at_reset: bool) -> str | None:
        """SimpleUpdate for a URL, MultipartHttpPush for a file."""
        service = self._service()
        when = "OnReset" if at_reset else "Immediate"
        if isinstance(image, Path):
            return self._push(service, image, when)
        target = _target(service)
        if target is None:
            raise self._session.target.cannot(
                "download an image: its update service does not support SimpleUpdate",
                hint="declare the image as a `file`",
            )
        action = sub(service, "Actions", _SIMPLE)
        scheme = urlsplit(image).scheme.upper()
        offered = action.get("TransferProtocol@Redfish.AllowableValues")
        if isinstance(offered, list) and offered and scheme not in offered:
            names = ", ".join(str(one) for one in offered)
            raise self._session.target.cannot(
                f"download an image over {scheme}; it supports {names}",
                hint="declare `url` on a server that the BMC can download from, e.g. over HTTP",
            )
        body: Document = {"ImageURI": image, "TransferProtocol": scheme}
        if when in _apply_times(action):
            body["@Redfish.OperationApplyTime"] = when
        return begun(self._session.exchange("POST", target, body))

    def task(self, name: str | None) -> UpdateTask:
        """Progress of an update."""
        return read_without_task(self._service()) if name is None else read_task(self._tree, name)

    def under_way(self) -> list[UpdateTask]:
        """Tasks that are running or waiting for a boot."""
        return tasks_under_way(self._tree)

    def bios_refusals(self, changes: Mapping[str, object]) -> dict[str, str]:
        """From the BIOS attribute registry, if the BMC has it."""
        bios = self._tree.optional(link(self._tree.system(), "Bios"))
        return refusals(changes, sub(bios, "Attributes"), read_registry(self._tree, bios))

    def _service(self) -> Document:
        return self._tree.optional(link(self._session.root(), "UpdateService"))

    def _push(self, service: Document, image: Path, when: str) -> str | None:
        path = text(service, "MultipartHttpPushUri")
        if path is None:
            raise self._session.target.cannot(
                "accept an uploaded image: its update service does not support MultipartHttpPush",
                hint="declare `boot_network`, so that BMCs can download images from here",
            )
        parameters: Document = {"Targets": []}
        if when in _apply_times(service, "MultipartHttpPushUri"):
            parameters["@Redfish.OperationApplyTime"] = when
        boundary = f"rackwright{secrets.token_hex(16)}"
        head, tail = _parts(parameters, image.name, boundary)
        try:
            size = image.stat().st_size
            with image.open("rb") as stream:
                answer = self._session.upload(
                    path,
                    _chunks(head, iter(lambda: stream.read(_CHUNK), b""), tail),
                    {
                        "Content-Type": f"multipart/form-data; boundary={boundary}",
                        "Content-Length": str(len(head) + size + len(tail)),
                    },
                    _UPLOAD_SECONDS + size / _UPLOAD_BYTES_PER_SECOND,
                )
        except OSError as error:
            raise BmcError(f"Cannot read the image {image}: {error.strerror}.") from error
        return begun(answer)


def components_of(documents: Iterator[Document]) -> list[Firmware]:
    """Components of a firmware inventory by id, including those without a version."""
    found: dict[str, Firmware] = {}
    for doc in documents:
        identity = text(doc, "Id") or last_part(text(doc, "@odata.id") or "")
        if not identity or identity.startswith(_NOT_INSTALLED):
            continue
        name, version = text(doc, "Name") or identity, text(doc, "Version") or ""
        found.setdefault(identity, Firmware(identity, name, version, doc.get("Updateable") is True))
    return sorted(found.values(), key=lambda one: one.id)


def _device(kind: str, doc: Document) -> Firmware | None:
    """A part of the system with firmware; None for others."""
    controllers = doc.get("Controllers")
    first = document(controllers[0]) if isinstance(controllers, list) and controllers else {}
    version = text(doc, "FirmwareVersion", "Revision") or text(first, "FirmwarePackageVersion")
    identity = text(doc, "Id")
    if version is None or identity is None:
        return None
    return Firmware(f"{kind}/{identity}", text(doc, "Model", "Name") or identity, version)


def _target(service: Document) -> str | None:
    return text(sub(service, "Actions", _SIMPLE), "target")


def _apply_times(doc: Document, of: str = "") -> list[object]:
    values = sub(doc, f"{of}@Redfish.OperationApplyTimeSupport").get("SupportedValues")
    return values if isinstance(values, list) else []


def _parts(parameters: Document, name: str, boundary: str) -> tuple[bytes, bytes]:
    """What comes before and after the image in a multipart/form-data body."""
    safe = "".join(one if one.isascii() and (one.isalnum() or one in "._+-") else "_" for one in name)
    lines = [
        f"--{boundary}",
        'Content-Disposition: form-data; name="UpdateParameters"',
        "Content-Type: application/json",
        "",
        json.dumps(parameters),
        f"--{boundary}",
        f'Content-Disposition: form-data; name="UpdateFile"; filename="{safe}"',
        "Content-Type: application/octet-stream",
        "",
        "",
    ]
    return "\r\n".join(lines).encode(), f"\r\n--{boundary}--\r\n".encode()


def _chunks(head: bytes, middle: Iterator[bytes], tail: bytes) -> Iterator[bytes]:
    yield head
    yield from middle
    yield tail
