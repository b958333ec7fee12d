"""Images of pods: packages of the distribution in a minimal tree, without systemd, as OCI archives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rackwright.errors import ImageError
from rackwright.image.folder import discard, locked
from rackwright.image.general import make_general, refuse_secrets
from rackwright.lab import oci, sources
from rackwright.lab.process import require, run
from rackwright.lab.spec import IMAGES
from rackwright.model.cluster import Cluster
from rackwright.model.services import BuildsPodImages, PodImage

_VERSION = 1
"""Version of the build method: a new number builds again."""
_TIMEOUT = 1800
_PATHS_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
# Run by mmdebstrap in the empty tree: no package starts a daemon, and none has one to start.
_NO_DAEMONS = (
    'printf "#!/bin/sh\\nexit 101\\n" >"$1/usr/sbin/policy-rc.d"; chmod 755 "$1/usr/sbin/policy-rc.d"'
)
_PROGRAMS = ("mmdebstrap", "unshare")
Log = Callable[[str], None]


@dataclass(frozen=True)
class Made:
    """An image that is there."""

    reference: str
    name: str
    """The file's."""
    bytes: int
    sha256: str


def images_of(cluster: Cluster) -> tuple[PodImage, ...]:
    """Every image that some role's pods run, once."""
    found = {
        image.reference: image
        for node in cluster.nodes
        for options in node.options.values()
        if isinstance(options, BuildsPodImages)
        for image in options.pod_images(cluster)
    }
    return tuple(found.values())


def file_name(reference: str) -> str:
    """The archive of an image: `slurm-24.11.oci.tar` of `registry.example.com/slurm:24.11`."""
    return f"{reference.rpartition('/')[2].replace(':', '-')}.oci.tar"


def key(image: PodImage, os: str) -> str:
    """Digest of all that an image is made of."""
    content = {
        "version": _VERSION,
        "suite": IMAGES[os],
        "sources": sources.machine_mirrors().lines(IMAGES[os]),
        "image": image._asdict(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def build_all(cluster: Cluster, out: Path, log: Log) -> tuple[Made, ...]:
    """The images of all roles in a folder; one whose recipe has not changed is left as it is.

    Raises ImageError where the primary head's system has no images, LabError where a package cannot be installed.
    """
    wanted = images_of(cluster)
    if not wanted:
        return ()
    os = str(cluster.primary.os)
    if os not in IMAGES:
        raise ImageError(
            f"{cluster.primary.name} runs {os}, but images of pods are built only of {', '.join(IMAGES)}",
            hint="build the image by other means, with the packages of `rackwright render`",
        )
    require(_PROGRAMS, "building an image")
    out.mkdir(parents=True, exist_ok=True)
    return tuple(_ensure(image, os, out, log) for image in wanted)


def _ensure(image: PodImage, os: str, out: Path, log: Log) -> Made:
    target = out / file_name(image.reference)
    recipe = target.with_name(f"{target.name}.recipe")
    with locked(target):
        wanted = key(image, os)
        if not (target.exists() and recipe.exists() and recipe.read_text().strip() == wanted):
            log(f"building {image.reference}")
            recipe.unlink(missing_ok=True)
            _build(image, os, target)
            recipe.write_text(f"{wanted}\n")
    with target.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Made(image.reference, target.name, target.stat().st_size, digest)


def _build(image: PodImage, os: str, target: Path) -> None:
    tree = target.with_name(f".{target.name}.tree")
    discard(tree)
    try:
        # in its own mount namespace, so that no mount is left behind, however it ends
        run(["unshare", "--mount", *_command(image, IMAGES[os], tree)], timeout=_TIMEOUT)
        for path, text in image.files:
            place = tree / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
            place.chmod(0o644)
        make_general(tree)
        refuse_secrets(tree)
        tag = image.reference.rpartition(":")[2]
        oci.write_oci(tree, target, tag, reference=image.reference)
    finally:
        discard(tree)


def _command(image: PodImage, suite: str, tree: Path) -> list[str]:
    valid = sources.apt_setting("Acquire::Check-Valid-Until")
    options = ['APT::Install-Recommends "0"']
    options += ['Acquire::Check-Valid-Until "false"'] if valid == "false" else []
    return [
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        f"--include={','.join(image.packages)}",
        *(f"--aptopt={option}" for option in options),
        *(f"--dpkgopt=path-exclude={path}" for path in _PATHS_LEFT_OUT),
        f"--essential-hook={_NO_DAEMONS}",
        suite,
        str(tree),
        *sources.machine_mirrors().lines(suite),
    ]
