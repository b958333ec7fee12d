"""Disks are erased by the strongest method that they support, and nothing passes that was not erased and read again."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.install.agent import erase_methods, erasing, main, samples
from rackwright.install.agent.order import Disk
from rackwright.install.agent.programs import AgentError
from tests.unit.install.agent.drives import ALL_NAMESPACES, CRYPTO, FORMATS, MANAGES, PATTERN, Drives

ZERO = {"blank": (0,), "noise": False}
FORMATTED = {"blank": (0, 255), "noise": True}


@pytest.fixture
def drives(tmp_path, monkeypatch):
    return Drives(tmp_path, monkeypatch)


def erase(target):
    return erasing.erase(target, lambda done: None)


def test_a_sata_disk_is_discarded_securely_where_it_can_be(drives):
    target = drives.make("sda")
    found = erase(target)
    assert (found.method, found.erased, found.verified, found.error) == ("secure-discard", True, True, None)
    assert (found.samples, found.held_data) == (66, 66)
    assert drives.content(target) == bytes(target.size)


def test_it_is_zeroed_where_it_cannot(drives):
    drives.supports -= {"--secure"}
    target = drives.make("sda")
    found = erase(target)
    assert (found.method, found.verified) == ("write-zeroes", True)
    assert found.tried == ["secure-discard: blkdiscard failed with exit code 1: Operation not supported"]


def test_it_is_overwritten_where_nothing_helps(drives):
    drives.supports.clear()
    target = drives.make("sda", (3 << 20) + 512 * 5)
    found = erase(target)
    assert (found.method, found.verified, found.error) == ("overwrite", True, None)
    assert drives.content(target) == bytes(target.size)


@pytest.mark.parametrize(
    ("fna", "method", "setting"),
    [
        (0, "nvme-format-user-data-erase", "--ses=1"),
        (CRYPTO, "nvme-format-crypto-erase", "--ses=2"),
        (CRYPTO | ALL_NAMESPACES, "nvme-format-crypto-erase", "--ses=2"),
    ],
)
@pytest.mark.parametrize("fill", [b"\0", b"\xff", b""])
def test_an_nvme_disk_is_formatted(drives, fna, method, setting, fill):
    drives.fna, drives.fill = fna, fill
    target = drives.make("nvme0n1")
    found = erase(target)
    assert (found.method, found.erased, found.verified, found.error) == (method, True, True, None)
    (ran,) = [argv for argv in drives.ran if argv[:2] == ["nvme", "format"]]
    assert ran[2:5] == [target.disk.path, setting, "--force"]
    assert not any(argv[0] == "blkdiscard" for argv in drives.ran)


def test_an_nvme_disk_whose_controller_cannot_format(drives):
    drives.oacs = 0
    assert erase(drives.make("nvme0n1")).method == "secure-discard"


def test_a_format_that_would_reach_other_namespaces_is_not_used(drives):
    drives.fna, drives.attached = ALL_NAMESPACES, [1, 2]
    found = erase(drives.make("nvme0n1"))
    assert (found.method, found.verified) == ("secure-discard", True)
    assert not any(argv[:2] == ["nvme", "format"] for argv in drives.ran)


def test_namespaces_that_are_no_disks_are_no_silent_pass(drives):
    drives.oacs, drives.allocated = FORMATS | MANAGES, [1, 3]
    found = erase(drives.make("nvme0n1"))
    assert (found.erased, found.verified) == (True, True)
    assert found.error == "its controller has unattached namespaces that keep their data: 3"


def test_a_disk_that_lies_about_zeroing(drives):
    """The seeded fault: the program ends well, and nothing was written."""
    drives.liar = "sda"
    target, other = drives.make("sda"), drives.make("sdb")
    found = erasing.carry_out(drives.order(), lambda phase, percent: None)
    assert [(one["path"], one["erased"], one["verified"]) for one in found] == [
        (target.disk.path, True, False),
        (other.disk.path, True, True),
    ]
    assert "was erased by secure-discard, but still has data at byte 0" in found[0]["error"]


def test_an_nvme_disk_that_lies_about_a_format(drives):
    drives.liar = "nvme0n1"
    assert "still has data at byte 0" in erase(drives.make("nvme0n1")).error


def test_a_disk_that_cannot_be_erased_does_not_keep_the_others(drives, monkeypatch):
    drives.broken.add("sda")
    monkeypatch.setattr(
        erase_methods,
        "overwrite",
        lambda path, *_: (_ for _ in ()).throw(AgentError(f"cannot overwrite {path}: Input/output error")),
    )
    bad, good = drives.make("sda"), drives.make("sdb")
    first, second = erasing.carry_out(drives.order(), lambda phase, percent: None)
    assert (first["method"], first["erased"], first["verified"]) == (None, False, False)
    assert first["error"].startswith(f"cannot erase {bad.disk.path}: overwrite: ")
    assert len(first["tried"]) == 3
    assert (second["verified"], second["error"]) == (True, None)
    assert drives.content(good) == bytes(good.size)
    assert drives.content(bad).startswith(PATTERN)


def test_a_program_that_breaks_is_this_disks_failure_alone(drives, monkeypatch):
    monkeypatch.setattr(samples, "held_data", lambda before: 1 // 0)
    assert "ZeroDivisionError" in erase(drives.make("sda")).error


def test_progress_comes_while_it_lasts(drives, monkeypatch):
    monkeypatch.setattr(erasing, "_PROGRESS_SECONDS", 0.01)
    slow = drives.run

    def run(argv, **more):
        time.sleep(0.05)
        return slow(argv, **more)

    monkeypatch.setattr(erase_methods, "run", run)
    drives.make("sda"), drives.make("sdb")
    said = []
    erasing.carry_out(drives.order(), lambda phase, percent: said.append((phase, percent)))
    assert said[0] == ("erase: 0 of 2 disks", 0)
    assert said[-1] == ("erase: 2 of 2 disks", 100)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size_bytes": 5}, "is not the approved disk"),
        ({"wwn": "other"}, "is not the approved disk"),
        ({"model": None}, "is not the approved disk"),
        ({"serial": "S-x"}, "has the serial number S-x, but S-sda was approved"),
        (
            {"signatures": ["/dev/sda:ext4:new"]},
            "changed since it was approved: it now has /dev/sda:ext4:new",
        ),
        ({"read_only": True}, "is read-only"),
        ({"error": "sda cannot be read"}, "sda cannot be read"),
    ],
)
def test_nothing_is_written_when_a_disk_is_not_as_agreed(drives, monkeypatch, change, message):
    target, other = drives.make("sda"), drives.make("sdb")
    listed = drives.listed()
    listed[0] |= change
    monkeypatch.setattr("rackwright.install.agent.disks.inventory.disks", lambda: listed)
    with pytest.raises(AgentError, match=message) as refused:
        erasing.carry_out(drives.order(), lambda phase, percent: None)
    assert "nothing was written" in str(refused.value)
    assert drives.content(target).startswith(PATTERN)
    assert drives.content(other).startswith(PATTERN)


def test_nothing_is_written_when_a_disk_appeared_is_gone_or_is_in_use(drives):
    target = drives.make("sda")
    ordered = drives.order()
    drives.make("sdb")
    with pytest.raises(AgentError, match="sdb appeared after the disks were approved; nothing was written"):
        erasing.carry_out(ordered, lambda phase, percent: None)
    drives.targets = []
    with pytest.raises(AgentError, match="sda is gone; nothing was written"):
        erasing.carry_out(ordered, lambda phase, percent: None)
    drives.targets = [target]
    drives.busy[target.disk.path] = f"{target.disk.path}1 is in use: Device or resource busy"
    with pytest.raises(AgentError, match="sda1 is in use: Device or resource busy; nothing was written"):
        erasing.carry_out(ordered, lambda phase, percent: None)
    assert drives.content(target).startswith(PATTERN)


def test_the_last_look_at_one_disk(drives):
    target = drives.make("sda")
    drives.signatures[target.disk.path] = ["/dev/sda:LVM2_member:"]
    assert "changed after it was approved: it now has /dev/sda:LVM2_member:" in erase(target).error
    drives.signatures.clear()
    drives.busy[target.disk.path] = "/dev/sda is in use: busy"
    assert erase(target).error == "/dev/sda is in use: busy; it was not written"
    assert drives.content(target).startswith(PATTERN)


def test_a_disk_that_cannot_be_read_is_not_written(drives):
    target = drives.make("sda")
    larger = replace(target, size=target.size * 2)
    assert "bytes at byte" in erase(larger).error
    assert drives.content(target).startswith(PATTERN)


def test_time_is_limited_by_the_size():
    assert erase_methods.limit_seconds(10**9) == 1840
    assert 9 * 86400 < erase_methods.limit_seconds(20 * 10**12) < 10 * 86400


def test_what_is_too_slow_is_stopped(tmp_path):
    path = tmp_path / "sda"
    path.write_bytes(PATTERN * 10000)
    with pytest.raises(AgentError, match="was not overwritten in time: 0 of 200000 bytes"):
        erase_methods.overwrite(str(path), 200000, time.monotonic() - 1, lambda done: None)


# what is read again

OLD = bytes(random.Random(7).randbytes(4096))


@pytest.mark.parametrize("at", [0, 1, 2047, 4095])
@pytest.mark.parametrize("accepted", [ZERO, FORMATTED])
def test_one_byte_left_is_found(at, accepted):
    after = bytearray(4096)
    after[at] = PATTERN[0]
    assert samples.remains(OLD, bytes(after), **accepted) == at // 512 * 512


def test_content_that_is_still_there_is_found_even_where_noise_is_accepted():
    assert samples.remains(OLD, OLD, **FORMATTED) == 0
    assert samples.remains(OLD, bytes(2048) + OLD[2048:], **FORMATTED) == 2048
    text = (PATTERN * 300)[:4096]
    assert samples.remains(text, text, **FORMATTED) == 0


def test_noise_is_accepted_of_a_format_alone():
    noise = random.Random(8).randbytes(4096)
    assert samples.remains(OLD, noise, **FORMATTED) is None
    assert samples.remains(OLD, noise, **ZERO) == 0
    assert samples.remains(OLD, b"\xff" * 4096, **FORMATTED) is None
    assert samples.remains(OLD, b"\xff" * 4096, **ZERO) == 0


def test_places_are_both_ends_and_64_between_them():
    found = samples.choose(10**12, random.Random(1))
    assert len(found) == 66
    assert (found[0].start, found[0].length) == (0, 1 << 20)
    assert found[1].start + found[1].length == 10**12
    assert found[1].length >= 1 << 20
    assert len({one.start for one in found}) > 60
    assert all(one.start % 4096 == 0 and one.start + one.length <= 10**12 for one in found)
    assert [(one.start, one.length) for one in samples.choose(8192, random.Random(1))] == [(0, 8192)] * 2


def test_blank_samples_are_counted_as_such():
    assert samples.held_data([bytes(512), b"\xff" * 512, b"\0" * 511 + b"x"]) == 1


# orders

GOOD = {
    "run": "r1",
    "disks": [
        {"path": "/dev/sda", "serial": "S", "wwn": None, "model": "M", "size_bytes": 9, "signatures": ["a"]}
    ],
    "left": ["/dev/sdb"],
}


def test_an_order_is_read():
    assert erasing.parse(GOOD, "r1") == erasing.Order(
        "r1",
        (erasing.Target(Disk("/dev/sda", "S", ("a",)), None, "M", 9),),
        frozenset({"/dev/sdb"}),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": "r2"}, "ordered run 'r2', but this machine was booted for run r1"),
        ({"disks": []}, "names no disk, or names one twice"),
        ({"disks": GOOD["disks"] * 2}, "names no disk, or names one twice"),
        ({"left": ["/dev/sda"]}, "names no disk, or names one twice"),
        ({"left": None}, "incomplete: TypeError"),
        ({"disks": [{**GOOD["disks"][0], "path": "/etc/passwd"}]}, "incomplete: disks.path"),
        ({"disks": [{"path": "/dev/sda"}]}, "incomplete: serial"),
    ],
)
def test_orders_that_are_refused(change, message):
    with pytest.raises(AgentError, match=message):
        erasing.parse({**GOOD, **change}, "r1")


class Head:
    def __init__(self):
        self.posts = []

    def post(self, path, body, patience=None):
        self.posts.append((path, json.loads(json.dumps(body))))
        return {}


def work(mode):
    head = Head()
    config = type("Config", (), {"mode": mode, "run": "r1"})()
    return main.Work(config, head, "eth0"), head


@pytest.mark.parametrize(
    ("mode", "action"),
    [("install", "erase"), ("discover", "erase"), ("erase", "install"), ("erase", "ramdisk"), ("x", "erase")],
)
def test_only_what_the_machine_was_booted_for_is_done(mode, action):
    with pytest.raises(AgentError, match=f"ordered {action}, but this machine was booted to {mode}"):
        work(mode)[0].carry_out({"action": action, action: GOOD})


def test_the_whole_of_it(drives, monkeypatch):
    target = drives.make("sda")
    monkeypatch.setattr(erasing, "parse", lambda data, run: drives.order())
    monkeypatch.setattr(main, "log", lambda text: None)
    own, head = work("erase")
    assert own.carry_out({"action": "erase", "erase": GOOD}) is False
    path, body = head.posts[-1]
    assert path == "/v1/done"
    assert body["run"] == "r1"
    assert [(one["path"], one["method"], one["verified"]) for one in body["disks"]] == [
        (target.disk.path, "secure-discard", True)
    ]
    assert [post[1]["phase"] for post in head.posts[:-1]] == ["erase", "erase: 1 of 1 disks"]
    assert Path(target.disk.path).read_bytes() == bytes(target.size)
