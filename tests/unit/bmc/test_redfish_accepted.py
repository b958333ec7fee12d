"""What a BMC accepts is not done yet: a CD is waited for, and the boot target is read back."""

from __future__ import annotations

import pytest

from rackwright.bmc.interface import BootTarget
from rackwright.bmc.redfish import RedfishClient
from rackwright.errors import BmcError
from tests.unit.bmc import fake
from tests.unit.bmc.test_redfish import DRIVE, SYSTEM

URL = "https://10.77.0.1:8443/media/Zx81.iso"
TASK = "/redfish/v1/TaskService/Tasks/7"
WHICH = {"idrac": "1", "xcc": "EXT1"}


class Slow:
    """A BMC that accepts an image and shows it in the drive only after this many polls."""

    def __init__(self, bmc, name="idrac", *, waits=None, task=False):
        self.bmc, self.waits, self.task = bmc, waits, task
        self.path = f"/redfish/v1/{DRIVE[name]}"
        self.drive = bmc.documents[self.path]
        self.pauses: list[float] = []
        target = f"{self.path}/Actions/VirtualMedia.InsertMedia"
        bmc.fault(*((self.path, self.accept, "PATCH") if name == "xcc" else (target, self.accept, "POST")))
        bmc.fault(self.path, self.look)
        bmc.fault(TASK, self.look)
        if task:
            bmc.documents[TASK] = {"@odata.id": TASK, "TaskState": "Running"}

    def accept(self, handler) -> bool:
        return fake.answer(handler, 202, None, Location=f"https://bmc-gpu001.example.com{TASK}")

    def look(self, handler) -> bool:
        if self.waits is not None and len(self.pauses) >= self.waits:
            self.drive.update(Image=URL, Inserted=True)
            if self.task:
                self.bmc.documents[TASK]["TaskState"] = "Completed"
        return False

    def insert(self, url=URL):
        RedfishClient(self.bmc.session(pauses=self.pauses)).insert_media(url)


def refused(act) -> BmcError:
    with pytest.raises(BmcError) as caught:
        act()
    return caught.value


@pytest.mark.parametrize("task", [True, False])
def test_a_cd_is_waited_for(dialect, task):
    name, bmc = dialect
    slow = Slow(bmc, name, waits=3, task=task)
    slow.insert()
    assert len(slow.pauses) == 3
    assert slow.drive["Inserted"] is True
    looked = [path for method, path, _ in bmc.asked if method == "GET"]
    assert looked[-1] == slow.path
    assert looked.count(TASK) == (4 if task else 1), "without a document of the task the drive alone is asked"


@pytest.mark.parametrize("name", ["idrac", "xcc"])
def test_a_cd_that_never_comes_is_an_error_that_names_the_drive(name, pki):
    with fake.serving(fake.tree(name), pki) as bmc:
        slow = Slow(bmc, name)
        error = refused(slow.insert)
    assert error.message == (
        f"{bmc.target()} cannot insert virtual media: it accepted the image, but its drive {WHICH[name]} does not have it: it reports `Inserted: false`."
    )
    assert error.hint is not None
    assert "can the BMC reach `bmc_server`" in error.hint
    assert 50 <= sum(slow.pauses) <= 70


def test_a_task_that_fails_says_why(bmc):
    slow = Slow(bmc, task=True)
    bmc.documents[TASK].update(TaskState="Exception", Messages=[{"Message": "Unable to mount the image."}])
    assert refused(slow.insert).message == (
        f"{bmc.target()} cannot insert virtual media: its task {TASK} failed: Unable to mount the image."
    )
    assert slow.pauses == []


def test_a_task_that_does_not_end(bmc):
    slow = Slow(bmc, task=True)
    assert refused(slow.insert).message.endswith(f"its task {TASK} is running and does not end.")
    assert 200 <= sum(slow.pauses) <= 400


def test_a_cd_that_is_still_the_one_from_before(bmc):
    slow = Slow(bmc)
    slow.drive.update(Image="https://10.77.0.1/other.iso")
    assert "it reports the image https://10.77.0.1/other.iso" in refused(slow.insert).message


def test_a_drive_that_the_bmc_fails_to_report_for_a_moment(bmc):
    slow = Slow(bmc, waits=2)

    def broken(handler) -> bool:
        slow.look(handler)
        asked = any(method == "POST" for method, _, _ in bmc.asked)
        return asked and len(slow.pauses) < 2 and fake.answer(handler, 500)

    bmc.fault(slow.path, broken)
    slow.insert()
    assert len(slow.pauses) == 2


@pytest.mark.parametrize(
    "reported",
    [
        {},
        {"Image": None, "Inserted": None},
        {"Image": None, "Inserted": True},
        {"Image": "", "Inserted": True},
        {"Image": URL},
        {"Image": "Zx81.iso", "Inserted": True},  # sushy-tools of before 2023
        {"Image": "/media/Zx81.iso", "Inserted": True},
        {"Image": "\\media\\Zx81.iso", "Inserted": True},
        {"Image": "https://10.77.0.1/media/Zx81.iso", "Inserted": True},
    ],
)
def test_what_a_drive_does_not_report_is_not_asked_for(bmc, reported):
    slow = Slow(bmc)

    def look(handler) -> bool:
        if any(method == "POST" for method, _, _ in bmc.asked):
            for key in ("Image", "ImageName", "Inserted"):
                slow.drive.pop(key, None)
            slow.drive.update(reported)
        return False

    bmc.fault(slow.path, look)
    slow.insert()
    assert slow.pauses == []


SYSTEM_PATH = f"/redfish/v1/Systems/{SYSTEM['idrac']}"


class Override:
    """A BMC that accepts a boot target and reports this one after this many polls."""

    def __init__(self, bmc, *, waits=0, **boot):
        self.bmc, self.pauses = bmc, []
        bmc.fault(SYSTEM_PATH, lambda handler: fake.answer(handler, 204), "PATCH")

        def look(handler) -> bool:
            if any(method == "PATCH" for method, _, _ in bmc.asked) and len(self.pauses) >= waits:
                bmc.documents[SYSTEM_PATH]["Boot"].update(boot)
            return False

        bmc.fault(SYSTEM_PATH, look)

    def set(self, target=BootTarget.CD):
        RedfishClient(self.bmc.session(pauses=self.pauses)).set_boot(target, once=True)


@pytest.mark.parametrize(
    ("waits", "boot"),
    [
        (0, {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}),
        (3, {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}),
        (0, {"BootSourceOverrideTarget": "UsbCd"}),
        (0, {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Continuous"}),  # sushy-tools
        (0, {"BootSourceOverrideTarget": None}),
    ],
)
def test_the_boot_target_is_read_back(bmc, waits, boot):
    override = Override(bmc, waits=waits, **boot)
    override.set()
    assert len(override.pauses) == waits


@pytest.mark.parametrize("reported", ["None", "Pxe", "Hdd"])
def test_another_boot_target_than_the_one_written(bmc, reported):
    override = Override(bmc, BootSourceOverrideTarget=reported)
    assert refused(override.set).message == (
        f"{bmc.target()} cannot boot from Cd: it accepted that, but reports the target {reported}."
    )
    assert 5 <= sum(override.pauses) <= 15


def test_no_override_is_not_read_back(bmc):
    """Its target means nothing: some BMCs keep the last one beside `Disabled`."""
    override = Override(bmc, BootSourceOverrideTarget="Cd", BootSourceOverrideEnabled="Disabled")
    override.set(BootTarget.NONE)
    assert override.pauses == []
