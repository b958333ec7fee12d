"""Workers with their machines, and an operator who installs them."""

from __future__ import annotations

import socket
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from rackwright.install import agent_image, first_login, needs
from rackwright.install import run as module
from rackwright.install.run import Asked, Installation
from rackwright.model.settings import Ssh
from tests.unit.install.fake_machine import TEMPO, FakeMachine, plain_media
from tests.unit.install.site import make_boot_network, make_image, make_site, make_worker


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Site:
    """Workers with their machines, and what the operator runs."""

    def __init__(self, tmp_path, monkeypatch, count=3, **network):
        plain_media(monkeypatch)
        monkeypatch.setattr(agent_image, "ensure", lambda log: Path("/nowhere/agent"))
        monkeypatch.setattr(module, "_WAIT", 0.005)
        monkeypatch.setattr(needs, "problems", lambda cluster, nodes: [])  # as if this machine had it all
        self.image = make_image(tmp_path / "image")
        self.machines = {f"worker{number}": FakeMachine(number) for number in range(1, count + 1)}
        monkeypatch.setattr(first_login, "answers", lambda _, node: self.machines[node.name].answers_ssh)
        monkeypatch.setattr(
            first_login, "kernel_arguments", lambda _, node, key: self.machines[node.name].logged_in(key)
        )
        self.key = tmp_path / "id_ed25519"
        self.key.write_bytes(
            ed25519.Ed25519PrivateKey.generate().private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.OpenSSH,
                serialization.NoEncryption(),
            )
        )
        self.nodes = [make_worker(number, self.image.folder) for number in range(1, count + 1)]
        self.network = make_boot_network(free_port(), **network)
        self.opened = []
        self.notices = []

    @property
    def cluster(self):
        cluster = make_site(*self.nodes, network=self.network)
        return cluster.model_copy(update={"ssh": Ssh(user="admin", key=self.key)})

    def open(self, node):
        self.opened.append(node.name)
        return self.machines[node.name]

    def installation(self, mode="install", nodes=None, **serials):
        asked = Asked(mode, tuple(nodes or self.nodes), serials, TEMPO)
        return Installation(self.cluster, asked, self.open, lambda *notice: self.notices.append(notice))

    def run(self, mode="install", nodes=None, **serials):
        made = self.installation(mode, nodes, **serials)
        made.prepare(lambda _: None)
        return {one.node: one for one in made.run()}

    def untouched(self):
        return not self.opened and not any(one.calls for one in self.machines.values())
