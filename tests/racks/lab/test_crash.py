"""After any interruption of `up`, the next `up` finishes and `down` removes the rack.

Each moment is met once here, by one way out of it; `make proof SUITE=kill-9` has every moment with both.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import cgroup, image, links, names, network, node, state
from rackwright.lab.rack import Rack
from rackwright.lab.spec import RackSpec
from tests.racks.lab.conftest import MakeSpec, spec_file
from tests.racks.lab.traces import traces

pytestmark = pytest.mark.lab

UP = """
import json, sys
from rackwright.lab.rack import Rack
from rackwright.lab.spec import RackSpec
Rack(RackSpec.from_json(json.load(open(sys.argv[1])))).up()
"""


@contextmanager
def starting(spec: RackSpec, folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen([sys.executable, "-c", UP, str(spec_file(spec, folder))]) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(moment: Callable[[], object], process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 1200
    while not moment():
        assert process.poll() is None, "up ended before the moment came"
        assert time.monotonic() < deadline
        time.sleep(0.002)


MOMENTS: dict[str, Callable[[str], object]] = {
    "state": lambda rack: names.rack_state(rack).exists(),
    "namespace": lambda rack: links.exists(names.namespace(rack)),
    "first disk": lambda rack: any(names.rack_disks(rack).glob("node*.ext4")),
    "first group": lambda rack: cgroup.group(rack, "node1").exists(),
    "first cable": lambda rack: network.node_namespaces(rack),
    "first process": lambda rack: node.running(rack, "node1"),
    "all records": lambda rack: all(state.node_record(rack, f"node{i}") for i in (1, 2)),
}


def _some(values: Iterable[object], *, first: int) -> list[object]:
    """Every second one is part of `make test`, the others of `make proof` alone."""
    return [
        value if number % 2 == first else pytest.param(value, marks=pytest.mark.proof)
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize("moment", _some(MOMENTS, first=0))
def test_up_after_kill_9(make_spec: MakeSpec, tmp_path: Path, moment: str):
    spec = make_spec("crash", 2)
    with starting(spec, tmp_path) as process:
        wait_for(lambda: MOMENTS[moment](spec.name), process)
        process.send_signal(signal.SIGKILL)
    rack = Rack(spec)
    rack.up()
    assert rack.status().up
    assert [rack.run(f"node{i}", ["hostname"]) for i in (1, 2)] == ["node1\n", "node2\n"]
    rack.down()
    assert traces(spec.name) == []


@pytest.mark.parametrize("moment", _some(MOMENTS, first=1))
def test_down_by_name_after_kill_9(make_spec: MakeSpec, tmp_path: Path, moment: str):
    spec = make_spec("crash", 2)
    with starting(spec, tmp_path) as process:
        wait_for(lambda: MOMENTS[moment](spec.name), process)
        process.send_signal(signal.SIGKILL)
    assert spec.name in Rack.names()
    Rack.named(spec.name).down()
    assert traces(spec.name) == []
    assert spec.name not in Rack.names()


@pytest.mark.parametrize("delay_ms", _some((20, 0, 50, 100, 200), first=1))
def test_up_after_a_killed_down(make_spec: MakeSpec, delay_ms: int):
    spec = make_spec("half-down", 2)
    Rack(spec).up()
    code = f"from rackwright.lab.rack import Rack; print(flush=True); Rack.named({spec.name!r}).down()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay_ms / 1000)
        process.kill()
    Rack(spec).up()
    assert Rack(spec).status().up
    Rack(spec).down()
    assert traces(spec.name) == []


def test_down_with_damaged_state(make_spec: MakeSpec):
    spec = make_spec("damaged")
    Rack(spec).up()
    (names.rack_state(spec.name) / "rack.json").write_text("{")
    (names.node_state(spec.name, "node1") / "node.json").write_text("")
    Rack.named(spec.name).down()
    assert traces(spec.name) == []


def test_down_of_a_rack_which_is_not_there(make_spec: MakeSpec):
    Rack(make_spec("absent")).down()


def test_two_at_once_are_refused_by_pid(make_spec: MakeSpec, tmp_path: Path):
    spec = make_spec("busy", 2)
    with starting(spec, tmp_path) as process:
        lock = names.RUNTIME / f".rack-{spec.name}.lock"  # whose holder writes its pid
        wait_for(lambda: lock.exists() and lock.read_text().strip() == str(process.pid), process)
        with pytest.raises(LabError, match=rf"busy: .*\(pid {process.pid}\)"):
            Rack(spec).up()
        process.wait(1200)
    Rack(spec).down()


def test_ctrl_c_ends_up_at_once(make_spec: MakeSpec, tmp_path: Path):
    spec = make_spec("ctrl-c", 2)
    with starting(spec, tmp_path) as process:
        wait_for(lambda: MOMENTS["first process"](spec.name), process)
        process.send_signal(signal.SIGINT)
        assert process.wait(240) != 0
    Rack(spec).up()
    Rack(spec).down()
    assert traces(spec.name) == []


@pytest.mark.proof  # it builds an image twice
def test_an_interrupted_image_build(make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RACKWRIGHT_LAB_DIR", str(tmp_path))
    spec = make_spec("image")
    key = image.recipe("debian-13").key
    unfinished = tmp_path / "images" / f".{key}.unfinished"
    obsolete = tmp_path / "images" / "trixie-000000000000"
    obsolete.mkdir(parents=True)
    obsolete.with_name(f"{obsolete.name}.lock").touch()
    with starting(spec, tmp_path) as process:
        wait_for(lambda: (unfinished / "usr" / "bin").exists(), process)
        process.send_signal(signal.SIGKILL)
    Rack(spec).down()
    assert not cgroup.populated(image.group(key))
    assert not unfinished.exists()
    Rack(spec).up()
    assert Rack(spec).status().up
    assert not obsolete.exists()
    Rack(spec).down()
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.parametrize("kind", ["cgroup2", "tmpfs"])
def test_hosts_of_other_kinds(make_spec: MakeSpec, tmp_path: Path, kind: str):
    """The same rack on a pure v2 host, and where no v2 is mounted; in a mount namespace of the test's own."""
    spec = make_spec("host")
    script = (
        "import json, sys\n"
        "from rackwright.lab.rack import Rack\n"
        "from rackwright.lab.spec import RackSpec\n"
        "rack = Rack(RackSpec.from_json(json.load(open(sys.argv[1]))))\n"
        "rack.up()\n"
        "print(rack.status().nodes[0].state)\n"
        "rack.down()\n"
    )
    change = f'umount -R -l /sys/fs/cgroup; mount -t {kind} none /sys/fs/cgroup; exec "$0" "$@"'
    python = [sys.executable, "-c", script, str(spec_file(spec, tmp_path))]
    command = ["unshare", "--mount", "sh", "-ec", change, *python]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "ready\n", done.stderr
    assert traces(spec.name) == []
