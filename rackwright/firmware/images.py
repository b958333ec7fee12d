"""Serves update images from this control node's HTTPS server, at random paths, during a run."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from rackwright.errors import FirmwareError
from rackwright.firmware.plan import UpdateStep
from rackwright.install.authority import credentials
from rackwright.install.desk import Desk
from rackwright.install.server import Server
from rackwright.install.settings import listeners
from rackwright.model.cluster import Cluster


class Images(Desk):
    """What the server hands out: these files, and nothing to agents of installations."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._paths: dict[Path, str] = {}

    def url_of(self, file: Path) -> str:
        """Where BMCs fetch a file."""
        path = self._paths.setdefault(file, f"/firmware/{secrets.token_urlsafe(24)}/{quote(file.name)}")
        return f"https://{self._address}{path}"

    def media(self, path: str) -> Path | None:
        """The file that a path stands for."""
        return next((file for file, its in self._paths.items() if its == path), None)


@contextmanager
def served(cluster: Cluster, needed: bool) -> Iterator[Images | None]:
    """The server, until the end of the block; None where nothing needs it, or no `boot_network` is declared."""
    network = cluster.boot_network
    if not needed or network is None:
        yield None
        return
    images = Images(f"{network.bmc_server}:{network.port}")
    keys = credentials(cluster.name, frozenset((network.server, network.bmc_server)))
    server = Server(images, listeners(cluster), keys.chain)
    try:
        yield images
    finally:
        server.close()


def check_files(steps: Iterable[UpdateStep]) -> None:
    """FirmwareError where a file is not the declared one."""
    for file, declared in {step.image: step.sha256 for step in steps}.items():
        if isinstance(file, str):
            continue
        try:
            with file.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise FirmwareError(f"Cannot read the image {file}: {error.strerror}.") from error
        if found != declared:
            raise FirmwareError(
                f"The SHA-256 of {file} is {found}, but {declared} is declared; nothing was changed.",
                hint="download it again from the vendor, or correct `sha256`",
            )
