"""Images served to BMCs, and nothing else."""

from __future__ import annotations

import hashlib
import socket
import ssl
import urllib.error
import urllib.request

import pytest

from rackwright.errors import FirmwareError
from rackwright.firmware.images import check_files, served
from rackwright.firmware.plan import UpdateStep
from rackwright.install.authority import credentials
from tests.unit.firmware.machine import image
from tests.unit.install.site import make_boot_network, make_site


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_a_bmc_fetches_an_image(tmp_path):
    cluster = make_site(network=make_boot_network(_free_port()))
    network = cluster.boot_network
    with served(cluster, needed=True) as images:
        ca = credentials(cluster.name, frozenset((network.server,))).ca.decode()
        context = ssl.create_default_context(cadata=ca)
        url = images.url_of(image(tmp_path, b"firmware"))
        assert url == images.url_of(image(tmp_path, b"firmware"))
        assert url.endswith("/bios%201.exe")
        with urllib.request.urlopen(url, context=context, timeout=5) as answer:
            assert answer.read() == b"firmware"
        for wrong in (
            url[:-1],
            f"https://127.0.0.1:{network.port}/firmware/",
            f"https://127.0.0.1:{network.port}/v1/image",
        ):
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(wrong, context=context, timeout=5)


@pytest.mark.parametrize(("needed", "declared"), [(False, True), (True, False)])
def test_no_server_where_none_is_needed(needed, declared):
    cluster = make_site(network=make_boot_network(_free_port()))
    if not declared:
        cluster = cluster.model_copy(update={"boot_network": None})
    with served(cluster, needed=needed) as images:
        assert images is None


def test_a_file_is_the_declared_one(tmp_path):
    file = image(tmp_path, b"firmware")
    good = hashlib.sha256(b"firmware").hexdigest()
    check_files([UpdateStep(file, good, ()), UpdateStep("http://x/y", None, ())])
    with pytest.raises(
        FirmwareError, match=r"The SHA-256 of .* is [0-9a-f]{64}, but 0{64} is declared; nothing was changed"
    ):
        check_files([UpdateStep(file, "0" * 64, ())])
    file.unlink()
    with pytest.raises(FirmwareError, match=r"Cannot read the image .*: No such file"):
        check_files([UpdateStep(file, good, ())])
