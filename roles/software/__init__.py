"""Modules for users: Lmod, and the module trees on declared filesystems of purpose `software`."""
