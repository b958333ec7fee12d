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
    """Whether it accepts a CD; a drive that lists no types accepts any."""
    types = doc.get("MediaTypes")
    return not isinstance(types, list) or not types or any(one in _CD for one in types)


def cd_drives(found: dict[str, Document]) -> dict[str, Document]:
    """Drives that accept a CD, the preferred one first."""

    def order(item: tuple[str, Document]) -> tuple[bool, bool]:
        doc = item[1]
        declared = isinstance(doc.get("MediaTypes"), list)
        return not declared, not _can_insert(doc)

    return dict(sorted(((path, doc) for path, doc in found.items() if is_cd(doc)), key=order))


def await_inserted(tree: Tree, path: str, url: str) -> None:
    """Return once a virtual drive reports this image, if it reports any; BmcError if it does not within a minute.

    BMCs accept an image and download it afterwards: a machine powered on too early would boot from its disk.
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
        f"insert virtual media: it accepted the image, but its drive {last_part(path)} does not have it: {problem}",
        hint="can the BMC reach `bmc_server` and its port? check its event log for the reason",
    )


def _not_inserted(doc: Document, url: str) -> str | None:
    """Why the image does not seem to be in the drive; None if nothing contradicts it."""
    image = text(doc, "Image")
    # by file name: some report only the path or the name, and our image names are random
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
    """Whether a document contains this certificate, regardless of line breaks."""
    there = doc.get("CertificateString")
    return isinstance(there, str) and "".join(there.split()) == "".join(pem.split())


def _can_insert(doc: Document) -> bool:
    return bool(sub(doc, "Actions", "#VirtualMedia.InsertMedia"))
