"""Folders on which no filesystem may be mounted, in either section of the cluster file."""

from __future__ import annotations

import pytest

from rackwright.clusterfile.storage_mistakes import path_mistake
from rackwright.model.mount_points import belongs_to_system
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from tests.unit.roles.fake_host import errors_in

REFUSED = """
/ /bin /boot /boot/efi /dev /dev/shm /etc /etc/systemd /lib /lib64 /lib64/x /proc /proc/fs /root /root/x /run /run/user
/sbin /sys /sys/fs /tmp /usr /usr/bin /usr/lib /usr/lib/systemd /usr/lib64 /usr/libexec /usr/sbin /var /var/lib /var/log
"""
TAKEN = """
/home /srv /srv/home /scratch /work /opt/software /software /shared/home /usr/local /usr/local/cuda /var/lib/mysql
/var/lib/containerd /var/log/journal /var/spool/slurm /tmp/x /libs /etcetera
"""


def of_storage_layout(path: str) -> list[str]:
    return errors_in(
        StorageLayoutOptions, {"disks": {"a": {"slot": "0000:00:05.0"}}, "filesystems": {path: {"on": "a"}}}
    )


@pytest.mark.parametrize("path", REFUSED.split())
def test_folders_of_the_system(path):
    assert belongs_to_system(path)
    assert path_mistake(path) is not None
    (message,) = of_storage_layout(path)
    assert message.startswith(f"{path} is not usable as a mount point")


@pytest.mark.parametrize("path", TAKEN.split())
def test_other_folders(path):
    assert not belongs_to_system(path)
    assert path_mistake(path) is None
    StorageLayoutOptions.model_validate(
        {"disks": {"a": {"slot": "0000:00:05.0"}}, "filesystems": {path: {"on": "a"}}}
    )


def test_the_whole_disk_may_be_exported_but_not_mounted_on():
    assert path_mistake("/", mounted=False) is None
    assert path_mistake("/etc", mounted=False) is None
