"""Files of the accounts role, and the shell with which it reads: shared by the deploy and its checks."""

from __future__ import annotations

import hashlib
import json

from cryptography import x509

from rackwright.certificates.read import certificates_in, pem
from rackwright.drift.paths import USER as DRIFT_USER
from rackwright.errors import SecretsError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import DeclaresUsers
from rackwright.model.logins import PRIVILEGED_GROUPS
from rackwright.model.services import IssuesCertificates
from rackwright.render import render
from rackwright.roles.accounts.options import AccountsOptions

CONF = "/etc/sssd/sssd.conf"
SNIPPETS = "/etc/sssd/conf.d"
DOMAIN = "directory"
CA_FILE = "/etc/rackwright-directory-ca.crt"
KEYS_PROGRAM = "/usr/libexec/rackwright/directory-keys"
"""What sshd asks for keys. Not below /usr/local: staff may write there on older Debian, and sshd refuses such a program."""
HIDDEN_GROUPS = ("root", *PRIVILEGED_GROUPS)
"""Groups of the directory with these names do not exist for the nodes."""
SOCKETS = ("sssd-nss.socket", "sssd-pam.socket", "sssd-pam-priv.socket", "sssd-ssh.socket")
"""A responder that sssd.conf names and a socket both start fails (sssd.conf(5), `services`; Debian enables sockets)."""
SERVER_PORTS = {"ldap": 389, "ldaps": 636}
_FILE_MAX = 1 << 20
_DATABASES = "/var/lib/sss/db"
_MARK = f"{_DATABASES}/rackwright-directory"

NSSWITCH = "/etc/nsswitch.conf"
NSSWITCH_RIGHT = "group: files, sss\npasswd: files, sss"
# `compat` is files with NIS's entries (nsswitch.conf(5))
NSSWITCH_READ = f"""\
sed 's/#.*//' {NSSWITCH} | awk -F: '$1 == "passwd" || $1 == "group" {{
  n = split($2, words, " "); files = sss = 0
  for (i = 1; i <= n; i++) {{
    if ((words[i] == "files" || words[i] == "compat") && !files) files = i
    if (words[i] == "sss" && !sss) sss = i
  }}
  sub(/^ +/, "", $2); print $1 ": " (files && files < sss ? "files, sss" : $2)
}}' | sort"""
NSSWITCH_WRITE = (
    rf"sed -E -i '/^(passwd|group):/{{s/[[:space:]]+sss\>//g; s/\<(files|compat)\>/\1 sss/}}' {NSSWITCH}"
)

PAM_PROFILE = "/usr/share/pam-configs/rackwright-home"
"""A profile of pam-auth-update(8), which reads this folder alone."""


def sssd_conf(cluster: Cluster, node: Node, options: AccountsOptions, password: str | None) -> str:
    """sssd.conf; it holds the password of the login."""
    if password is not None and (not password.isprintable() or password != password.strip() or not password):
        assert options.bind is not None
        raise SecretsError(
            f"{options.bind.stored_as} is empty, begins or ends with a blank, or holds a line break or a control "
            "character: SSSD cannot read it from its file.",
            hint=f"give {options.bind.dn} another password, then: rackwright secrets put {options.bind.stored_as} "
            f"{cluster.path.name}",
        )
    return render(
        "accounts/sssd.conf.j2",
        options=options,
        domain=DOMAIN,
        users=local_users(cluster, node),
        groups=HIDDEN_GROUPS,
        ca=ca_path(node, options),
        password=password,
    )


def local_users(cluster: Cluster, node: Node) -> tuple[str, ...]:
    """Users of the node's own: one of the directory with such a name does not exist for it."""
    declared = node.offers(DeclaresUsers)
    names = [user.name for user in declared.accounts] if declared is not None else []
    return tuple(dict.fromkeys(("root", cluster.ssh.user, DRIFT_USER, *names)))


def ca_path(node: Node, options: AccountsOptions) -> str:
    """The file with the certificates of CAs that the servers' certificates are compared with."""
    if options.ca_file is not None:
        return CA_FILE
    site_ca = node.offers(IssuesCertificates)
    return node.family.trust_bundle if options.public_ca or site_ca is None else site_ca.trust_file


def ca_certificates(cluster: Cluster, options: AccountsOptions) -> list[x509.Certificate]:
    """Those of `ca_file`. OSError, or Refused where it holds something else."""
    assert options.ca_file is not None
    with (cluster.path.parent / options.ca_file).open("rb") as stream:
        return certificates_in(stream.read(_FILE_MAX + 1).decode("ascii", "replace"), _FILE_MAX)


def ca_text(cluster: Cluster, options: AccountsOptions) -> str | None:
    """The text of CA_FILE; None where it is not used."""
    if options.ca_file is None:
        return None
    return "".join(pem(one) for one in ca_certificates(cluster, options))


def sudoers(options: AccountsOptions) -> str | None:
    """Directory users who may become root; None: the file must not exist."""
    return render("accounts/sudoers.j2", groups=options.sudo_groups) if options.sudo_groups else None


def sshd_conf(cluster: Cluster, node: Node, options: AccountsOptions) -> str | None:
    """sshd's settings for users of the directory; None: the file must not exist."""
    if options.ssh_key_attribute is None and not options.sudo_groups:
        return None
    return render(
        "accounts/sshd.conf.j2",
        local=local_users(cluster, node),
        keys=options.ssh_key_attribute is not None,
        program=KEYS_PROGRAM,
        groups=options.sudo_groups,
    )


def keys_program(options: AccountsOptions) -> str | None:
    """KEYS_PROGRAM; None: sshd takes no keys from the directory."""
    return None if options.ssh_key_attribute is None else render("accounts/directory-keys.sh.j2")


def cache_read() -> str:
    """Shell that prints of which directory the cached entries are."""
    return f"cat {_MARK}"


def cache_want(options: AccountsOptions) -> str:
    """What it prints where they are of the declared one."""
    identity = json.dumps(options.identity, sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def cache_drop(options: AccountsOptions) -> str:
    """Shell that removes cached entries while SSSD is stopped; the mark comes last, so that it can be interrupted.

    Its unit allows 5 starts in 50 s (sssd.service.in of SSSD, read 2026-11-26); `reset-failed` sets that count to 0 (systemctl(1)),
    so that several applies in a row can start it again.
    """
    caches = f"{_DATABASES}/cache_{DOMAIN}.ldb {_DATABASES}/timestamps_{DOMAIN}.ldb"
    return (
        "systemctl stop sssd.service && { systemctl reset-failed sssd.service 2>/dev/null || :; } && "
        f"rm -f {caches} /var/lib/sss/mc/* && mkdir -p {_DATABASES} && "
        f"echo {cache_want(options)} >{_MARK}"
    )
