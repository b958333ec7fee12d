"""`rackwright lab`: what its arguments become."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.cli import lab as lab_cli
from rackwright.cli import run
from rackwright.errors import LabError
from rackwright.lab.rack import Rack
from rackwright.model.cluster import Cluster

VM = str(Path(__file__).parents[3] / "inventory" / "vm.yaml")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What racks are asked to do."""
    found: list[tuple[object, ...]] = []
    for name in ("fault", "heal", "reboot", "power", "snapshot", "restore", "exec", "console"):

        def note(self: Rack, *args: object, _name: str = name) -> int:
            found.append((self.name, _name, *args))
            return 0

        monkeypatch.setattr(Rack, name, note)
    return found


@pytest.mark.parametrize(
    ("words", "done", "said"),
    [
        (
            "fault worker1 clock:jump -7200",
            ("fault", "worker1", "clock:jump", "-7200"),
            "worker1: clock:jump -7200\n",
        ),
        ("fault worker1 disk:fail", ("fault", "worker1", "disk:fail"), "worker1: disk:fail\n"),
        ("fault worker1 link:down 2", ("fault", "worker1", "link:down", "2"), "worker1: link:down 2\n"),
        ("heal worker1", ("heal", "worker1"), "worker1: healed\n"),
        ("reboot head1", ("reboot", "head1"), "head1: ready\n"),
        ("power worker2 cycle", ("power", "worker2", "cycle"), "worker2: power cycle\n"),
        ("snapshot worker1", ("snapshot", "worker1", "default"), "worker1: snapshot default\n"),
        ("snapshot worker1 clean", ("snapshot", "worker1", "clean"), "worker1: snapshot clean\n"),
        ("restore worker1 clean", ("restore", "worker1", "clean"), "worker1: ready\n"),
        ("console head1", ("console", "head1"), ""),
        ("exec head1 -- ls -l", ("exec", "head1", ["ls", "-l"]), ""),
    ],
)
def test_the_commands_of_a_node(
    asked: list[tuple[object, ...]],
    capsys: pytest.CaptureFixture[str],
    words: str,
    done: tuple[object, ...],
    said: str,
):
    command, node, *rest = words.split()
    assert run(["lab", command, node, "--file", VM, *rest]) == 0
    assert asked == [("vm", *done)]
    assert capsys.readouterr().err == said


def test_up_builds_images_where_a_node_is_a_virtual_machine(monkeypatch: pytest.MonkeyPatch):
    built: list[str] = []
    booted: list[object] = []

    def ensure(cluster: Cluster, log: object) -> dict[str, Path]:
        built.append(cluster.name)
        return {"head1": Path("/image")}

    def up(_: Rack, images: object) -> None:
        booted.append(images)
        raise LabError("enough")

    monkeypatch.setattr("rackwright.image.for_lab.ensure", ensure)
    monkeypatch.setattr(lab_cli.Rack, "up", up)
    assert run(["lab", "up", VM]) == 1
    assert run(["lab", "up", VM.replace("vm.yaml", "lab.yaml")]) == 1
    assert (built, booted) == (["vm"], [{"head1": Path("/image")}, {}])
