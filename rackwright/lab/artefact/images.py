"""OCI archives of what kubeadm starts and of what the lab's pods need: a program, and the libraries that it loads."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rackwright.lab.artefact.recipe import REGISTRY, VERSION
from rackwright.lab.artefact.tree import Builder
from rackwright.lab.oci import write_oci

_SECONDS = 120
_PATH = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
_TABLES = (
    "iptables",
    "iptables-save",
    "iptables-restore",
    "ip6tables",
    "ip6tables-save",
    "ip6tables-restore",
)
PAUSE_VERSION, DNS_VERSION, GPU_PLUGIN_VERSION = "3.2", "1.7.0", "1.0"
"""The first two are what kubeadm 1.20 asks for by default (cmd/kubeadm/app/constants)."""


@dataclass(frozen=True, slots=True)
class Image:
    """An entry of images.json."""

    component: str
    reference: str
    file: str
    """Relative to the artefact."""
    digest: str
    """Of the manifest."""
    archive_sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class _Content:
    """What is put into an image."""

    component: str
    tag: str
    programs: dict[str, Path] = field(default_factory=dict)
    """Path in the image -> a program of the build."""
    closure: tuple[str, ...] = ()
    """Programs and plug-ins of the runtime tree, with what they load."""
    files: tuple[str, ...] = ()
    links: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)


def write_images(builder: Builder, programs: Path, runtime: Path, mpi: Path, folder: Path) -> list[Image]:
    """Write all images to `folder`/images; the trees are Debian's, `programs` the folder of what was built."""
    staging = folder / ".images"
    images = []
    for content in _contents(builder, programs, runtime):
        tree = staging / content.component
        _fill(builder, content, runtime, tree)
        images.append(write_image(folder, tree, content.component, content.tag, content.config))
    tag = _version(builder, mpi, "openmpi-bin")
    slim(mpi)
    images.append(write_image(folder, mpi, "mpi", tag, {"Cmd": ["bash"]}))
    shutil.rmtree(staging)
    return images


def slim(tree: Path) -> None:
    """Remove from a Debian tree what no pod needs, and what makes each build differ."""
    for name in ("var/log", "var/cache", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"):
        shutil.rmtree(tree / name, ignore_errors=True)
        (tree / name).mkdir(parents=True)
    keys = tree.glob("etc/ssh/ssh_host_*")
    for path in (*keys, *(tree / "etc" / name for name in ("machine-id", "resolv.conf", "hostname"))):
        path.unlink(missing_ok=True)


def write_image(folder: Path, tree: Path, component: str, tag: str, config: dict[str, Any]) -> Image:
    """One tree as the archive `folder`/images/`component`.tar."""
    reference = f"{REGISTRY}/{component}:{tag}"
    file = folder / "images" / f"{component}.tar"
    full = {"Env": _PATH, **config}
    digest = write_oci(tree, file, tag, reference=reference, config=full, created_by="rackwright lab")
    file.chmod(0o644)
    with file.open("rb") as archive:
        sha256 = hashlib.file_digest(archive, "sha256").hexdigest()
    return Image(component, reference, f"images/{file.name}", digest, sha256, file.stat().st_size)


def document(images: Sequence[Image]) -> str:
    """The text of images.json."""
    return json.dumps([asdict(image) for image in images], indent=1) + "\n"


def _contents(builder: Builder, programs: Path, runtime: Path) -> list[_Content]:
    plugins = [f"/{path.relative_to(runtime)}" for path in sorted(runtime.glob("usr/lib/*/xtables/*.so"))]
    applets = builder.inside(runtime, "busybox --list", _SECONDS).split()
    servers = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return [
        _Content("pause", PAUSE_VERSION, {"pause": programs / "pause"}, config={"Entrypoint": ["/pause"]}),
        _Content(
            "etcd",
            f"{_version(builder, runtime, 'etcd-server')}-0",
            closure=("/usr/bin/etcd", "/usr/bin/etcdctl"),
        ),
        _Content(
            "busybox",
            ".".join(_version(builder, runtime, "busybox-static").split(".")[:2]),
            files=("/bin/busybox",),
            links={f"bin/{applet}": "busybox" for applet in applets if applet != "busybox"},
            texts={"etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/group": "root:x:0:\n"},
            config={"Cmd": ["sh"]},
        ),
        *(_Content(name, f"v{VERSION}", {f"usr/local/bin/{name}": programs / name}) for name in servers),
        _Content(
            "kube-proxy",
            f"v{VERSION}",
            {"usr/local/bin/kube-proxy": programs / "kube-proxy"},
            closure=("/usr/sbin/xtables-nft-multi", "/usr/sbin/conntrack", *plugins),
            files=("/etc/protocols", "/etc/services"),
            links={f"usr/sbin/{name}": "xtables-nft-multi" for name in _TABLES},
        ),
        _Content(
            "coredns",
            DNS_VERSION,
            {"coredns": programs / "rackwright-dns"},
            config={"Entrypoint": ["/coredns"]},
        ),
        _Content(
            "gpu-plugin",
            GPU_PLUGIN_VERSION,
            {"gpu-plugin": programs / "gpu-plugin"},
            config={"Entrypoint": ["/gpu-plugin"]},
        ),
    ]


def _fill(builder: Builder, content: _Content, runtime: Path, tree: Path) -> None:
    for folder in ("etc", "run", "tmp", "root"):
        (tree / folder).mkdir(parents=True)
    (tree / "tmp").chmod(0o1777)
    copies = dict(content.programs)
    copies |= {file.removeprefix("/"): runtime / file.removeprefix("/") for file in content.files}
    for file in _closure(builder, runtime, content.closure) if content.closure else ():
        copies[file.removeprefix("/")] = runtime / file.removeprefix("/")
    for path, source in copies.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)  # a library's link becomes the library
    for path, text in content.texts.items():
        (tree / path).write_text(text)
    for path, to in content.links.items():
        if not (tree / path).exists():
            (tree / path).symlink_to(to)


def _closure(builder: Builder, runtime: Path, files: Sequence[str]) -> list[str]:
    """These files of a tree and the libraries that the dynamic linker finds for them."""
    # ldd fails for a static program, and prints nothing with a path for it
    output = builder.inside(runtime, f"ldd {' '.join(files)} 2>/dev/null || true", _SECONDS)
    libraries = {word for line in output.splitlines() for word in line.split() if word.startswith("/")}
    return sorted({*files, *(word for word in libraries if not word.endswith(":"))})


def _version(builder: Builder, tree: Path, package: str) -> str:
    """Upstream's version of an installed package."""
    text = builder.inside(tree, f"dpkg-query -W -f '${{Version}}' {package}", _SECONDS)
    return text.partition(":")[2].partition("-")[0] if ":" in text else text.partition("-")[0]
