"""Virtual drives: below the system in new BMCs, below the manager in older ones."""

from __future__ import annotations

from rackwright.bmc.documents import Document, link, sub, text
from rackwright.bmc.interface import Media
from rackwright.bmc.redfish_tree import Tree

_CD = ("CD", "DVD")


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


def same_certificate(doc: Document, pem: str) -> bool:
    """Whether a document holds this certificate, however its lines are broken."""
    there = doc.get("CertificateString")
    return isinstance(there, str) and "".join(there.split()) == "".join(pem.split())


def _can_insert(doc: Document) -> bool:
    return bool(sub(doc, "Actions", "#VirtualMedia.InsertMedia"))
