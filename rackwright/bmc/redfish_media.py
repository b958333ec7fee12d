"""Virtual drives: below the system in new BMCs, below the manager in older ones."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from rackwright.bmc.documents import Document, last_part, link, sub, text
from rackwright.bmc.interface import Media
from rackwright.bmc.redfish_tree import Tree
from rackwright.bmc.target import ResourceBroken, ResourceMissing

_CD = ("CD", "DVD")
_TRIES = 30
_PAUSE_SECONDS = 2.0


def drives(tree: Tree) -> dict[str, Document]:
    """Path -> document of every virtual drive."""
    system = tree.system()
    for holder in (system, *tree.managers(system)):
        found = {
            path: one
            for one in tree.members(link(holder, "VirtualMedia"))
            if (path := text(one, "@odata.id")) is not None
        }
        if found:
            return found
    return {}


def media_of(doc: Document) -> Media:
    """One drive."""
    image = text(doc, "Image", "ImageName")
    inserted = doc.get("Inserted")
    return Media(
        name=text(doc, "Id", "Name") or "virtual media",
        inserted=inserted if isinstance(inserted, bool) else image is not None,
        image=image,
        cd=is_cd(doc),
    )


def is_cd(doc: Document) -> bool:
    """Whether a CD fits; a drive that lists no types takes any."""
    types = doc.get("MediaTypes")
    return not isinstance(types, list) or not types or any(one in _CD for one in types)


def cd_drives(found: dict[str, Document]) -> dict[str, Document]:
    """Those that a CD fits into, the one to use first."""

    def order(item: tuple[str, Document]) -> tuple[bool, bool]:
        doc = item[1]
        declared = isinstance(doc.get("MediaTypes"), list)
        return not declared, not _can_insert(doc)

    return dict(sorted(((path, doc) for path, doc in found.items() if is_cd(doc)), key=order))


def await_inserted(tree: Tree, path: str, url: str) -> None:
    """Return once a virtual drive reports this image, as far as it reports any; BmcError where it does not in a minute.

    BMCs accept an image and fetch it afterwards: a machine that is switched on meanwhile boots from its disk.
    """
    problem: str | None = None
    for _ in range(_TRIES):
        try:
            problem = _not_inserted(tree.session.get(path), url)
        except (ResourceBroken, ResourceMissing) as error:  # some restart the drive when they attach an image
            problem = error.message.rstrip(".")
        if problem is None:
            return
        if not tree.session.pause(_PAUSE_SECONDS):
            break
    raise tree.session.target.cannot(
        f"insert virtual media: it accepted the image, and its drive {last_part(path)} does not have it: {problem}",
        hint="can the BMC reach `bmc_server` and its port? its event log may say why it did not take the image",
    )


def _not_inserted(doc: Document, url: str) -> str | None:
    """What speaks against the image being in the drive; None where nothing that the BMC reports does."""
    image = text(doc, "Image")
    # by the file's name: some report the path alone, or the name, and those of our images are random
    if image is not None and _file(image) != _file(url):
        return f"it reports the image {image}"
    return "it reports `Inserted: false`" if doc.get("Inserted") is False else None


def _file(image: str) -> str:
    try:
        path = urlsplit(image).path
    except ValueError:
        path = image
    return re.split(r"[/\\]", path)[-1]


def same_certificate(doc: Document, pem: str) -> bool:
    """Whether a document holds this certificate, however its lines are broken."""
    there = doc.get("CertificateString")
    return isinstance(there, str) and "".join(there.split()) == "".join(pem.split())


def _can_insert(doc: Document) -> bool:
    return bool(sub(doc, "Actions", "#VirtualMedia.InsertMedia"))
