"""sbom.cdx.json: the packages of an image as a CycloneDX 1.6 document."""

from __future__ import annotations

import uuid
from importlib.util import find_spec

from rackwright.errors import ImageError
from rackwright.image.manifest import Manifest, Package

NAME = "sbom.cdx.json"


def require_library() -> None:
    """ImageError where the optional library is missing."""
    if find_spec("cyclonedx") is None:
        raise ImageError(
            "the Python package cyclonedx-python-lib, which writes an image's list of packages, is missing",
            hint="pip install 'rackwright[image]'",
        )


def purl(package: Package, os: str) -> str:
    """The package's URL: purl-spec, type deb (read 2026-11-23)."""
    from packageurl import PackageURL

    distribution = os.partition("-")[0]
    qualifiers = {"arch": package.architecture, "distro": os}
    return PackageURL("deb", distribution, package.name, package.version, qualifiers).to_string()


def render(manifest: Manifest) -> str:
    """The document as JSON; the same for the same packages and image."""
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"rackwright:image:{manifest.key}"))
    bom.metadata.component = Component(
        name=f"{manifest.cluster}/{manifest.group}",
        version=manifest.key,
        type=ComponentType.OPERATING_SYSTEM,
        bom_ref="image",
    )
    for package in manifest.packages:
        url = purl(package, manifest.os)
        bom.components.add(
            Component(
                name=package.name,
                version=package.version,
                type=ComponentType.LIBRARY,
                purl=PackageURL.from_string(url),
                bom_ref=url,
                properties=[
                    Property(name="rackwright:source", value=f"{package.source} {package.source_version}")
                ],
            )
        )
    bom.register_dependency(bom.metadata.component, list(bom.components))
    text: str = JsonV1Dot6(bom).output_as_string(indent=2)
    return text + "\n"
