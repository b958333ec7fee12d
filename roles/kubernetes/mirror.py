"""What a site's mirror has of Kubernetes: the package archive with its key, and images as archives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.options import Frozen
from rackwright.model.package_archive import PackageArchive
from rackwright.model.strings import HttpUrl, Sha256

Reference = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][A-Za-z0-9./:@_-]{0,254}$")]


class ImageArchive(Frozen):
    """An image as one OCI archive, for sites without a registry."""

    component: str = Field(pattern=r"^[a-z][a-z0-9-]{0,62}$", description="E.g. kube-apiserver.")
    reference: Reference = Field(description="As pods name it, e.g. registry.example.com/pause:3.10.")
    url: HttpUrl
    sha256: Sha256 = Field(description="Of the archive.")

    @property
    def tag(self) -> str:
        """What stands after the colon."""
        return self.reference.rpartition(":")[2]


class Mirror(Frozen):
    """The file."""

    archive: PackageArchive
    revision: str = Field(pattern=r"^[0-9A-Za-z.+~]{1,20}$", description="Of the packages, e.g. 1.1.")
    registry: Reference = Field(description="Prefix of the images' references.")
    images: tuple[ImageArchive, ...] = ()

    def image(self, component: str) -> ImageArchive | None:
        """The archive of a component."""
        return next((one for one in self.images if one.component == component), None)


_MAX_BYTES = 1 << 20


def read_mirror(cluster: Cluster, path: Path) -> Mirror:
    """The file beside the cluster file; RackwrightError with the reason where it cannot be used."""
    file = cluster.path.parent / path
    try:
        with file.open("rb") as stream:
            return Mirror.model_validate_json(stream.read(_MAX_BYTES))
    except OSError as error:
        raise RackwrightError(f"{path} cannot be read: {(error.strerror or 'unreadable').lower()}.") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RackwrightError(f"{path} is invalid: {where}: {first['msg']}.") from None
