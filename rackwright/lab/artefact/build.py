"""Makes the artefact in a folder: trees, programs, packages, repository, images, and what it consists of."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab.artefact import images, packages, repository
from rackwright.lab.artefact import recipe as recipes
from rackwright.lab.artefact.recipe import Recipe
from rackwright.lab.artefact.tree import Builder
from rackwright.render import render
from rackwright.shipped import template_source

MANIFEST = "artefact.json"
_BUILD_SECONDS = 7200
_FREE_GIB = 8


def build(wanted: Recipe, folder: Path, builder: Builder, log: Callable[[str], None]) -> None:
    """Make the artefact of a recipe in a new folder."""
    folder.mkdir(parents=True)
    if shutil.disk_usage(folder).free < _FREE_GIB << 30:
        raise LabError(f"{folder} has less than {_FREE_GIB} GiB free, which building Kubernetes takes")
    work = folder / ".work"
    work.mkdir(mode=0o700)
    steps = _Steps(log)
    with steps.timed("build environment"):
        builder.make(
            work / "build", recipes.BUILD_SUITE, recipes.TOOLCHAIN, wanted.build_sources, wanted.apt_options
        )
    with steps.timed("programs"):
        programs = _programs(builder, work / "build")
    with steps.timed("packages"):
        files = packages.write_packages(builder, programs, work / "packages", folder / "repository" / "amd64")
        repository.write_indices(builder, folder / "repository", files)
    with steps.timed("trees of the images"):
        for name, included in (("runtime", recipes.RUNTIME), ("mpi", recipes.MPI)):
            builder.make(work / name, recipes.RUN_SUITE, included, wanted.run_sources, wanted.apt_options)
    with steps.timed("images"):
        made = images.write_images(builder, programs, work / "runtime", work / "mpi", folder)
    (folder / "images.json").write_text(images.document(made))
    shutil.rmtree(work)
    (folder / MANIFEST).write_text(_manifest(wanted, folder, steps.seconds))


class _Steps:
    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        self._log(f"Kubernetes: {name}")
        yield
        self.seconds[name] = round(time.monotonic() - started, 1)


def _programs(builder: Builder, tree: Path) -> Path:
    """Build all programs in the build environment; returns their folder."""
    (tree / "lab").mkdir()
    for name, template in recipes.LAB_PROGRAMS.items():
        (tree / "lab" / f"{name}.go").write_text(template_source(template))
    (tree / "lab" / "build.sh").write_text(build_script(recipes.PROGRAMS, tuple(recipes.LAB_PROGRAMS)))
    builder.inside(tree, "sh /lab/build.sh", _BUILD_SECONDS, shown="building Kubernetes")
    return tree / "out"


def build_script(programs: Sequence[str], lab_programs: Sequence[str]) -> str:
    """Shell that fetches the source into a build environment and builds these programs of it into /out."""
    return render(
        "lab/kubernetes_build.sh.j2",
        source=recipes.SOURCE,
        source_version=recipes.SOURCE_VERSION,
        version=recipes.VERSION,
        commit=recipes.COMMIT,
        epoch=recipes.EPOCH,
        programs=list(programs),
        lab_programs=list(lab_programs),
        jobs=os.cpu_count() or 1,
    )


def _manifest(wanted: Recipe, folder: Path, seconds: dict[str, float]) -> str:
    sizes = {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    document = {
        "kubernetes": recipes.VERSION,
        "packages": recipes.PACKAGE_VERSION,
        "source": {"package": recipes.SOURCE, "version": recipes.SOURCE_VERSION},
        "key": wanted.key,
        "seconds": seconds,
        "bytes": sizes,
    }
    return json.dumps(document, indent=1) + "\n"
