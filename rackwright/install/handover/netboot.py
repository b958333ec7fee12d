"""The distribution's installer by PXE: the machine's TFTP root has its files in place of the agent's."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.install.handover.files import InstallerFiles
from rackwright.install.handover.media import put_netboot
from rackwright.install.netboot import NetbootMedium
from rackwright.install.record import Record


@dataclass
class NetbootFolder:
    """A folder that dnsmasq serves this machine as its TFTP root."""

    medium: NetbootMedium

    def put(self, files: InstallerFiles, arguments: str, record: Record) -> str:
        self.medium.server.answer(
            self.medium.node, record.mac, lambda folder: put_netboot(files, arguments, folder)
        )
        return "pxe"

    def put_again(self, files: InstallerFiles, arguments: str, record: Record) -> None:
        self.put(files, arguments, record)
