"""A site's mirror of files, with packages the test makes: what NVIDIA's releases hold cannot be had here.

They have the names, versions and places of the real ones. The plugin is a real SPANK plugin with one option.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from pathlib import Path

ENROOT, PYXIS = "4.1.2", "0.24.0"

_ENROOT = """\
#!/bin/sh
[ "$1" = version ] && echo 4.1.2
"""

_PLUGIN = """\
#include <stddef.h>
#include <slurm/spank.h>
SPANK_PLUGIN(pyxis, 1);
int slurm_spank_init(spank_t spank, int argc, char *argv[]) { return ESPANK_SUCCESS; }
static int taken(int value, const char *argument, int remote) { return 0; }
struct spank_option spank_options[] = {
    {"container-image", "IMAGE", "the image to use", 1, 0, taken}, SPANK_OPTIONS_TABLE_END};
"""

_MAKEFILE = """\
install:
\tmkdir -p $(prefix)/lib/slurm $(prefix)/share/pyxis
\tgcc -shared -fPIC -o $(prefix)/lib/slurm/spank_pyxis.so spank_pyxis.c
"""


def make(folder: Path) -> dict[str, str]:
    """Every file, made below the folder; SHA-256 by name."""
    hooks = {f"usr/share/enroot/hooks.d/50-slurm-{name}.sh": "#!/bin/sh\n" for name in ("pmi", "pytorch")}
    _package(folder, "enroot", {"usr/bin/enroot": _ENROOT, **hooks})
    _package(folder, "enroot+caps", {"usr/share/doc/enroot-caps/README": "capabilities\n"})
    source = folder / f"pyxis-{PYXIS}"
    source.mkdir()
    (source / "spank_pyxis.c").write_text(_PLUGIN)
    (source / "Makefile").write_text(_MAKEFILE)
    with tarfile.open(folder / f"pyxis-{PYXIS}.tar.gz", "w:gz") as tar:
        tar.add(source, source.name)
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.suffix in (".deb", ".gz")
    }


def _package(folder: Path, name: str, files: dict[str, str]) -> None:
    root = folder / name
    control = {"DEBIAN/control": _control(name), **files}
    for path, text in control.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(0o755 if text.startswith("#!") else 0o644)
    target = folder / f"{name}_{ENROOT}-1_amd64.deb"
    command = ["dpkg-deb", "--build", "--root-owner-group", str(root), str(target)]
    subprocess.run(command, check=True, capture_output=True, timeout=240)


def _control(name: str) -> str:
    fields = {
        "Package": name,
        "Version": f"{ENROOT}-1",
        "Architecture": "amd64",
        "Maintainer": "tests of rackwright <test@example.org>",
        "Description": f"placeholder for {name}",
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items())
