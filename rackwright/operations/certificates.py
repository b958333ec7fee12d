"""Certificates of the site's CA: issued for services, and trusted by nodes."""

from __future__ import annotations

import base64
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host, state

from rackwright.atomic_write import write_command
from rackwright.certificates.issuer import Issued, OnNode, described
from rackwright.data import Site, site_of
from rackwright.facts.certificates import Anchor, Anchors, CertificateAt
from rackwright.model.services import Certificate, IssuesCertificates, NeedsCertificates
from rackwright.plan.changes import Change, record

# Both files are complete and have their access before either takes its name; the chain, which units watch, comes
# last. Interrupted in between, the key does not fit, and the next run issues both anew. The sizes travel with the
# content, since the command is planned before there is any.
_WRITE = """\
set -eu
umask 077
key={key}; chain={chain}
newkey={newkey}; newchain={newchain}
read -r keysize keytext; read -r chainsize chaintext
[ "${{#keytext}}" = "$keysize" ] && [ "${{#chaintext}}" = "$chainsize" ] ||
  {{ echo "the certificate for $chain did not arrive whole" >&2; exit 1; }}
for old in "$newkey"* "$newchain"*; do [ -e "/proc/${{old##*-}}" ] || rm -f "$old"; done
trap 'rm -f "$newkey$$" "$newchain$$"' EXIT
trap 'exit 1' HUP INT PIPE TERM
printf %s "$keytext" | (set -C; base64 -d >"$newkey$$")
printf %s "$chaintext" | (set -C; base64 -d >"$newchain$$")
chown {owner} "$newkey$$"; chmod 640 "$newkey$$"
chown root:root "$newchain$$"; chmod 644 "$newchain$$"
sync "$newkey$$" "$newchain$$" 2>/dev/null || :
mv -fT "$newkey$$" "$key"
mv -fT "$newchain$$" "$chain"
! command -v restorecon >/dev/null || restorecon "$key" "$chain"
"""


def issue_certificates(options: NeedsCertificates) -> None:
    """Every certificate of a role on this node; its users, groups and folders exist."""
    site = site_of()
    for one in host.loop(options.certificates(site.cluster, site.node)):  # type: ignore[no-untyped-call]
        issued(name=f"Issue the certificate {one.name}", certificate=one)


@operation()
def issued(certificate: Certificate) -> Generator[StringCommand, None, None]:
    """A certificate that the site's CA signed, valid for its names, renewed before it expires, with its key.

    A new key is made with each; it is sent to the node and kept nowhere else.
    """
    site = site_of()
    ca = _ca(site)
    wanted, access = certificate, f"640 {certificate.owner}:{certificate.group}"
    if site.offline:
        record(Change("certificate", wanted.chain, None, _after(wanted)))
        yield StringCommand(_script(wanted))
        return
    issuer = ca.issuer(site.cluster, site.secret(ca.key_secret).reveal())
    now = datetime.now(UTC)
    found: OnNode = host.get_fact(
        CertificateAt, chain=wanted.chain, key=wanted.key, renew_before_days=issuer.renew_before_days
    )
    reason = issuer.reason(found, wanted.names, now)
    if reason is None:
        if (found.key, found.chain) == (access, "644 root:root"):
            host.noop(f"{wanted.chain} is as declared")
            return
        before = f"key {found.key}, certificate {found.chain}"
        after = f"key {access}, certificate 644 root:root"
        record(Change("certificate", wanted.chain, before, after), of_access=True)
        key, chain = quote(wanted.key), quote(wanted.chain)
        owner = quote(f"{wanted.owner}:{wanted.group}")
        yield StringCommand(
            f"chown {owner} {key} && chmod 640 {key} && chown root:root {chain} && chmod 644 {chain}"
        )
        return
    record(Change("certificate", wanted.chain, described(found), _after(wanted, issuer.days), because=reason))
    # a plan makes no key
    stdin = _stdin(issuer.issue(wanted.names, now)) if state.is_executing else ""
    yield StringCommand(_script(wanted), _stdin=stdin)


def _after(wanted: Certificate, days: int | None = None) -> str:
    until = "" if days is None else f"{days} days, "
    return f"{until}names {', '.join(sorted(wanted.names))}"


def _ca(site: Site) -> IssuesCertificates:
    ca = site.node.offers(IssuesCertificates)
    if ca is None:
        raise OperationError(f"no role issues certificates for {site.node.name}")
    return ca


def _script(wanted: Certificate) -> str:
    new = {
        name: quote(str(PurePosixPath(path).with_name(f".{PurePosixPath(path).name}.rackwright-")))
        for name, path in (("newkey", wanted.key), ("newchain", wanted.chain))
    }
    return _WRITE.format(
        key=quote(wanted.key),
        chain=quote(wanted.chain),
        owner=quote(f"{wanted.owner}:{wanted.group}"),
        **new,
    )


def _stdin(issued: Issued) -> str:
    lines = []
    for text in (issued.key, issued.chain):
        encoded = base64.b64encode(text.encode()).decode()
        lines.append(f"{len(encoded)} {encoded}\n")
    return "".join(lines)


@operation()
def trusted(certificates: Mapping[str, str], prefix: str) -> Generator[StringCommand, None, None]:
    """All programs of the node trust these CAs, and no other whose file name begins with the prefix.

    + certificates: PEM text by file name
    """
    site = site_of()
    family = site.node.family
    there: dict[str, Anchor] = host.get_fact(
        Anchors, folder=family.trust_folder, bundle=family.trust_bundle, prefix=prefix
    )
    wrong = [name for name, text in certificates.items() if not _is_trusted(there.get(name), text)]
    strange = [name for name in there if name not in certificates]
    if not wrong and not strange:
        host.noop(f"{len(certificates)} certificates are trusted")
        return
    for name in wrong:
        before = None if name not in there else _anchor_state(there[name], certificates[name])
        record(
            Change("certificate", f"{family.trust_folder}/{name}", before, "trusted by the node's programs")
        )
    record(
        *(
            Change("certificate", f"{family.trust_folder}/{name}", "trusted, not declared", None)
            for name in strange
        )
    )
    yield StringCommand(f"mkdir -p {quote(family.trust_folder)}")
    for name in wrong:
        script, stdin = write_command(
            f"{family.trust_folder}/{name}",
            certificates[name].encode(),
            mode="644",
            owner="root",
            group="root",
        )
        yield StringCommand(script, _stdin=stdin)
    update = family.trust_update
    if strange:
        gone = " ".join(quote(f"{family.trust_folder}/{name}") for name in strange)
        update = f"rm -rf -- {gone} && {update}"
    yield StringCommand(update)


def _is_trusted(there: Anchor | None, text: str) -> bool:
    return there is not None and there.in_bundle and there.holds(text)


def _anchor_state(there: Anchor, text: str) -> str:
    return "not in the bundle that programs read" if there.holds(text) else "another certificate, or mode"
