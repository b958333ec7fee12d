"""The agent on machines under qemu: media, disks, and what goes wrong."""
