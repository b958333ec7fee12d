"""Encrypted roots: unlocked by the machine's own TPM (swtpm), and by a Tang server for as long as it answers."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.image.build import build, order
from rackwright.lab.netns import socket_inside
from tests.racks.agent import wire
from tests.racks.agent.bench import BOOT_SECONDS, CLUSTER, INSTALL_SECONDS, Bench
from tests.racks.agent.machine import Machine
from tests.racks.patience import until

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_TANG_PORT = 8080
_TANG = f"http://{wire.HEAD}:{_TANG_PORT}"
_RECOVERY = "recovery-key-of-this-test"
_ENCRYPTED = "install: {encryption: tpm2, volumes: lvm, "


class SealedMachine(Machine):
    """With a TPM 2.0, whose state outlives the power."""

    def start(self, medium: Path | None = None, *, disks: Any = None) -> None:
        state = self.folder / "tpm"
        state.mkdir(exist_ok=True)
        (state / "socket").unlink(missing_ok=True)
        argv = ["setpriv", "--pdeathsig", "KILL", "--", "swtpm", "socket", "--tpm2", "--terminate"]
        argv += ["--tpmstate", f"dir={state}", "--ctrl", f"type=unixio,path={state}/socket"]
        subprocess.Popen(argv, stdin=subprocess.DEVNULL)  # it ends with the machine
        until((state / "socket").exists, "TPM", 30, every=0.1)
        super().start(medium, disks=disks)

    def _command(self, medium: Path | None, disks: Any) -> list[str]:
        words = super()._command(medium, disks)
        words += ["-chardev", f"socket,id=tpm,path={self.folder}/tpm/socket"]
        return [*words, "-tpmdev", "emulator,id=tpm0,chardev=tpm", "-device", "tpm-tis,tpmdev=tpm0"]


@pytest.fixture(scope="module")
def sealed_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with all that encrypted roots need."""
    folder = tmp_path_factory.mktemp("sealed")
    (folder / "cluster.yaml").write_text(CLUSTER.replace("install: {", _ENCRYPTED))
    cluster = load_cluster(folder / "cluster.yaml")
    build(order(cluster, cluster.nodes, "root", 16), folder / "image", print)
    return folder / "image/root.tar.zst"


@pytest.fixture
def sealed(bench: Bench, sealed_root: Path) -> Bench:
    """The wire with that image."""
    bench.head.image = sealed_root
    return bench


def test_an_encrypted_mirror_of_volumes_is_unlocked_by_the_tpm(sealed: Bench):
    machine = SealedMachine(sealed.folder, sealed.namespace, 2)
    sealed.own(machine)
    _install(sealed, machine, 2, {"kind": "tpm2", "tang": None}, volumes="lvm")
    machine.start()
    assert sealed.greeted(BOOT_SECONDS).startswith("SSH-2.0-")
    machine.wait_for("root@node1", 120)
    said = machine.ask("lsblk -rno NAME,TYPE,MOUNTPOINT", "DONE1")
    assert "lvm /" in said
    assert {"crypt", "raid1"} <= set(said.split())
    _says_nothing_secret(sealed, machine)


def test_an_encrypted_root_is_unlocked_only_while_tang_answers(sealed: Bench):
    machine = sealed.machine(1)
    with _tang(sealed):
        _install(sealed, machine, 1, {"kind": "tang", "tang": _TANG})
    machine.start()
    machine.wait_for("Please unlock disk", BOOT_SECONDS)
    with _tang(sealed):
        assert sealed.greeted(BOOT_SECONDS).startswith("SSH-2.0-")
    _says_nothing_secret(sealed, machine)


def _install(bench: Bench, machine: Machine, count: int, encryption: dict[str, Any], **changes: Any) -> None:
    encryption = {**encryption, "recovery_key": _RECOVERY}
    bench.head.decide = lambda document, _: {
        "action": "install",
        "install": bench.install(document, count, encryption=encryption, **changes),
    }
    bench.arm()
    machine.start(bench.medium)
    machine.wait_off(INSTALL_SECONDS)
    assert bench.head.failed is None, bench.head.failed
    _says_nothing_secret(bench, machine)


def _says_nothing_secret(bench: Bench, machine: Machine) -> None:
    assert not [one for one in (_RECOVERY, bench.head.token, bench.head.session) if one in machine.said()]


@contextmanager
def _tang(bench: Bench) -> Iterator[None]:
    """A Tang server at the head; its keys stay where the machine's are."""
    keys = bench.folder / "tang"
    if not keys.exists():
        keys.mkdir()
        subprocess.run(["/usr/libexec/tangd-keygen", keys], check=True, timeout=60)
    listener = socket_inside(bench.namespace)
    assert listener is not None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((wire.HEAD, _TANG_PORT))
    listener.listen(16)
    threading.Thread(target=_serve, args=(listener, keys), daemon=True).start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)  # close alone would not end `accept`
        listener.close()


def _serve(listener: socket.socket, keys: Path) -> None:
    """tangd speaks HTTP on its stdin and stdout, as inetd starts it."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            subprocess.run(
                ["/usr/libexec/tangd", keys], stdin=connection, stdout=connection, timeout=60, check=False
            )
