"""The agent: the only program in the initramfs of a machine being installed. Standard library only."""
