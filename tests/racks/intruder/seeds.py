"""What intruders leave: how it is seeded, what finds it, and what allows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICmQwQwZDl6B6Gut4RfJJrqeFMorFYGNTbwbx9KCI6Au mallory@outside"
FINGERPRINT = "SHA256:MyfK5+n7TpbqvmlC56/kyKp08rar1VlqNTOwCPdJF+Q"


@dataclass(frozen=True)
class Seed:
    """One thing that an intruder leaves."""

    what: str
    by_hand: str
    operation: tuple[str, str]
    """(role, operation) of the plan."""
    check: tuple[str, str]
    """(role, check) of verify."""
    says: str
    """What a change in the plan has."""
    kept: str = ""
    """The path that is in the quarantine afterwards."""
    allowed: dict[str, Any] = field(default_factory=dict)
    """Options of the role with which it is right; empty where nothing allows it."""
    undo: str = ":"
    """Takes away by hand what apply leaves, or what an allow list let stay."""


_KEYS = (
    ("integrity", "Remove undeclared authorized keys"),
    ("integrity", "every authorized key is declared"),
)
_ACCOUNTS = (
    ("integrity", "Lock undeclared accounts"),
    ("integrity", "only declared accounts have root's uid or a system password"),
)
_MEMBERS = (
    ("integrity", "Remove undeclared members from privileged groups"),
    ("integrity", "groups that can become root have only declared members"),
)
_SUDO = (
    ("integrity", "Remove undeclared sudo rules"),
    ("integrity", "every sudo rule is declared"),
)
_SSHD = (
    ("integrity", "Remove undeclared sshd settings"),
    ("integrity", "sshd's effective settings are declared"),
)
_LOOSE = (
    ("integrity", "Clear undeclared setuid and write bits"),
    ("integrity", "nothing is setuid or writable by everyone in managed folders"),
)
_HOLDS = (
    ("integrity", "Unhold undeclared packages"),
    ("integrity", "only declared packages are on hold"),
)
_CHRONY = ("time", "Start chronyd"), ("time", "chronyd is running and enabled at boot")
_SSH = ("access", "Start sshd with its settings"), ("access", "sshd is running and enabled at boot")
_DROP_IN = "/etc/systemd/system/chrony.service.d/evil.conf"
_RUN_DROP_IN = "/run/systemd/system/ssh.service.d/evil.conf"
_RULE = "mallory ALL=(ALL) NOPASSWD: ALL"

SEEDS = (
    Seed("a key of root", f"mkdir -p -m 700 /root/.ssh; echo '{KEY}' >>/root/.ssh/authorized_keys", *_KEYS, FINGERPRINT,
         "/root/.ssh/authorized_keys", {"allowed_authorized_keys": {"root": [FINGERPRINT]}},
         "rm /root/.ssh/authorized_keys"),
    Seed("a key of ssh.user", f"echo '{KEY}' >>/home/rack/.ssh/authorized_keys", *_KEYS, "mallory@outside",
         "/home/rack/.ssh/authorized_keys", {"allowed_authorized_keys": {"rack": [KEY]}},
         "sed -i /mallory/d /home/rack/.ssh/authorized_keys"),
    Seed("a key of an administrator", f"install -d -o bob -m 700 /home/bob/.ssh; echo '{KEY}' >/home/bob/.ssh/authorized_keys",
         *_KEYS, "of bob", "/home/bob/.ssh/authorized_keys", {"allowed_authorized_keys": {"bob": [KEY]}},
         "rm -r /home/bob/.ssh"),
    Seed("a key in sshd's own folder", f"echo '{KEY}' >/etc/ssh/authorized_keys.d/root", *_KEYS, FINGERPRINT,
         "/etc/ssh/authorized_keys.d/root", {"allowed_authorized_keys": {"root": [KEY]}},
         "rm /etc/ssh/authorized_keys.d/root"),
    Seed("a second uid 0", "useradd -o -u 0 -g 0 -M -d /root -s /bin/bash toor; usermod -p '$6$x$y' toor", *_ACCOUNTS,
         "uid 0, closed", "", {"allowed_uid0": ["toor"]},
         "sed -i /^toor:/d /etc/passwd /etc/shadow; sed -i /^toor:/d /etc/subuid /etc/subgid || :"),
    Seed("a system account with a password", "usermod -p '$6$x$y' daemon", *_ACCOUNTS, "password locked", "",
         {"allowed_system_logins": ["daemon"]}, "usermod -p '*' daemon"),
    Seed("a password of root", "usermod -p '$6$x$y' root", *_ACCOUNTS, "password locked", "",
         {"allowed_system_logins": ["root"]}, "usermod -p '*' root"),
    Seed("a member of sudo's group", "usermod -aG sudo daemon", *_MEMBERS, "not in group sudo", "",
         {"allowed_group_members": {"sudo": ["daemon"]}}, "gpasswd -d daemon sudo"),
    Seed("a user whose own group is sudo's", "usermod -g sudo games", *_MEMBERS, "not in group sudo", "",
         {"allowed_group_members": {"sudo": ["games"]}}, "usermod -g games games"),
    Seed("a file of sudo", f"echo '{_RULE}' >/etc/sudoers.d/99-evil; chmod 440 /etc/sudoers.d/99-evil", *_SUDO, _RULE,
         "/etc/sudoers.d/99-evil", {"allowed_sudoers": ["99-evil"]}, "rm /etc/sudoers.d/99-evil"),
    Seed("a line of sudoers", f"echo '{_RULE}' >>/etc/sudoers", *_SUDO, _RULE, "/etc/sudoers"),
    Seed("a file of sshd", "echo 'PermitUserEnvironment yes' >/etc/ssh/sshd_config.d/10-evil.conf", *_SSHD,
         "sshd's permituserenvironment", "/etc/ssh/sshd_config.d/10-evil.conf",
         {"allowed_sshd_includes": ["10-evil.conf"], "allowed_sshd_settings": {"permituserenvironment": "yes"}},
         "rm /etc/ssh/sshd_config.d/10-evil.conf"),
    Seed("a setting of sshd", "echo 'AuthorizedPrincipalsFile /etc/evil' >>/etc/ssh/sshd_config", *_SSHD,
         "sshd's authorizedprincipalsfile", "/etc/ssh/sshd_config",
         {"allowed_sshd_settings": {"authorizedprincipalsfile": "/etc/evil"}},
         "sed -i /evil/d /etc/ssh/sshd_config"),
    Seed("a Match block of sshd", "printf 'Match User mallory\\n  PasswordAuthentication yes\\n' >>/etc/ssh/sshd_config",
         *_SSHD, "Match User mallory", "/etc/ssh/sshd_config", {"allowed_sshd_match": ["Match User mallory"]},
         "sed -i '/^Match User mallory/,$d' /etc/ssh/sshd_config"),
    Seed("sshd's folder left out", "sed -i '/^Include/d' /etc/ssh/sshd_config", *_SSHD, "Include /etc/ssh",
         "/etc/ssh/sshd_config"),
    Seed("a drop-in", f"mkdir -p {_DROP_IN.rpartition('/')[0]}; printf '[Service]\\nExecStartPre=/bin/true\\n' >{_DROP_IN};"
         "systemctl daemon-reload", *_CHRONY, "unit file of chrony.service", _DROP_IN, {"allowed_drop_ins": [_DROP_IN]},
         f"rm {_DROP_IN}; systemctl daemon-reload"),
    Seed("a drop-in until the next boot", f"mkdir -p {_RUN_DROP_IN.rpartition('/')[0]};"
         f"printf '[Service]\\nEnvironment=X=1\\n' >{_RUN_DROP_IN}; systemctl daemon-reload", *_SSH,
         "unit file of ssh.service", _RUN_DROP_IN, {"allowed_drop_ins": [_RUN_DROP_IN]},
         f"rm {_RUN_DROP_IN}; systemctl daemon-reload"),
    Seed("a masked unit", "systemctl mask -q --now chrony", *_CHRONY, "unmasked"),
    Seed("a disabled unit", "systemctl disable -q chrony", *_CHRONY, "enabled"),
    Seed("a managed file that everyone may write", "chmod 666 /etc/ssh/ssh_known_hosts",
         ("access", "Write every node's host keys"), ("access", "every node's host key is known"),
         "file 644 root:root"),
    Seed("a setuid program", "install -m 4755 /bin/true /usr/local/bin/evil", *_LOOSE, "mode 4755", "",
         {"allowed_setuid": ["/usr/local/bin/evil"]}, "rm -f /usr/local/bin/evil"),
    Seed("a folder that everyone may write", "chmod 777 /etc/profile.d", *_LOOSE, "mode 777", "",
         {"allowed_setuid": ["/etc/profile.d"]}, "chmod 755 /etc/profile.d"),
    Seed("a package on hold", "apt-mark -qq hold sudo", *_HOLDS, "not held", "", {"allowed_holds": ["sudo"]},
         "apt-mark -qq unhold sudo"),
)  # fmt: skip
