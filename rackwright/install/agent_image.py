"""The agent image: a signed kernel, an initramfs, and the signed boot loaders that start them from a medium.

The initramfs is built once from Debian packages; the agent's modules are a second archive, so that a new version
of them needs no rebuild. Files and names: Debian's packages shim-signed and grub-efi-amd64-signed, read in a
tree of Debian 13 (2026-11-27).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from rackwright import __version__
from rackwright.errors import ImageError
from rackwright.image import manifest
from rackwright.image.folder import discard, locked
from rackwright.image.install import apt_settings
from rackwright.install import agent_tree, cpio
from rackwright.lab import names, sources
from rackwright.lab.process import require, run
from rackwright.lab.spec import IMAGES

KERNEL, INITRAMFS, SHIM, GRUB_CD, GRUB_NET, ESP = (
    "vmlinuz",
    "agent.img",
    "shimx64.efi",
    "gcdx64.efi",
    "grubx64.efi",
    "efi.img",
)
_LOADERS = {
    SHIM: "usr/lib/shim/shimx64.efi.signed",
    GRUB_CD: "usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed",
    GRUB_NET: "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed",
}
_VERSION = 1
"""Version of the build itself: a new number gives new keys."""
_PROGRAMS = ("chroot", "mcopy", "mformat", "mmd", "mmdebstrap", "unshare", "zstd")
_BASE = "base.img"
_ESP_SECTORS = 16384
_BUILD_SECONDS, _SECONDS = 900.0, 300.0
_KEPT_DAYS = 30
Log = Callable[[str], None]


class AgentManifest(BaseModel):
    """manifest.json of an agent image."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = Field(default=1, alias="schema", description="Version of this schema.")
    rackwright: str = Field(default=__version__, description="rackwright version that built it.")
    key: str = Field(description="Key of all its inputs: equal keys, equal recipes.")
    kernel: str = Field(description="Kernel release.")
    packages: tuple[manifest.Package, ...] = Field(description="Packages in its initramfs.")
    files: tuple[manifest.Artefact, ...]


def ensure(log: Log) -> Path:
    """Folder of the agent image; built if missing, and cached in the lab's folder."""
    folder = names.lab_dir() / "agent-images"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / key()
    if not target.is_dir():
        build(target, log)
    os.utime(target)  # its age shows when it was last used
    _sweep(folder)
    return target


def build(target: Path, log: Log) -> AgentManifest:
    """The agent image in the folder `target`, built unless it exists; ImageError if the folder has other contents."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target):
        there = read(target)
        if there is not None and there.key == key():
            return there
        if target.exists():
            raise ImageError(
                f"{target} contains something other than this agent image",
                hint="remove the folder, or choose another with --out",
            )
        base = _base(log)
        unfinished = target.with_name(f".{target.name}.unfinished")
        discard(unfinished)
        try:
            unfinished.mkdir(mode=0o755)
            made = _assemble(base, unfinished)
            unfinished.rename(target)
        finally:
            discard(unfinished)
        return made


def read(folder: Path) -> AgentManifest | None:
    """The manifest of an agent image; None if there is none that this version can read."""
    try:
        return AgentManifest.model_validate_json((folder / manifest.NAME).read_text())
    except (OSError, ValueError):
        return None


def key() -> str:
    """Short key of all inputs of the agent image."""
    code = hashlib.sha256(cpio.archive(agent_tree.code())).hexdigest()[:8]
    return f"{base_key()}-{code}"


def base_key() -> str:
    """Short key of what is built only from packages."""
    content = {
        "version": _VERSION,
        "suite": _suite(),
        "sources": sources.machine_mirrors().lines(_suite()),
        "packages": agent_tree.PACKAGES,
        "contents": agent_tree.contents(),
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"agent-{_suite()}-{digest[:12]}"


def _suite() -> str:
    """The newest release that rackwright can build: its kernel supports the newest machines."""
    return max(IMAGES.items())[1]


def _assemble(base: Path, target: Path) -> AgentManifest:
    of_base = read(base)
    if of_base is None:
        raise ImageError(f"{base} is damaged", hint=f"rm -r {base}")
    for name in (KERNEL, ESP, *_LOADERS):
        shutil.copyfile(base / name, target / name)
    with (target / INITRAMFS).open("wb") as file, (base / _BASE).open("rb") as compressed:
        shutil.copyfileobj(compressed, file)
        file.write(b"\0" * (-file.tell() % 4))  # the kernel expects an archive at a multiple of 4
        file.write(cpio.archive(agent_tree.code()))
    files = manifest.artefacts([target / name for name in (KERNEL, INITRAMFS, ESP, *_LOADERS)])
    return _write(
        of_base.model_copy(update={"key": key(), "files": files, "rackwright": __version__}), target
    )


def _base(log: Log) -> Path:
    """Folder of what is built only from packages; built if missing."""
    base = names.lab_dir() / "agent-images" / base_key()
    base.parent.mkdir(parents=True, exist_ok=True)
    with locked(base):
        if base.is_dir():
            os.utime(base)
            return base
        require(_PROGRAMS, "building the agent image")
        log("building the agent image (once, about a minute)")
        unfinished = base.with_name(f".{base.name}.unfinished")
        discard(unfinished)
        try:
            (unfinished / "image").mkdir(parents=True)
            unfinished.chmod(0o700)
            _make_base(unfinished / "tree", unfinished / "image")
            (unfinished / "image").rename(base)
        finally:
            discard(unfinished)
    return base


def _make_base(tree: Path, out: Path) -> None:
    packages = _install(tree)
    kernel = next((path.name.removeprefix("vmlinuz-") for path in (tree / "boot").glob("vmlinuz-*")), None)
    if kernel is None:
        raise ImageError("the agent's root tree contains no kernel")
    shutil.copyfile(tree / "boot" / f"vmlinuz-{kernel}", out / KERNEL)
    for name, path in _LOADERS.items():
        shutil.copyfile(tree / path, out / name)
    _make_esp(out)
    agent_tree.keep_modules(tree / "usr/lib/modules" / kernel)
    run(["chroot", str(tree), "depmod", kernel], timeout=_SECONDS)
    agent_tree.prune(tree)
    _compress(tree, out / _BASE)
    files = manifest.artefacts([out / name for name in (KERNEL, _BASE, ESP, *_LOADERS)])
    _write(AgentManifest(key=base_key(), kernel=kernel, packages=packages, files=files), out)


def _install(tree: Path) -> tuple[manifest.Package, ...]:
    settings = [line.rstrip(";") for line in apt_settings().splitlines()]
    argv = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(agent_tree.PACKAGES)}"]
    argv += [f"--aptopt={setting}" for setting in settings]
    argv += [f"--dpkgopt={option}" for option in agent_tree.DPKG_OPTIONS]
    listing = f'chroot "$1" {manifest.PACKAGE_QUERY} >"$1/packages"'
    argv += [f"--customize-hook={listing}", _suite(), str(tree), *sources.machine_mirrors().lines(_suite())]
    # In namespaces that end with it, so that no mount or process of the build is left behind. With INITRD=No the kernel
    # package builds no initramfs.
    inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    run(["env", "INITRD=No", *inside, *argv], timeout=_BUILD_SECONDS, shown="mmdebstrap for the agent image")
    listed = (tree / "packages").read_text()
    (tree / "packages").unlink()
    return manifest.packages(listed)


def _make_esp(out: Path) -> None:
    """The file system that firmware boots from a CD: shim, and the GRUB that searches for a CD."""
    image = str(out / ESP)
    run(["mformat", "-C", "-i", image, "-T", str(_ESP_SECTORS), "-v", "AGENT", "::"], timeout=60)
    for folder in ("EFI", "EFI/BOOT"):
        run(["mmd", "-i", image, f"::/{folder}"], timeout=60)
    for name, target in ((SHIM, "BOOTX64.EFI"), (GRUB_CD, "grubx64.efi")):
        run(["mcopy", "-i", image, str(out / name), f"::/EFI/BOOT/{target}"], timeout=60)


def _compress(tree: Path, target: Path) -> None:
    argv = ["zstd", "--quiet", "--threads=0", "-12", "-o", str(target)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as packed:
        assert packed.stdin is not None
        try:
            cpio.write_tree(tree, packed.stdin)
            packed.stdin.close()
            code = packed.wait(_SECONDS)
        except BaseException:
            packed.kill()
            raise
    if code != 0:
        raise ImageError(f"zstd failed with exit code {code} on {target}")


def _write(made: AgentManifest, folder: Path) -> AgentManifest:
    (folder / manifest.NAME).write_text(made.model_dump_json(indent=2, by_alias=True) + "\n")
    return made


def _sweep(folder: Path) -> None:
    """Remove agent images that have not been used for a month."""
    oldest = time.time() - _KEPT_DAYS * 86400
    for one in sorted(folder.glob("[!.]*")):
        if one.stat().st_mtime < oldest:
            shutil.rmtree(one, ignore_errors=True)
