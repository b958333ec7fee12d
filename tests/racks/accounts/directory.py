"""A directory for the rack: OpenLDAP's slapd on the head, with a certificate of the site's CA and a few people."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from rackwright.certificates.read import pem
from rackwright.model.services import IssuesCertificates
from rackwright.secrets.store import store_of
from tests.racks.site import Site

BASE = "dc=lab,dc=test"
WINDOWS = "dc=ad,dc=test"
"""A part with what SSSD reads of Active Directory's schema: an imitation, not a domain controller."""
READER = f"cn=reader,{BASE}"
READER_PASSWORD = "reader's pass-word: %1 #2; 3=4"
"""With what means something in the files of other programs."""
SERVER = "head1.lab.test"
PORTS = (389, 636)
_TLS = "/etc/ldap/tls"
_INSTALL = """\
export DEBIAN_FRONTEND=noninteractive
echo 'slapd slapd/no_configuration boolean true' | debconf-set-selections
apt-get install -y -qq --no-install-recommends slapd ldap-utils >/dev/null
sed -i 's|^SLAPD_CONF=.*|SLAPD_CONF=/etc/ldap/slapd.conf|; s|^SLAPD_SERVICES=.*|SLAPD_SERVICES="ldap:/// ldaps:/// ldapi:///"|' \
    /etc/default/slapd
install -d -m 750 -o openldap -g openldap /etc/ldap/tls
"""
# the attribute and class that OpenSSH's users have long had for keys in a directory, with their registered numbers
_CONF = f"""\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
include /etc/ldap/schema/nis.schema
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey'
  EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY MAY ( sshPublicKey $ uid ) )
# RFC 2307bis as far as it takes: a posixGroup that names its members by DN
objectclass ( 1.3.6.1.4.1.4203.666.98.1 NAME 'memberGroup' SUP posixGroup STRUCTURAL MAY member )
# what SSSD asks Active Directory for, under the names and numbers it has there (msuser.schema has no matching rules)
attributetype ( 1.2.840.113556.1.4.221 NAME 'sAMAccountName'
  EQUALITY caseIgnoreMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.146 NAME 'objectSid'
  EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.98 NAME 'primaryGroupID'
  EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.8 NAME 'userAccountControl'
  EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.750 NAME 'groupType'
  EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.867 NAME 'altSecurityIdentities'
  EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
objectclass ( 1.2.840.113556.1.5.9 NAME 'user' SUP inetOrgPerson STRUCTURAL
  MAY ( sAMAccountName $ objectSid $ primaryGroupID $ userAccountControl $ altSecurityIdentities ) )
objectclass ( 1.2.840.113556.1.5.8 NAME 'group' SUP top STRUCTURAL
  MUST cn MAY ( sAMAccountName $ objectSid $ groupType $ member ) )
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile {_TLS}/server.crt
TLSCertificateKeyFile {_TLS}/server.key
security tls=1
disallow bind_anon
database mdb
maxsize 67108864
suffix "{BASE}"
rootdn "cn=admin,{BASE}"
directory /var/lib/ldap
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{READER}" read by * none
database mdb
maxsize 67108864
suffix "{WINDOWS}"
directory /var/lib/ldap-windows
access to * by dn.exact="{READER}" read by * none
"""


@dataclass(frozen=True)
class Person:
    """A user of the directory, whose group has the same name and number."""

    name: str
    uid: int
    key: str
    """A line of authorized_keys."""


def install(
    site: Site, people: tuple[Person, ...], groups: Mapping[str, tuple[int, tuple[str, ...]]]
) -> None:
    """slapd with these people and groups (gid and members), which answers over TLS alone, to its reader alone."""
    site.on("head1", _INSTALL)
    put(site, "/etc/ldap/slapd.conf", _CONF)
    serve_certificate(site, (SERVER, "head1"))
    put(site, "/root/people.ldif", _ldif(people, groups))
    put(site, "/root/windows.ldif", _windows(people[0].key))
    site.on(
        "head1",
        "systemctl stop slapd; rm -rf /var/lib/ldap/* /var/lib/ldap-windows; mkdir /var/lib/ldap-windows\n"
        f"slapadd -q -f /etc/ldap/slapd.conf -b {BASE} -l /root/people.ldif\n"
        f"slapadd -q -f /etc/ldap/slapd.conf -b {WINDOWS} -l /root/windows.ldif\n"
        "chown -R openldap:openldap /var/lib/ldap /var/lib/ldap-windows && systemctl enable --now slapd",
    )


def serve_certificate(
    site: Site, names: tuple[str, ...], *, ca: str | None = None, days: int = 30, restart: bool = False
) -> None:
    """Give slapd a certificate for these names, of the site's CA or of another one whose secret is `ca`."""
    with site.here():
        cluster = site.cluster
        options = cluster.primary.offers(IssuesCertificates)
        assert options is not None
        issuer = options.issuer(cluster, ca or store_of(cluster).get(options.key_secret).reveal())
    key = ec.generate_private_key(ec.SECP256R1())
    until = datetime.now(UTC) + timedelta(days=days)
    chain = pem(issuer.sign(key, names, until - timedelta(days=60), until))
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    put(site, f"{_TLS}/server.key", private.decode())
    put(site, f"{_TLS}/server.crt", chain)
    site.on("head1", f"chown openldap:openldap {_TLS}/*; chmod 640 {_TLS}/*")
    if restart:
        site.on("head1", "systemctl reset-failed slapd || :; systemctl restart slapd")


def change(site: Site, ldif: str) -> None:
    """Change entries while slapd is stopped for a moment: its database takes changes from its owner without a login."""
    put(site, "/root/change.ldif", ldif)
    site.on(
        "head1",
        "systemctl stop slapd; slapmodify -q -f /etc/ldap/slapd.conf -l /root/change.ldif\n"
        "chown -R openldap:openldap /var/lib/ldap /var/lib/ldap-windows; systemctl start slapd",
    )


@contextmanager
def stopped(site: Site) -> Iterator[None]:
    """The directory refuses connections."""
    site.on("head1", "systemctl stop slapd")
    try:
        yield
    finally:
        site.on("head1", "systemctl start slapd")


@contextmanager
def hanging(site: Site) -> Iterator[None]:
    """The directory takes connections and answers nothing: as a server whose disk has died."""
    site.on("head1", "systemctl kill -s STOP slapd")
    try:
        yield
    finally:
        site.on("head1", "systemctl kill -s CONT slapd")


def put(site: Site, path: str, text: str) -> None:
    """Write a file on the head."""
    site.on("head1", f"base64 -d <<<{base64.b64encode(text.encode()).decode()} >{path}")


def _ldif(people: tuple[Person, ...], groups: Mapping[str, tuple[int, tuple[str, ...]]]) -> str:
    entries = [
        f"dn: {BASE}\nobjectClass: domain\ndc: lab",
        f"dn: ou=people,{BASE}\nobjectClass: organizationalUnit\nou: people",
        f"dn: ou=groups,{BASE}\nobjectClass: organizationalUnit\nou: groups",
        (
            f"dn: {READER}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: reader\n"
            f"userPassword:: {base64.b64encode(READER_PASSWORD.encode()).decode()}"
        ),
    ]
    for one in people:
        entries.append(
            f"dn: uid={one.name},ou=people,{BASE}\nobjectClass: inetOrgPerson\nobjectClass: posixAccount\n"
            f"objectClass: ldapPublicKey\nuid: {one.name}\ncn: {one.name}\nsn: {one.name}\nuidNumber: {one.uid}\n"
            f"gidNumber: {one.uid}\nhomeDirectory: /home/{one.name}\nloginShell: /bin/bash\nsshPublicKey: {one.key}"
        )
        entries.append(_group(one.name, one.uid, ()))
    entries += [_group(name, gid, members) for name, (gid, members) in groups.items()]
    entries.append(f"{_group('labs', 21003, ())}\nmember: cn=research,ou=groups,{BASE}")
    return "\n\n".join(entries) + "\n"


def _group(name: str, gid: int, members: tuple[str, ...]) -> str:
    """With its members in both ways."""
    lines = [
        f"dn: cn={name},ou=groups,{BASE}",
        *("objectClass: posixGroup", "objectClass: memberGroup", f"cn: {name}", f"gidNumber: {gid}"),
    ]
    by_dn = (f"member: uid={member},ou=people,{BASE}" for member in members)
    return "\n".join([*lines, *(f"memberUid: {member}" for member in members), *by_dn])


def _windows(key: str) -> str:
    """Frank and Grace, whose account is disabled, both in the group hpc; `Domain Users` is their primary group."""
    entries = [
        f"dn: {WINDOWS}\nobjectClass: domain\ndc: ad",
        f"dn: ou=Staff Members,{WINDOWS}\nobjectClass: organizationalUnit\nou: Staff Members",
    ]
    for name, rid, control in (("Frank", 1105, 512), ("Grace", 1106, 514)):
        entries.append(
            f"dn: cn={name} Miller,ou=Staff Members,{WINDOWS}\nobjectClass: user\ncn: {name} Miller\nsn: Miller\n"
            f"sAMAccountName: {name}\nobjectSid:: {_sid(rid)}\nprimaryGroupID: 513\nuserAccountControl: {control}\n"
            f"altSecurityIdentities: {key}"
        )
    members = "\n".join(f"member: cn={name} Miller,ou=Staff Members,{WINDOWS}" for name in ("Frank", "Grace"))
    for name, rid, more in (("Domain Users", 513, ""), ("hpc", 1110, f"\n{members}")):
        entries.append(
            f"dn: cn={name},{WINDOWS}\nobjectClass: group\ncn: {name}\nsAMAccountName: {name}\n"
            f"objectSid:: {_sid(rid)}\ngroupType: -2147483646{more}"
        )
    return "\n\n".join(entries) + "\n"


def _sid(rid: int) -> str:
    """S-1-5-21-111111-222222-333333-RID as it is stored: revision, count, authority, then numbers of 32 bits, little end first."""
    parts = (21, 111_111, 222_222, 333_333, rid)
    raw = (
        bytes([1, len(parts)]) + (5).to_bytes(6, "big") + b"".join(one.to_bytes(4, "little") for one in parts)
    )
    return base64.b64encode(raw).decode()
