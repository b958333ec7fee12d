"""What runs on a machine that is being installed: the only program of an initramfs. Standard library alone."""
