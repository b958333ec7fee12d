"""Mount units of declared filesystems, the kernel's table, and how the two differ."""

from __future__ import annotations

import pytest

from rackwright.model.storage import Mount, mount_of
from rackwright.mounts import (
    MountEntry,
    UnreadableMounts,
    automount_text,
    automount_unit,
    differences,
    live,
    mount_text,
    mount_unit,
    parse_mountinfo,
    unit_files,
    unit_texts,
)
from rackwright.roles.nfs_client.options import NfsClientOptions
from tests.unit.roles.nfs_sites import nfs, served
from tests.unit.roles.sites import head, worker

HEADER = "# Written by rackwright from the cluster file; changes made here are undone.\n"


def mount(**changes):
    fields = {"filesystem": nfs(), "what": "10.9.0.10:/srv/home", "type": "nfs4"}
    return Mount(**{**fields, **changes})


def entry(**changes):
    fields = {
        "target": "/home",
        "source": "10.9.0.10:/srv/home",
        "type": "nfs4",
        "options": frozenset({"rw"}),
    }
    return MountEntry(**{**fields, **changes})


@pytest.mark.parametrize(
    ("declared", "there", "said"),
    [
        (mount(), entry(), []),
        (mount(), entry(type="nfs"), ["is nfs, not nfs4"]),
        (mount(types=("nfs", "nfs4")), entry(type="nfs"), []),
        (mount(types=("a", "b")), entry(type="c"), ["is c, not a or b"]),
        (mount(), entry(source="x:/y"), ["comes from x:/y, not from 10.9.0.10:/srv/home"]),
        (mount(sources=("x:/y",)), entry(source="x:/y"), []),
        (mount(shown={"hard": None}), entry(), ["lacks hard"]),
        (mount(shown={"vers": "4.2"}), entry(), ["lacks vers=4.2"]),
        (
            mount(shown={"vers": "4.2"}),
            entry(options=frozenset({"rw", "vers=4.1"})),
            ["has vers=4.1, not vers=4.2"],
        ),
        (mount(shown={"hard": None}), entry(options=frozenset({"rw", "hard"})), []),
        (mount(), entry(options=frozenset({"ro"})), ["is read-only"]),
        (mount(filesystem=nfs(read_only=True)), entry(), ["is writable, not read-only"]),
        (mount(filesystem=nfs(read_only=True)), entry(options=frozenset({"ro"})), []),
    ],
)
def test_differences(declared, there, said):
    assert list(differences(declared, there)) == said


def test_the_table_is_read_with_the_kernel_s_escapes():
    table = parse_mountinfo(
        "28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
        "40 28 0:50 / /a\\040b rw,nosuid shared:2 master:1 - cifs //s/x\\011y rw,vers=3\n"
        "41 28 0:51 / /a\\040b rw - tmpfs tmpfs rw\n"
    )
    assert [one.type for one in table["/a b"]] == ["cifs", "tmpfs"]
    assert table["/a b"][0] == MountEntry("/a b", "//s/x\ty", "cifs", frozenset({"rw", "nosuid", "vers=3"}))
    assert live(table["/a b"]).type == "tmpfs"
    assert live((entry(type="autofs"),)) is None
    assert live(()) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/dev/vda1 / ext4 rw 0 0\n",
        "1 2 3:4 / / rw\n",
        "1 2 3:4 / / rw - ext4\n",
        "1 2 3:4 / /x rw - a b c",
    ],
)
def test_what_is_no_table_is_refused(text):
    with pytest.raises(UnreadableMounts):
        parse_mountinfo(text)


def test_units_of_a_filesystem_at_its_first_use():
    one = mount(filesystem=nfs(path="/data/set-1"), options=("hard", "noatime"), requires=("lnet.service",))
    assert (mount_unit(one), automount_unit(one)) == ("data-set\\x2d1.mount", "data-set\\x2d1.automount")
    assert mount_text(one) == (
        f"{HEADER}[Unit]\nDescription=/data/set-1 (nfs home)\nX-Rackwright-Purpose=home\nDocumentation=man:systemd.mount(5)\n"
        "Wants=network-online.target\nAfter=network-online.target lnet.service\nRequires=lnet.service\n"
        "# The unit must recover after a temporary failure of the server.\nStartLimitIntervalSec=0\n\n"
        "[Mount]\nWhat=10.9.0.10:/srv/home\nWhere=/data/set-1\nType=nfs4\nOptions=hard,noatime\nTimeoutSec=90\n"
    )
    assert automount_text(one) == (
        f"{HEADER}[Unit]\nDescription=/data/set-1 at its first use (nfs home)\nX-Rackwright-Purpose=home\n"
        "# The unit must recover after a temporary failure of the server.\nStartLimitIntervalSec=0\n\n"
        "[Automount]\nWhere=/data/set-1\n\n[Install]\nWantedBy=remote-fs.target\n"
    )


@pytest.mark.parametrize("kind", ["beegfs", "wekafs", "gpfs"])
def test_what_systemd_takes_for_local_is_ordered_as_a_network_filesystem(kind):
    """By default it would be before local-fs.target and after the network, which is after local-fs.target."""
    text = mount_text(mount(type=kind, filesystem=nfs(automount=False)))
    assert (
        "\nDefaultDependencies=no\nConflicts=umount.target\nBefore=remote-fs.target umount.target\n"
        "After=remote-fs-pre.target\nWants=network-online.target\nAfter=network-online.target\n"
    ) in text
    assert "DefaultDependencies" not in mount_text(mount(type="lustre"))


def test_units_of_a_filesystem_at_boot():
    one = mount(filesystem=nfs(automount=False, read_only=True))
    assert mount_text(one).endswith("Options=ro\nTimeoutSec=90\n\n[Install]\nWantedBy=remote-fs.target\n")
    assert "Options=defaults\n" in mount_text(mount())
    assert unit_texts(one) == {
        "/etc/systemd/system/home.mount": mount_text(one),
        "/etc/systemd/system/home.automount": None,
    }


def test_both_unit_files_are_declared_whatever_is_in_force():
    cluster = served(nfs(automount=False))
    role = NfsClientOptions()
    assert unit_files(worker(cluster), role) == (
        "/etc/systemd/system/home.mount",
        "/etc/systemd/system/home.automount",
    )
    assert unit_files(head(cluster), role) == ()


def test_a_server_mounts_nothing_from_itself():
    cluster = served(nfs())
    assert mount_of(head(cluster), nfs()) is None
    assert mount_of(worker(cluster), nfs()).what == "10.9.0.10:/srv/home"
    assert mount_of(worker(cluster), nfs(kind="lustre")) is None
