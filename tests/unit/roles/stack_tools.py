"""What the tools of a GPU node answer, for scripted hosts."""

from __future__ import annotations

import shlex

from rackwright.catalog.read import catalogue
from rackwright.facts.packages import Packages
from rackwright.lab import smi_xml
from tests.unit.roles.fake_host import Answer


def installed(
    versions: dict[str, str], held: bool = True, asked: tuple[str, ...] | None = None
) -> dict[str, Answer]:
    """The packages' state as dpkg prints it; `asked`: names, some of them missing."""
    question = str(Packages().command("debian", tuple(sorted(asked or versions))))
    reported = "".join(
        f"have {name} {version} {'hi' if held else 'ii'}\n" for name, version in versions.items()
    )
    return {"dpkg-query -W dpkg": "dpkg\t1.22.21\n", f"sh -c {shlex.quote(question)}": reported}


def xml(sku: str, *edits: tuple[str, str], mig: tuple[str, ...] = ()) -> dict[str, Answer]:
    """`nvidia-smi -q -x` (and -L) of healthy GPUs of a SKU, with texts replaced."""
    gpus = catalogue()[sku].gpus
    assert gpus is not None
    text = smi_xml.document(gpus, mig)
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    listed = "".join(
        f"GPU {index}: NVIDIA {gpus.model} (UUID: {smi_xml.uuid(index)})\n"
        + "".join(f"  MIG {one}     Device {at:2}: (UUID: MIG-{index}-{at})\n" for at, one in enumerate(mig))
        for index in range(gpus.count)
    )
    return {"timeout 30 nvidia-smi -q -x": text, "timeout 30 nvidia-smi -L": listed}
