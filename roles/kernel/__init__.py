"""kernel: the running kernel, its arguments, its modules and PCIe bridges.

The lock decides the version where there is one (docs/lock.md); this role installs it, holds it and makes
it the one that boots. Three decisions. Nothing is rebooted here: what only a reboot brings is in the plan
as `reboot` until the live node has it. The command line is compared twice, that of the next boot and
/proc/cmdline, so that a boot loader that ignores its settings is found before it matters. And what an
earlier declaration added is taken out again: on Debian and Ubuntu the file of settings is whole, on EL a
record remembers what grubby was given.
"""
