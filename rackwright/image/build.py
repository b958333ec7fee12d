"""Builds images: runs the group's node-independent operations in a copy of a base tree."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from rackwright.data import Site
from rackwright.engine.reports import Reports
from rackwright.errors import ImageError, RunFailed
from rackwright.image import manifest, root, sbom
from rackwright.image.choice import BuildStep, Choice, choose, evaluated
from rackwright.image.folder import discard, locked
from rackwright.image.install import install
from rackwright.image.manifest import Manifest
from rackwright.lab import image, oci
from rackwright.lab.boot_disk import DISK, KERNEL, PROGRAMS, make_boot_disk
from rackwright.lab.process import require, run
from rackwright.lab.recipe import Kind, recipe
from rackwright.lab.spec import IMAGES
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.pyinfra_driver.driver import Driver
from rackwright.pyinfra_driver.offline import EmptyNode
from rackwright.shipped import deploy_of

Format = Literal["disk", "oci", "root"]
ACCOUNTS = ("passwd", "group", "shadow", "gshadow")
_PROGRAMS = ("chroot", "cp", "mmdebstrap", "mount", "setpriv", "unshare")
_VERSION = 4
"""Version of the build method: a new number gives new keys."""
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    """An image to be built: known in full before anything is."""

    cluster: Cluster
    nodes: tuple[Node, ...]
    compared: tuple[Node, ...]
    choice: Choice
    format: Format
    size_gib: int

    @property
    def kind(self) -> Kind:
        """What the base tree is to run on."""
        return Kind(str(self.nodes[0].platform))

    @property
    def os(self) -> str:
        """The operating system, as in the cluster file."""
        return str(self.nodes[0].os)

    @property
    def key(self) -> str:
        """Short name of all that the image is made of."""
        content = {
            "version": _VERSION,
            "base": recipe(self.os, self.kind).key,
            "steps": [asdict(step) for step in self.choice.steps],
            "units": self.choice.units,
            "format": self.format,
            "size": self.size_gib if self.format == "disk" else None,
        }
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return f"{self.os}-{self.kind}-{digest[:16]}"


def order(cluster: Cluster, nodes: Sequence[Node], format: Format, size_gib: int) -> Order:
    """What the image of these nodes would be made of; ImageError for nodes that cannot have one."""
    _refuse_unfit(nodes, format)
    compared = evaluated(nodes)
    reports = Reports()
    sites = [Site(cluster, node, offline=True) for node in compared]
    Driver(sites, deploy_of(cluster.path), reports, connector=EmptyNode).plan()
    plans = [reports.plans[node.name] for node in compared]
    for plan in plans:
        if plan.error is not None:
            raise RunFailed(f"{plan.node} cannot be evaluated: {plan.error}")
    choice = choose([plan.operations for plan in plans])
    if format == "root" and (packages := root.layout_packages(nodes)):
        step = BuildStep("install", "Install what the disks' layout needs", (root.layout_command(packages),))
        choice = replace(choice, steps=(step, *choice.steps))
    return Order(cluster, tuple(nodes), compared, choice, format, size_gib)


def build(wanted: Order, target: Path, log: Log) -> Manifest:
    """The image in the folder `target`, built unless it is there already.

    Raises ImageError where the folder holds something else, and where a step fails.
    """
    needed = {"disk": PROGRAMS, "oci": (), "root": root.PROGRAMS}[wanted.format]
    require((*_PROGRAMS, *needed), "building an image")
    sbom.require_library()
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target):
        there = manifest.read(target)
        if there is not None and there.key == wanted.key:
            return there
        if target.exists():
            raise ImageError(
                f"{target} contains something other than this image",
                hint="remove the folder, or choose another with --out",
            )
        unfinished = target.with_name(f".{target.name}.unfinished")
        discard(unfinished)
        try:
            (unfinished / "image").mkdir(parents=True)
            unfinished.chmod(0o700)  # the tree has other people's setuid programs
            made = _make(wanted, unfinished, log)
            (unfinished / "image").rename(target)
        finally:
            discard(unfinished)
        return made


def _make(wanted: Order, unfinished: Path, log: Log) -> Manifest:
    tree, out = unfinished / "tree", unfinished / "image"
    with image.held({wanted.os}, log, wanted.kind) as bases:
        base = bases[wanted.os]
        run(["cp", "--archive", "--reflink=auto", str(base), str(tree)], timeout=600)
        packages = install(wanted.choice, tree, IMAGES[wanted.os], log)
    kernel, files = _write(wanted, tree, out, log)
    made = Manifest(
        key=wanted.key,
        cluster=wanted.cluster.name,
        file_sha256=wanted.cluster.sha256,
        group=fold(node.name for node in wanted.nodes),
        evaluated=fold(node.name for node in wanted.compared),
        os=wanted.os,
        platform=str(wanted.kind),
        architecture=wanted.nodes[0].sku.cpu_architecture,
        kernel=kernel,
        format=wanted.format,
        size_gib=wanted.size_gib if wanted.format == "disk" else None,
        recipe=recipe(wanted.os, wanted.kind).key,
        installed=tuple(manifest.Operation(role=step.role, name=step.name) for step in wanted.choice.steps),
        left=wanted.choice.left,
        differing=wanted.choice.differing,
        packages=packages,
        files=(),
    )
    (out / sbom.NAME).write_text(sbom.render(made))
    made = made.model_copy(update={"files": manifest.artefacts([*files, out / sbom.NAME])})
    manifest.write(made, out)
    return made


def _write(wanted: Order, tree: Path, out: Path, log: Log) -> tuple[str | None, list[Path]]:
    """The tree in the wanted format: the kernel that boots by default, and the files that were written."""
    if wanted.format == "oci":
        log("writing the OCI image")
        oci.write_oci(tree, out / oci.NAME, wanted.key)
        return None, [out / oci.NAME]
    if wanted.format == "root":
        log("packing the root file system")
        kernel, files = root.write_root(tree, out / root.NAME), [out / root.NAME]
    else:
        log(f"making a disk of {wanted.size_gib} GiB")
        kernel, files = make_boot_disk(tree, out / DISK, wanted.size_gib).kernel, [out / DISK, out / KERNEL]
        shutil.copyfile(tree / "boot" / f"vmlinuz-{kernel}", out / KERNEL)
    (out / "etc").mkdir()
    for name in ACCOUNTS:
        shutil.copy2(tree / "etc" / name, out / "etc" / name)
    return kernel, files


def _refuse_unfit(nodes: Sequence[Node], format: Format) -> None:
    first = nodes[0]
    shared = {(str(node.os), str(node.platform), node.sku.cpu_architecture) for node in nodes}
    if len(shared) > 1:
        raise ImageError(
            f"{fold(node.name for node in nodes)} differ in operating system, platform or CPU: "
            f"{'; '.join(sorted(', '.join(one) for one in shared))}",
            hint="build one image per kind, e.g. --group worker1",
        )
    if str(first.os) not in IMAGES:
        raise ImageError(
            f"{first.name} runs {first.os}, but images can be built only of {', '.join(IMAGES)}",
            hint=f"e.g. `os: {next(iter(IMAGES))}`, or install the node with its distribution's installer",
        )
    cpu, here = first.sku.cpu_architecture, platform.machine()
    if cpu != "x86_64" or here != cpu:
        raise ImageError(
            f"{first.name} has a CPU of type {cpu}, and this host one of type {here}; images are built on "
            "x86_64 for x86_64 only"
        )
    if format != "oci" and str(first.platform) == Kind.CONTAINER:
        raise ImageError(
            f"{first.name} is a container, which does not boot from a disk",
            hint="set `platform: vm` or `platform: bare-metal` in the cluster file, or use --format oci",
        )
