"""The same forty operations in stock pyinfra."""

from io import StringIO

from pyinfra.operations import apt, files, server, systemd

for number in range(8):
    files.directory(
        name=f"Make folder {number}", path=f"/opt/bench{number}", mode="755", user="root", group="root"
    )
for number in range(10):
    files.put(
        name=f"Write file {number}",
        src=StringIO(f"{number}\n" * 40),
        dest=f"/opt/bench{number % 8}/file{number}",
        mode="644",
        user="root",
        group="root",
    )
for number in range(4):
    files.link(name=f"Link {number}", path=f"/opt/bench{number}/link", target=f"file{number}")
for number in range(6):
    key = ("tcp_fastopen", "tcp_keepalive_time", "tcp_sack", "tcp_timestamps", "ip_forward", "tcp_syncookies")
    value = (3, 7200, 1, 1, 0, 1)
    server.sysctl(name=f"Set sysctl {number}", key=f"net.ipv4.{key[number]}", value=value[number])
for number in range(3):
    apt.packages(name=f"Install package {number}", packages=[("sudo", "procps", "kmod")[number]])
for number in range(3):
    systemd.service(
        name=f"Run unit {number}",
        service=("ssh.service", "systemd-journald.service", "dbus.service")[number],
        running=True,
    )
for number in range(2):
    server.group(name=f"Make group {number}", group=f"bench{number}", gid=7000 + number)
for number in range(2):
    server.user(
        name=f"Make user {number}", user=f"bencher{number}", uid=7000 + number, group=f"bench{number}"
    )
files.file(name="See the kernel", path="/proc/sys/kernel/ostype")
files.link(name="See the shell", path="/bin/sh", target="dash")
