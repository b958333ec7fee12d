"""Base images: a Debian tree per suite and kind, built once, kept under the hash of its recipe."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, names, sources, state
from rackwright.lab.process import joined, run
from rackwright.lab.recipe import Kind, Recipe, every_key, recipe

_BUILD_TIMEOUT = 900


@contextmanager
def held(
    images: set[str], log: Callable[[str], None], kind: Kind = Kind.CONTAINER
) -> Iterator[dict[str, Path]]:
    """The trees of these images, built where missing, and kept from removal while the block runs."""
    _folder().mkdir(parents=True, exist_ok=True)
    recipes = {image: recipe(image, kind) for image in sorted(images)}
    handles: list[int] = []
    try:
        trees = {}
        for image, wanted in recipes.items():
            handle = os.open(_folder() / f"{wanted.key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            handles.append(handle)
            trees[image] = _ensure(f"{image} ({kind})", wanted, handle, log)
        sweep()
        yield trees
    finally:
        for handle in handles:
            os.close(handle)


def sweep() -> None:
    """Remove unfinished builds without a builder, and images which nothing uses and no recipe makes."""
    if not _folder().is_dir():
        return
    try:
        used = in_use()
    except LabError:
        return  # unreadable state may stand for a running rack: what it uses is unknown
    current = every_key()
    for lock in sorted(_folder().glob("*.lock")):
        key = lock.name.removesuffix(".lock")
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # being built, or about to be booted
        else:
            _discard_unfinished(key)
            if key not in current and str(_folder() / key) not in used:
                shutil.rmtree(_folder() / key, ignore_errors=True)
        finally:
            os.close(handle)


def _ensure(image: str, wanted: Recipe, handle: int, log: Callable[[str], None]) -> Path:
    tree = _folder() / wanted.key
    fcntl.flock(handle, fcntl.LOCK_SH)
    while not tree.is_dir():
        fcntl.flock(handle, fcntl.LOCK_EX)  # waits for another builder of the same image
        if not tree.is_dir():
            log(f"building base image {image} (once, about a minute)")
            _discard_unfinished(wanted.key)
            _build(wanted, tree)
        fcntl.flock(handle, fcntl.LOCK_SH)
    return tree


def _build(wanted: Recipe, tree: Path) -> None:
    if not sources.KEYRING.exists():
        raise LabError(f"{sources.KEYRING} is missing: apt-get install debian-archive-keyring")
    temporary = _unfinished(wanted.key)
    groups = cgroup.create(group(wanted.key))
    argv = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(wanted.packages)}"]
    if not wanted.sources:
        argv.append("--components=main contrib non-free non-free-firmware")
    argv += [f"--aptopt={option}" for option in wanted.apt_options]
    argv += [f"--customize-hook={wanted.customize}", wanted.suite, str(temporary), *wanted.sources]
    # In a separate mount namespace, so that no mount of the build is left behind, however it ends.
    run(joined(["unshare", "--mount", *argv], groups), timeout=_BUILD_TIMEOUT)
    cgroup.remove(group(wanted.key))
    temporary.chmod(0o755)
    temporary.rename(tree)


def _discard_unfinished(key: str) -> None:
    cgroup.remove(group(key))
    if _unfinished(key).exists():
        shutil.rmtree(_unfinished(key))


def in_use() -> set[str]:
    """Paths of the images below the nodes of every rack; LabError where a rack's state cannot be read."""
    racks = (
        [entry.name for entry in names.RUNTIME.iterdir() if entry.is_dir()] if names.RUNTIME.is_dir() else []
    )
    records = [state.node_record(rack, node) for rack in racks for node in state.recorded_nodes(rack)]
    return {record.base for record in records if record is not None}


def group(key: str) -> str:
    """The control group of a build: of this image in this lab folder, whose lock shows who may end it."""
    return f"image.{key}.{hashlib.sha256(str(names.lab_dir()).encode()).hexdigest()[:6]}"


def _folder() -> Path:
    return names.lab_dir() / "images"


def _unfinished(key: str) -> Path:
    return _folder() / f".{key}.unfinished"
