"""Racks for the tests: named after the test process, so that they never meet anybody else's."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.lab.rack import Rack
from rackwright.lab.spec import NodeSpec, RackSpec

MakeSpec = Callable[..., RackSpec]


@pytest.fixture(scope="session")
def make_spec(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeSpec]:
    """Makes specs of small racks, and removes their remains afterwards."""
    made: set[str] = set()

    def make(suffix: str, count: int = 1, **changes: Any) -> RackSpec:
        name = f"t{os.getpid()}-{suffix}"
        made.add(name)
        folder = tmp_path_factory.mktemp(name)
        images = ("debian-13", "debian-12")
        plain: dict[str, Any] = {
            "name": name,
            "nodes": tuple(
                NodeSpec(f"node{i}", f"10.77.0.{10 + i}", 24, images[(i - 1) % 2], 2, 1024, 1500)
                for i in range(1, count + 1)
            ),
            "bridge_address": "10.77.0.1/24",
            "apt_proxy": None,
            "admin_user": "ops",
            "key": folder / "key",
            "known_hosts": folder / "known_hosts",
        }
        return RackSpec(**(plain | changes))

    yield make
    for name in made & set(Rack.names()):
        Rack.named(name).down()


@pytest.fixture(scope="module")
def rack(make_spec: MakeSpec) -> Iterator[Rack]:
    """A rack of three nodes, both images, with a mirror; shared by the tests of a module."""
    spec = make_spec(
        "main",
        apt_proxy="http://10.77.0.1:3142",
        nodes=tuple(
            NodeSpec(f"node{i}", f"10.77.0.{10 + i}", 24, image, 2, 1024, 9000, (f"10.78.0.{10 + i}/16",))
            for i, image in enumerate(("debian-13", "debian-12", "debian-13"), start=1)
        ),
    )
    rack = Rack(spec)
    rack.up()
    yield rack
    rack.down()


@pytest.fixture
def ssh() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Plain OpenSSH to a node, with its output."""

    def run(rack: Rack, node: str, *argv: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        command = rack.ssh_command(node, argv, user)
        return subprocess.run(
            command, capture_output=True, text=True, timeout=240, check=False, stdin=subprocess.DEVNULL
        )

    return run


def spec_file(spec: RackSpec, folder: Path) -> Path:
    """The spec as a file which another process can read."""
    path = folder / f"{spec.name}.json"
    path.write_text(json.dumps(spec.to_json()))
    return path
