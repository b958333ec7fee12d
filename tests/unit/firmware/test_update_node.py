"""The firmware of one node updated, through a BMC that fails in every way it can."""

from __future__ import annotations

import pytest

from rackwright.engine.boots import NotBooted
from rackwright.errors import BmcError, FirmwareError
from rackwright.firmware.update_node import UpdateNode
from rackwright.model.firmware import Baseline, Release
from tests.unit.bmc import fake
from tests.unit.firmware.machine import (
    INVENTORY,
    MANAGER,
    PUSH,
    SAID,
    SIMPLE,
    SYSTEM,
    TASK,
    TASKS,
    UPDATES,
    baseline,
    image,
)

URL = "http://images.example.com/bios.exe"
SCHEDULED = {
    "TaskState": "Starting",
    "Messages": [{"Message": "Task successfully scheduled.", "MessageId": "JCP001"}],
}
BMC = {"bios": None, "bmc": Release(version="7.20", url="http://images.example.com/bmc.d9")}


@pytest.fixture
def update(machine):
    def run(declared: Baseline | None = None, **given):
        asking = machine.asking()
        notes = []
        try:
            done = UpdateNode(
                asking, declared or baseline(), lambda: machine.reboot(asking), notice=notes.append, **given
            ).run()
        finally:
            asking.close()
            machine.notes = notes
        return done

    return run


def test_an_update_that_is_there_at_once(machine, update):
    machine.now = {SYSTEM: "2.7.1"}
    assert update() == ("bios 2.7.1",)
    assert machine.images == [{"ImageURI": URL, "TransferProtocol": "HTTP"}]
    assert (machine.boots, machine.bmc.sessions) == (0, {})
    assert machine.notes == ["update: bios 2.6.6 -> 2.7.1 (bios.exe)", "bios 2.6.6 -> 2.7.1 (bios.exe): 40 %"]


def test_nothing_is_sent_where_nothing_differs(machine, update):
    machine.documents[SYSTEM]["BiosVersion"] = "2.7.1"
    assert update() == ()
    assert machine.bmc.changes() == []


def test_an_update_that_a_boot_brings_about(machine, update):
    machine.at_boot = {SYSTEM: "2.7.1"}
    assert update() == ("bios 2.7.1",)
    resets = [body["ResetType"] for _, path, body in machine.bmc.changes() if path.endswith("Reset")]
    assert resets == ["GracefulShutdown", "On"]


def test_a_task_that_waits_for_the_boot(machine, update):
    """An iDRAC's: scheduled, then carried out by the boot."""
    machine.states = [
        {"TaskState": "Running"},
        SCHEDULED,
        {"TaskState": "Running"},
        {"TaskState": "Completed"},
    ]
    machine.at_boot = {SYSTEM: "2.7.1"}
    assert update() == ("bios 2.7.1",)
    assert machine.boots == 1


def test_a_task_that_never_begins(machine, update):
    machine.states = [SCHEDULED]
    with pytest.raises(FirmwareError, match="still waiting after the node has booted"):
        update()


def test_it_is_asked_to_apply_at_reset_where_that_is_offered(machine, update):
    action = machine.documents[UPDATES]["Actions"]["#UpdateService.SimpleUpdate"]
    action["@Redfish.OperationApplyTimeSupport"] = {"SupportedValues": ["Immediate", "OnReset"]}
    machine.at_boot = {SYSTEM: "2.7.1"}
    update()
    assert machine.images[0]["@Redfish.OperationApplyTime"] == "OnReset"


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ({"TaskState": "Exception", "Messages": [{"Message": SAID}]}, SAID.rstrip(".")),
        ({"TaskState": "Completed", "TaskStatus": "Critical"}, "its BMC gives no reason"),
        (
            {
                "TaskState": "Exception",
                "Messages": [{"MessageId": "Update.1.0.ApplyFailed", "MessageArgs": ["x", 1]}],
            },
            r"Update.1.0.ApplyFailed\(x, 1\)",
        ),
    ],
)
def test_a_task_that_fails(machine, update, task, words):
    machine.states = [task]
    with pytest.raises(FirmwareError, match=rf"bios 2.6.6 -> 2.7.1 \(bios.exe\): failed: {words}"):
        update()
    assert machine.boots == 0


def test_a_version_that_does_not_change(machine, update):
    with pytest.raises(FirmwareError) as refused:
        update()
    assert refused.value.message == (
        "The update succeeded, but the versions are not as declared: bios is 2.6.6, but 2.7.1 is declared."
    )
    assert machine.boots == 1


def test_a_refused_image(machine, update):
    machine.bmc.fault(
        SIMPLE,
        lambda handler: fake.answer(handler, 400, {"error": {"message": "The image is too old."}}),
        "POST",
    )
    with pytest.raises(BmcError, match="The image is too old"):
        update()


def test_a_bmc_that_restarts_and_forgets_the_task(machine, update):
    machine.away_after_update = 6
    machine.states = [{"TaskState": "gone"}]
    machine.now = {MANAGER: "7.20"}
    assert update(baseline(**BMC)) == ("bmc 7.20",)
    assert (len(machine.images), machine.boots) == (1, 0)


def test_a_bmc_that_does_not_come_back(machine, update):
    machine.away_after_update = 10**6
    with pytest.raises(BmcError, match="did not answer GET"):
        update(baseline(**BMC))


def test_a_bmc_whose_version_stays(machine, update):
    with pytest.raises(FirmwareError, match="its task succeeded, but the version has not changed"):
        update(baseline(**BMC))
    assert machine.boots == 0


def test_a_change_is_never_sent_twice(machine, update):
    def cut(handler):
        handler.close_connection = True
        handler.connection.close()
        return True

    machine.bmc.fault(SIMPLE, cut, "POST")
    with pytest.raises(FirmwareError, match="it may have started bios"):
        update()
    assert len([path for _, path, _ in machine.bmc.changes() if path == SIMPLE]) == 1


def test_an_interrupted_run_is_finished(machine, update):
    """A task of the killed run still runs: nothing is sent again."""
    machine.documents[TASKS]["Members"] = [{"@odata.id": TASK}]
    machine.now = {SYSTEM: "2.7.1"}
    assert update() == ("bios 2.7.1",)
    assert machine.images == []


def test_an_interrupted_run_that_waits_for_the_boot(machine, update):
    machine.documents[TASKS]["Members"] = [{"@odata.id": TASK}]
    machine.states = [SCHEDULED, SCHEDULED, {"TaskState": "Completed"}]
    machine.at_boot = {SYSTEM: "2.7.1"}
    assert update() == ("bios 2.7.1",)
    assert (machine.images, machine.boots) == ([], 1)


def test_without_a_task_and_without_its_end_nothing_is_rebooted(machine, update):
    machine.bmc.fault(SIMPLE, lambda handler: fake.answer(handler, 204), "POST")
    with pytest.raises(FirmwareError, match="reports neither a task nor its end"):
        update()
    assert machine.boots == 0


def test_the_progress_of_an_ilo(machine, update):
    left = ["Updating", "Updating", "Complete"]

    def service(handler):
        state = left.pop(0) if len(left) > 1 else left[0]
        document = {**machine.documents[UPDATES], "Oem": {"Hpe": {"State": state, "FlashProgressPercent": 5}}}
        return fake.answer(handler, 200, document)

    def begin(handler):
        machine.bmc.fault(UPDATES, service)
        return fake.answer(handler, 200, {"error": {"@Message.ExtendedInfo": [{"MessageId": "iLO.Success"}]}})

    machine.bmc.fault(SIMPLE, begin, "POST")
    machine.at_boot = {SYSTEM: "2.7.1"}
    assert update() == ("bios 2.7.1",)


def test_a_node_that_does_not_shut_down_is_left_running(machine, update):
    machine.shuts_down = False
    with pytest.raises(
        NotBooted, match=r"did not shut down within 0\.5 s of the power button; it is still running"
    ):
        update()
    resets = [body["ResetType"] for _, path, body in machine.bmc.changes() if path.endswith("Reset")]
    assert resets == ["GracefulShutdown"]


def test_a_file_is_fetched_from_here_where_the_bmc_can(machine, update, tmp_path):
    file = image(tmp_path)
    machine.now = {SYSTEM: "2.7.1"}
    declared = baseline(bios=Release(version="2.7.1", file=file, sha256="0" * 64))
    update(declared, url_of=lambda one: f"https://10.20.0.5:8443/firmware/x/{one.name}")
    assert machine.images == [
        {"ImageURI": "https://10.20.0.5:8443/firmware/x/bios 1.exe", "TransferProtocol": "HTTPS"}
    ]


def test_a_file_is_sent_where_the_bmc_cannot_fetch(machine, update, tmp_path, monkeypatch):
    del machine.documents[UPDATES]["Actions"]
    machine.documents[UPDATES]["MultipartHttpPushUri"] = PUSH
    sent = []
    monkeypatch.setattr(fake.json, "loads", _tolerant(fake.json.loads, sent))
    machine.now = {SYSTEM: "2.7.1"}
    update(baseline(bios=Release(version="2.7.1", file=image(tmp_path, b"\x00\xff"), sha256="0" * 64)))
    (body,) = sent
    assert b'name="UpdateParameters"\r\nContent-Type: application/json\r\n\r\n{"Targets": []}\r\n' in body
    assert (
        b'name="UpdateFile"; filename="bios_1.exe"\r\nContent-Type: application/octet-stream\r\n\r\n\x00\xff'
        in body
    )
    kind = next(
        one["Content-Type"] for one in machine.bmc.headers if "multipart" in one.get("Content-Type", "")
    )
    assert body.endswith(f"\r\n--{kind.partition('=')[2]}--\r\n".encode())


def _tolerant(loads, sent):
    def read(text, **options):
        try:
            return loads(text, **options)
        except ValueError:
            sent.append(text)
            return None

    return read


def test_a_bmc_that_fetches_needs_a_server(machine, update, tmp_path):
    declared = baseline(bios=Release(version="2.7.1", file=image(tmp_path), sha256="0" * 64))
    with pytest.raises(
        FirmwareError, match=r"must download bios 1\.exe, but no server for it is declared"
    ) as refused:
        update(declared)
    assert "boot_network" in refused.value.hint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Actions": {}}, "accepts no images: its update service is missing or disabled"),
        ({"ServiceEnabled": False}, "accepts no images: its update service is missing or disabled"),
        ({"Actions": {}, "MultipartHttpPushUri": PUSH}, "accepts no images from URLs"),
    ],
)
def test_a_bmc_without_updates(machine, update, change, message):
    machine.documents[UPDATES] |= change
    with pytest.raises(FirmwareError, match=message):
        update()


def test_a_protocol_that_the_bmc_does_not_offer(machine, update):
    action = machine.documents[UPDATES]["Actions"]["#UpdateService.SimpleUpdate"]
    action["TransferProtocol@Redfish.AllowableValues"] = ["TFTP"]
    with pytest.raises(BmcError, match="cannot download an image over HTTP; it supports TFTP"):
        update()


def test_a_component_that_vanishes(machine, update):
    release = Release(version="97.11", url="http://images.example.com/hgx.fwpkg")
    path = f"{INVENTORY}/HGX_FW_GPU_1"

    def gone(handler):
        machine.documents[INVENTORY]["Members"] = [
            one for one in machine.documents[INVENTORY]["Members"] if one["@odata.id"] != path
        ]
        machine.documents[f"{INVENTORY}/HGX_FW_GPU_0"]["Version"] = "97.11"
        return False

    machine.bmc.fault(SIMPLE, lambda handler: gone(handler) or machine._update(handler), "POST")
    with pytest.raises(FirmwareError, match="the BMC no longer lists HGX_FW_GPU_1"):
        update(Baseline(components={"HGX_FW_GPU_*": release}))
