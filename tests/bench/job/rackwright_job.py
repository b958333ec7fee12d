"""Forty operations that are all as declared already, in rackwright's operations."""

from pyinfra.api.deploy import deploy

from rackwright.operations import files, packages, settings, sysctls, units, users


@deploy("bench")
def bench() -> None:
    """Ten files, eight directories, four links, six sysctls, and so on: see tests/bench/README.md."""
    for number in range(8):
        files.directory(name=f"Make folder {number}", path=f"/opt/bench{number}")
    for number in range(10):
        files.file(
            name=f"Write file {number}",
            path=f"/opt/bench{number % 8}/file{number}",
            content=f"{number}\n" * 40,
        )
    for number in range(4):
        files.link(name=f"Link {number}", path=f"/opt/bench{number}/link", target=f"file{number}")
    for number in range(6):
        key = (
            "tcp_fastopen",
            "tcp_keepalive_time",
            "tcp_sack",
            "tcp_timestamps",
            "ip_forward",
            "tcp_syncookies",
        )
        value = ("3", "7200", "1", "1", "0", "1")
        sysctls.live(name=f"Set sysctl {number}", values={f"net.ipv4.{key[number]}": value[number]})
    for number in range(3):
        package = ("sudo", "procps", "kmod")[number]
        packages.installed(name=f"Install package {number}", packages=(package,))
    for number in range(3):
        unit = ("ssh.service", "systemd-journald.service", "dbus.service")[number]
        units.unit(name=f"Run unit {number}", unit=unit, running=True, enabled=None)
    for number in range(2):
        users.group(name=f"Make group {number}", group=f"bench{number}", gid=7000 + number)
    for number in range(2):
        users.user(
            name=f"Make user {number}", user=f"bencher{number}", uid=7000 + number, group=f"bench{number}"
        )
    settings.setting(name="Read the kernel", target="ostype", read="uname -s", want="Linux", write="false")
    settings.setting(
        name="Read the shell", target="shell", read="readlink /bin/sh", want="dash", write="false"
    )


bench()
