"""Seed disks of a cluster's virtual machines, for hypervisors that the lab does not run, such as Vagrant's."""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path

from rackwright.errors import ImageError
from rackwright.lab import keys
from rackwright.lab.from_cluster import rack_spec
from rackwright.lab.seed import HOST_KEY, make_seed
from rackwright.lab.vm import pad
from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import Platform


def write_seeds(cluster: Cluster, images: Path, out: Path) -> list[str]:
    """Write `out`/NODE.tar for every virtual machine that has none, and all host keys to known_hosts.

    `images` holds the folder of each node's boot image, named after the node or one of its roles. The names
    of the nodes that got a seed are returned; a seed that is there keeps its node's host key.
    """
    nodes = [node for node in cluster.nodes if node.platform is Platform.VM]
    if not nodes:
        raise ImageError(f"{cluster.path} declares no virtual machine", hint="e.g. `platform: vm`")
    bases = {node.name: _image(node, images) for node in nodes}
    spec = rack_spec(cluster)
    public_key = keys.ensure_admin_key(spec.key)
    out.mkdir(parents=True, exist_ok=True)
    out.chmod(0o700)  # seeds hold the nodes' private keys
    written = []
    for node in nodes:
        target = out / f"{node.name}.tar"
        if target.exists():
            continue
        with tempfile.TemporaryDirectory(prefix=f".{node.name}.", dir=out) as staging:
            packed, _ = make_seed(spec, spec.node(node.name), bases[node.name], public_key, Path(staging))
            pad(packed, Path(staging, "padded"))
            os.replace(Path(staging, "padded"), target)
        written.append(node.name)
    keys.write_known_hosts(spec, {node.name: _host_key(out / f"{node.name}.tar") for node in nodes})
    return written


def _image(node: Node, images: Path) -> Path:
    names = [node.name, *sorted(node.roles)]
    for name in names:
        if (images / name / "etc" / "passwd").is_file():
            return images / name
    raise ImageError(
        f"{node.name} has no boot image in {images}: it has no folder {' or '.join(names)}",
        hint=f"rackwright image build FILE --group {node.name} --out {images / node.name}",
    )


def _host_key(seed: Path) -> str:
    try:
        with tarfile.open(seed) as tar:
            member = tar.extractfile(f"{HOST_KEY}.pub")
            assert member is not None
            return " ".join(member.read().decode().split()[:2])
    except (tarfile.TarError, KeyError) as error:
        raise ImageError(
            f"{seed} is not a seed: {error}", hint="remove it, and run the command again"
        ) from None
