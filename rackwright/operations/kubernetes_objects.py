"""Objects of the Kubernetes API, applied on the primary control-plane node."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.kubernetes.commands import AS_DECLARED, apply, compare, document, path_of
from rackwright.kubernetes.objects import FOLDER, Object
from rackwright.operations import files
from rackwright.operations.settings import setting


def kubernetes_objects(role: str, objects: Sequence[Object]) -> None:
    """What a role declares in the cluster; the plan shows the text of all of it, and names what differs.

    An object that a role stops declaring is deleted with the next apply. Secrets do not belong in it.
    """
    files.directory(name="Create the folder for declared objects", path=FOLDER, mode="700")
    files.file(
        name=f"Write the objects of {role}", path=path_of(role), content=document(role, objects), mode="600"
    )
    setting(
        name=f"Apply the objects of {role}",
        target=f"Kubernetes objects of {role}",
        read=compare(role, objects),
        want=AS_DECLARED,
        write=apply(role, objects),
    )
