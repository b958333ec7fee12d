"""Writes the Ansible playbook: one task per operation, no loops inside a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def playbook(target: Path) -> None:
    """Forty tasks; JSON is YAML. Sysctls are read by command: ansible.posix is not part of ansible-core."""
    tasks: list[dict[str, Any]] = []
    root = {"owner": "root", "group": "root"}
    tasks += [
        {"file": {"path": f"/opt/bench{number}", "state": "directory", "mode": "0755", **root}}
        for number in range(8)
    ]
    tasks += [
        {
            "copy": {
                "dest": f"/opt/bench{number % 8}/file{number}",
                "content": f"{number}\n" * 40,
                "mode": "0644",
                **root,
            }
        }
        for number in range(10)
    ]
    tasks += [
        {"file": {"path": f"/opt/bench{number}/link", "src": f"file{number}", "state": "link"}}
        for number in range(4)
    ]
    keys = (
        "tcp_fastopen",
        "tcp_keepalive_time",
        "tcp_sack",
        "tcp_timestamps",
        "ip_forward",
        "tcp_syncookies",
    )
    tasks += [{"command": f"sysctl -n net.ipv4.{key}", "changed_when": False} for key in keys]
    tasks += [{"apt": {"name": name, "state": "present"}} for name in ("sudo", "procps", "kmod")]
    tasks += [
        {"systemd": {"name": name, "state": "started"}}
        for name in ("ssh.service", "systemd-journald.service", "dbus.service")
    ]
    tasks += [{"group": {"name": f"bench{number}", "gid": 7000 + number}} for number in range(2)]
    tasks += [
        {"user": {"name": f"bencher{number}", "uid": 7000 + number, "group": f"bench{number}"}}
        for number in range(2)
    ]
    tasks += [
        {"command": "uname -s", "changed_when": False},
        {"file": {"path": "/bin/sh", "src": "dash", "state": "link"}},
    ]
    assert len(tasks) == 40
    named = [{"name": f"Task {number}", **task} for number, task in enumerate(tasks)]
    play = [{"hosts": "all", "gather_facts": False, "become": True, "tasks": named}]
    target.write_text(json.dumps(play, indent=1))
