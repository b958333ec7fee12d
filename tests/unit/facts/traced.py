"""A node's answer about what an intruder could leave, as a node of Debian 13 gives it, with changes."""

from __future__ import annotations

import base64

from rackwright.facts.traces import Traces, parse_traces
from rackwright.facts.undeclared import Declared

OWN = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICmQwQwZDl6B6Gut4RfJJrqeFMorFYGNTbwbx9KCI6Au rackwright"
OWN_PRINT = "SHA256:MyfK5+n7TpbqvmlC56/kyKp08rar1VlqNTOwCPdJF+Q"
FOREIGN = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKmQwQwZDl6B6Gut4RfJJrqeFMorFYGNTbwbx9KCI6Au mallory@outside"
STOCK_SUDOERS = (
    '# the file of sudo\nDefaults\tenv_reset\nDefaults secure_path="/usr/sbin:/usr/bin"\n'
    "root\tALL=(ALL:ALL) ALL\n%sudo\tALL=(ALL:ALL) ALL\n\n@includedir /etc/sudoers.d\n"
)
STOCK_SSHD = (
    "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\nSubsystem\tsftp\t/usr/lib/openssh/sftp-server\n"
)
ACCOUNTS = (
    "account|root|0|/root|/bin/bash|locked|",
    "account|daemon|1|/usr/sbin|/usr/sbin/nologin|locked|",
    "account|rack|1000|/home/rack|/bin/bash|locked|",
)
SETTINGS = ("sshd|permitrootlogin|no", "sshd|permituserenvironment|no", "sshd|trustedusercakeys|none")


def coded(tag: str, user: str, path: str, text: str) -> str:
    """A line with a file."""
    return f"{tag}|{user}|{path}|{base64.b64encode(text.encode()).decode()}"


STOCK = (
    *ACCOUNTS,
    *SETTINGS,
    coded("keys", "rack", "/home/rack/.ssh/authorized_keys", f"{OWN}\n"),
    coded("sudoers", "-", "/etc/sudoers", STOCK_SUDOERS),
    coded("sudoers", "-", "/etc/sudoers.d/90-rack", "rack ALL=(ALL:ALL) NOPASSWD: ALL\n"),
    coded("config", "-", "/etc/ssh/sshd_config", STOCK_SSHD),
    coded("config", "-", "/etc/ssh/sshd_config.d/00-rackwright.conf", "PermitRootLogin no\n"),
)
DECLARED = Declared(
    login="rack",
    users=("rack",),
    login_key=OWN_PRINT,
    sshd_files=frozenset({"/etc/ssh/sshd_config.d/00-rackwright.conf"}),
    sshd_settings={
        "permitrootlogin": frozenset({"no"}),
        "permituserenvironment": frozenset({"no"}),
        "trustedusercakeys": frozenset({"none"}),
    },
    root_groups={"sudo": frozenset({"ada"}), "docker": frozenset()},
    compared_groups=frozenset({"docker"}),
    paths=("/etc",),
)


def answer(*more: str, without: str = "\0") -> list[str]:
    """Lines of a stock node and these; without those that begin so."""
    return [*(line for line in STOCK if not line.startswith(without)), *more, "end"]


def traces(*more: str, without: str = "\0") -> Traces:
    """The same, read."""
    return parse_traces(answer(*more, without=without))
