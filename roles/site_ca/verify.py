"""Checks of the site_ca role: its trust, and every certificate of its services."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509

from rackwright.boundary import Refused, last_line
from rackwright.certificates.issuer import Issuer, OnNode
from rackwright.certificates.read import (
    certificates_in,
    day,
    fingerprint,
    is_signed_by,
    key_digest,
    names_of,
)
from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.files import has_access, holds_secret_text
from rackwright.facts.certificates import Anchors, CertificateAt
from rackwright.model.cluster import Cluster, Node
from rackwright.model.services import Certificate, NeedsCertificates
from rackwright.roles.site_ca import texts
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.secrets.store import store_of

_CA_WARNS = timedelta(days=365)
"""A new CA has to reach every node and every client outside the cluster first."""
_SERVED = "timeout 20 openssl s_client -connect %s -servername %s -CAfile %s </dev/null 2>&1 | head -c 65536"


@dataclass(frozen=True)
class _Found:
    """A declared certificate and what the node has of it."""

    declared: Certificate
    state: OnNode

    def read(self) -> x509.Certificate:
        """It; FAIL where it is missing, UNKNOWN where it cannot be read."""
        if self.state.chain is None:
            fail(f"{self.declared.chain} is missing")
        try:
            return self.state.certificate()
        except Refused as error:
            raise Undetermined(f"{self.declared.chain} cannot be read: {error}") from None


def now() -> datetime:
    """The control node's time, which also decides when a certificate is renewed."""
    return datetime.now(UTC)


def declared(cluster: Cluster, node: Node) -> list[Certificate]:
    """Certificates of all roles on a node."""
    needing = (options for options in node.options.values() if isinstance(options, NeedsCertificates))
    return [one for options in needing for one in options.certificates(cluster, node)]


def _issuer(context: CheckContext[SiteCaOptions]) -> Issuer:
    options = context.options
    return options.even_expired(context.cluster, store_of(context.cluster).get(options.key_secret).reveal())


def _each(context: CheckContext[SiteCaOptions], claim: Callable[[_Found], str]) -> str:
    """A claim of every certificate of the node; FAIL of any comes before UNKNOWN, and that before WARN."""
    evidence: list[str] = []
    doubts: list[Exception] = []
    for one in declared(context.cluster, context.node):
        try:
            state = context.fact(CertificateAt, one.chain, one.key, context.options.renew_before_days)
            evidence.append(f"{one.name}: {claim(_Found(one, state))}")
        except (Undetermined, Warned) as doubt:
            doubts.append(doubt)
    if doubts:
        raise next((doubt for doubt in doubts if isinstance(doubt, Undetermined)), doubts[0])
    return "; ".join(evidence) or "no role on this node needs a certificate"


def _valid(context: CheckContext[SiteCaOptions]) -> str:
    issuer = _issuer(context)

    def claim(found: _Found) -> str:
        there, path = found.read(), found.declared.chain
        since, until = there.not_valid_before_utc, there.not_valid_after_utc
        if until <= now():
            fail(f"{path} expired on {day(until)}")
        if since > now() + timedelta(hours=1):
            fail(f"{path} is not valid before {day(since)}")
        if issuer.expiry(there, now()) is not None:
            raise Warned(f"{path} expires on {day(until)}: the next apply renews it")
        return f"until {day(until)}"

    return _each(context, claim)


def _names(context: CheckContext[SiteCaOptions]) -> str:
    def claim(found: _Found) -> str:
        names = names_of(found.read())
        wanted = frozenset(found.declared.names)
        if names != wanted:
            fail(
                f"{found.declared.chain} is for {', '.join(sorted(names)) or 'no name'}, not for "
                f"{', '.join(sorted(wanted))}"
            )
        return ", ".join(sorted(names))

    return _each(context, claim)


def _signed(context: CheckContext[SiteCaOptions]) -> str:
    issuer = _issuer(context)

    def claim(found: _Found) -> str:
        if not is_signed_by(found.read(), issuer.certificate):
            fail(f"{found.declared.chain} is not signed by the site's CA")
        return "signed by the site's CA"

    return _each(context, claim)


def _keys(context: CheckContext[SiteCaOptions]) -> str:
    def claim(found: _Found) -> str:
        one, state = found.declared, found.state
        if state.key is None:
            fail(f"{one.key} is missing")
        access = f"640 {one.owner}:{one.group}"
        if state.key != access:
            fail(f"{one.key} is {state.key}, not {access}")
        there = found.read()
        if state.key_sha256 is None:
            raise Undetermined(f"{one.key} cannot be read with openssl")
        if state.key_sha256 != key_digest(there):
            fail(f"{one.key} is not the key of {one.chain}")
        return f"{one.key} is {state.key}"

    return _each(context, claim)


def _served(context: CheckContext[SiteCaOptions]) -> str:
    def claim(found: _Found) -> str:
        there = found.read()
        for where in found.declared.serves:
            _serves(context, found.declared, where, fingerprint(there))
        return f"served at {', '.join(found.declared.serves) or 'no address'}"

    return _each(context, claim)


def _serves(context: CheckContext[SiteCaOptions], one: Certificate, where: str, wanted: str) -> None:
    """The certificate that a server sends is the one on the disk, and openssl trusts it with the CA's file."""
    if context.host.run("sh -c %s", "command -v openssl").rc != 0:
        raise Undetermined("openssl is missing")
    result = context.host.run(_SERVED, where, one.names[0], context.options.trust_file)
    printed = str(result.stdout)
    if "-----BEGIN CERTIFICATE-----" not in printed:
        fail(f"{where} presents no certificate: {last_line(printed, result.stderr)}")
    body = printed[printed.index("-----BEGIN CERTIFICATE-----") :]
    end = "-----END CERTIFICATE-----"
    try:
        (sent,) = certificates_in(body[: body.index(end) + len(end)])
    except ValueError as error:  # Refused too
        raise Undetermined(f"{where} presents a certificate that cannot be parsed: {error}") from None
    if fingerprint(sent) != wanted:
        fail(
            f"{where} serves a certificate until {day(sent.not_valid_after_utc)} that is not {one.chain}: its service "
            "has not read the new one"
        )
    if "Verify return code: 0 (ok)" not in printed:
        fail(f"{where} presents a certificate that this node does not trust")


def _trusts(context: CheckContext[SiteCaOptions]) -> str:
    options, issuer, family = context.options, _issuer(context), context.node.family
    holds_secret_text(context, options.trust_file, issuer.trusted)
    has_access(context, options.trust_file, "644", "root", "root")
    wanted = texts.anchors_of(issuer, options.extra(context.cluster))
    there = context.fact(Anchors, family.trust_folder, family.trust_bundle, texts.PREFIX)
    for name, text in wanted.items():
        if name not in there:
            fail(f"{family.trust_folder}/{name} is missing")
        if not there[name].holds(text):
            fail(
                f"{family.trust_folder}/{name} is a different certificate, or other users than root can write it"
            )
        if not there[name].in_bundle:
            fail(f"{family.trust_bundle} lacks {name}: programs do not trust it")
    if strange := sorted(set(there) - set(wanted)):
        fail(f"{family.trust_folder}/{strange[0]} is trusted but not declared")
    result = context.host.run("openssl verify -partial_chain %s", options.trust_file)
    if result.rc in (126, 127):
        raise Undetermined("openssl is missing")
    if result.rc != 0:
        fail(f"programs of this node do not trust the site's CA: {last_line(result.stdout, result.stderr)}")
    return f"{len(wanted)} certificates in {family.trust_bundle}"


def _ca_lives(context: CheckContext[SiteCaOptions]) -> str:
    until = _issuer(context).certificate.not_valid_after_utc
    if until <= now():
        fail(f"the site's CA expired on {day(until)}")
    if until <= now() + _CA_WARNS:
        extend = "raise `ca_days`" if context.options.authority == "own" else "ask for a new certificate"
        raise Warned(f"the site's CA expires on {day(until)}: {extend}")
    return f"until {day(until)}"


def _any(node: Node, options: SiteCaOptions) -> bool:
    return any(isinstance(one, NeedsCertificates) for one in node.options.values())


CHECKS = (
    Check("programs on the node trust the site CA", _trusts),
    Check("the site CA is valid for at least another year", _ca_lives, scope="cluster"),
    Check("certificates are valid and not due for renewal", _valid, applies=_any),
    Check("certificates have the declared names", _names, applies=_any),
    Check("certificates are signed by the site CA", _signed, applies=_any),
    Check("keys match their certificates and only their services can read them", _keys, applies=_any),
    Check("services present these certificates", _served, applies=_any, live=True, settle_seconds=15),
)
