"""The installation of machines from nothing: agents, media and disks under qemu."""
