"""A folder of this machine as a web server on a rack's bridge: a site's `mirrors.files`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackwright.lab import names, network
from tests.racks.site import Site


@contextmanager
def served(site: Site, folder: Path, address: str, port: int = 8080) -> Iterator[None]:
    """Until the end of the block, at http://address:port on the rack."""
    server = [sys.executable, "-m", "http.server", "--bind", address, "--directory", str(folder), str(port)]
    command = network.inside(names.namespace(site.name), server)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()
