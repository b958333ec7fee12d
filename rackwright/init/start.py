"""The cluster files that a site can start from: copies of the examples that come with rackwright."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

_INVENTORY = Path(__file__).resolve().parent.parent / "inventory"
STEM = "cluster"
FILE = f"{STEM}.yaml"
"""Name of the cluster file in a site's folder."""
LOCK = f"{STEM}.lock.yaml"
_ROLES = re.compile(r"^roles:.*\n", re.MULTILINE)


class Start(StrEnum):
    """What to start from; docs/examples.md describes each."""

    LAB = "lab"
    SMALL = "small"
    DGX_H100 = "dgx-h100"
    HGX_H200 = "hgx-h200"
    L40S_ROCE = "l40s-roce"

    @property
    def stem(self) -> str:
        """Name of its cluster file in inventory/, without the suffix."""
        return self.value if self is Start.LAB else f"example-{self.value}"


def cluster_files(start: Start, section: str) -> dict[str, str]:
    """Name -> text of the cluster file and of the files that it names. `section`: a line to add below `roles:`."""
    found = {}
    for path in sorted(_INVENTORY.glob(f"{start.stem}.*")):
        if path.suffix == ".age" or not path.is_file():
            continue  # secrets are never copied
        text = path.read_text().replace(f"inventory/{start.stem}.yaml", FILE)
        if start is not Start.LAB:  # "lab" is a word of its text
            text = text.replace(start.stem, STEM)
        name = f"{STEM}{path.name.removeprefix(start.stem)}"
        found[name] = (
            _ROLES.sub(lambda found: f"{found[0]}  {section}\n", text, count=1) if name == FILE else text
        )
    return found
