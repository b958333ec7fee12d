"""The file beside a cluster file with what the rack serves, in the form in which a site describes its mirror."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rackwright.atomic_write import write_atomically
from rackwright.errors import LabError
from rackwright.lab import names, state
from rackwright.lab.artefact.recipe import PACKAGE_VERSION, REGISTRY, VERSION
from rackwright.lab.artefact.repository import KEY
from rackwright.lab.artefact.serve import POD_IMAGES_PORT, PORT
from rackwright.lab.from_cluster import rack_spec
from rackwright.model.cluster import Cluster
from rackwright.model.interfaces import RunsKubernetes


@dataclass(frozen=True)
class PodImageFile:
    """An image that was built for the cluster's pods, in the folder that its rack serves."""

    reference: str
    name: str
    """The file's."""
    sha256: str


def write_mirror_lists(cluster: Cluster, pod_images: Sequence[PodImageFile] = ()) -> None:
    """Write each file that a role's `mirror` names, once the rack serves its artefact."""
    offers = (node.offers(RunsKubernetes) for node in cluster.nodes)
    paths = {role.mirror for role in offers if role is not None and role.mirror is not None}
    served = state.read_json(names.rack_state(cluster.name) / "artefact.json")
    for path in sorted(paths):
        if not isinstance(served, str):
            raise LabError(f"rack {cluster.name} serves no Kubernetes, and {path} is to describe it")
        target = cluster.path.parent / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, json.dumps(mirror_list(cluster, Path(served), pod_images), indent=1) + "\n")


def mirror_list(cluster: Cluster, folder: Path, pod_images: Sequence[PodImageFile] = ()) -> dict[str, Any]:
    """Where the nodes of a rack find an artefact, and the digests of what is there."""
    address = rack_spec(cluster).bridge_address.partition("/")[0]
    base, built = f"http://{address}:{PORT}", f"http://{address}:{POD_IMAGES_PORT}"
    images = json.loads((folder / "images.json").read_text())
    return {
        "archive": {
            "url": f"{base}/repository",
            "key_url": f"{base}/repository/{KEY}",
            "fingerprint": fingerprint(folder / "repository" / KEY),
        },
        "revision": PACKAGE_VERSION.removeprefix(f"{VERSION}-"),
        "registry": REGISTRY,
        "images": [
            {
                "component": image["component"],
                "reference": image["reference"],
                "url": f"{base}/{image['file']}",
                "sha256": image["archive_sha256"],
            }
            for image in images
        ]
        + [
            {
                "component": image.reference.rpartition("/")[2].partition(":")[0],
                "reference": image.reference,
                "url": f"{built}/{image.name}",
                "sha256": image.sha256,
            }
            for image in pod_images
        ],
    }


def fingerprint(key: Path) -> str:
    """Of the first key in a file; LabError if it has none."""
    with (
        TemporaryDirectory() as home
    ):  # two starts at once would both make ~/.gnupg, and one of them would fail
        command = ["gpg", "--homedir", home, "--batch", "--quiet", "--show-keys", "--with-colons", str(key)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    for line in done.stdout.splitlines():
        fields = line.split(":")
        if fields[0] == "fpr":
            return fields[9]
    raise LabError(f"{key} is not a key: {done.stderr.strip()[-200:]}")
