"""Upstream's conformance tests, built from the source that the lab's Kubernetes is built from, and the image that their pods run.

`built()` keeps both beside the lab's artefacts: the first time takes some ten minutes. Their pods run agnhost, upstream's own test
image, whose program is part of the same source; the tools beside it are Debian's instead of Alpine's.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from rackwright.image.folder import discard, locked
from rackwright.lab import cgroup, names
from rackwright.lab.artefact import images, recipe
from rackwright.lab.artefact.build import build_script
from rackwright.lab.artefact.tree import Builder

PROGRAM, KUBECTL, ARCHIVE = "e2e.test", "kubectl", "images/agnhost.tar"
AGNHOST = f"{recipe.REGISTRY}/agnhost:2.21"
"""As the tests of 1.20.2 have it (test/utils/image/manifest.go)."""
_TOOLS = ("curl", "bind9-dnsutils", "netcat-openbsd", "iproute2", "iptables")
_SOURCE = "/go/src/k8s.io/kubernetes"
_SECONDS = 7200
_SCRIPT = f"""\
sh /lab/build.sh
cd {_SOURCE}
export GOPATH=/go GOCACHE=/gocache CGO_ENABLED=0 GOLDFLAGS='-s -w' KUBE_GIT_VERSION_FILE=/version.sh SOURCE_DATE_EPOCH={recipe.EPOCH}
make WHAT=test/e2e/e2e.test
GO111MODULE=off go build -ldflags '-s -w' -o /out/agnhost ./test/images/agnhost
cp _output/local/bin/linux/amd64/e2e.test /out/
cp test/images/agnhost/porter/localhost.crt test/images/agnhost/porter/localhost.key /out/
"""


def built() -> Path:
    """The folder with the program of the tests, a kubectl and the image; made where missing."""
    wanted = recipe.recipe()
    content = json.dumps([wanted.key, _SCRIPT, _TOOLS])
    folder = (
        names.lab_dir()
        / "conformance"
        / f"{recipe.VERSION}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if not folder.exists():
            unfinished = folder.with_name(f".{folder.name}")
            group = f"conformance.{folder.name}"
            cgroup.remove(group)
            discard(unfinished)
            _build(wanted, unfinished, Builder(cgroup.create(group)))
            cgroup.remove(group)
            unfinished.rename(folder)
    return folder


def _build(wanted: recipe.Recipe, folder: Path, builder: Builder) -> None:
    work = folder / "work"
    work.mkdir(parents=True)
    tree = work / "build"
    builder.make(tree, recipe.BUILD_SUITE, recipe.TOOLCHAIN, wanted.build_sources, wanted.apt_options)
    (tree / "lab").mkdir()
    (tree / "lab" / "build.sh").write_text(build_script((KUBECTL,), ()))
    builder.inside(tree, _SCRIPT, _SECONDS, shown="building the conformance tests")
    made = tree / "out"
    for name in (PROGRAM, KUBECTL):
        shutil.copy(made / name, folder / name)
    image = work / "image"
    builder.make(image, recipe.RUN_SUITE, _TOOLS, wanted.run_sources, wanted.apt_options)
    for name in ("agnhost", "localhost.crt", "localhost.key"):
        shutil.copy(made / name, image / name)
    (image / "agnhost-2").symlink_to("agnhost")
    (image / "uploads").mkdir()
    images.slim(image)
    config = {"Entrypoint": ["/agnhost"], "Cmd": ["pause"]}
    images.write_image(folder, image, "agnhost", AGNHOST.rpartition(":")[2], config)
    shutil.rmtree(work)
