"""nvidia_driver: the locked driver, held, its modules built for the locked kernel, and seen to be loaded.

The lock decides every version (docs/lock.md); this role installs them and verifies them. Three
decisions. Packages never build modules while dpkg configures them: the role builds them itself, for
the locked kernel, so that a module that does not compile is an error with the compiler's line and
not a half-configured package. Nothing is rebooted: what waits for a reboot is shown by plan, noted on
the node as distributions do, and a FAIL of verify until it has happened. And modprobe's options are
typed, because a misspelt NVreg_ option is silently ignored by the module.
"""
