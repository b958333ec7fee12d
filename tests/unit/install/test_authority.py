"""The CA that agents trust, and the server's certificate."""

from __future__ import annotations

import stat
import threading
from datetime import UTC, datetime
from ipaddress import IPv4Address

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from rackwright.install.authority import credentials
from rackwright.install.record import folder

ADDRESSES = frozenset((IPv4Address("10.1.0.5"), IPv4Address("10.20.0.5")))


def certificates(made):
    return x509.load_pem_x509_certificate(made.ca), x509.load_pem_x509_certificate(made.chain.read_bytes())


def test_the_ca_is_made_once_and_certificates_are_new():
    first = credentials("test", ADDRESSES)
    ca, server = certificates(first)
    again = credentials("test", ADDRESSES)
    assert again.ca == first.ca
    other = certificates(again)[1]
    assert other.serial_number != server.serial_number
    assert other.public_key() != server.public_key()
    other.verify_directly_issued_by(ca)


def test_a_certificate_is_for_both_addresses_and_no_other():
    _, server = certificates(credentials("test", ADDRESSES))
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert sorted(names.get_values_for_type(x509.IPAddress)) == sorted(ADDRESSES)
    assert len(names) == 2


def test_it_is_valid_for_a_clock_that_is_years_off():
    """1970 and 2000: a battery that is empty."""
    ca, server = certificates(credentials("test", ADDRESSES))
    for year in (1970, 2000, 2015, 2026, 2035):
        when = datetime(year, 1, 2, tzinfo=UTC)
        builder = PolicyBuilder().store(Store([ca])).time(when)
        for address in ADDRESSES:
            assert builder.build_server_verifier(x509.IPAddress(address)).verify(server, [])


def test_no_file_can_be_read_by_others():
    made = credentials("test", ADDRESSES)
    files = [one for one in folder("test").iterdir() if one.suffix in (".pem", ".key")]
    assert {one.name for one in files} == {"ca.pem", "ca.key", made.chain.name}
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    assert b"PRIVATE KEY" not in made.ca


def test_a_run_that_was_killed_while_it_made_the_ca():
    """The key is written first: without the certificate there is no CA yet."""
    credentials("test", ADDRESSES)
    (folder("test") / "ca.pem").unlink()
    ca, server = certificates(credentials("test", ADDRESSES))
    server.verify_directly_issued_by(ca)


def test_two_first_runs_make_one_ca():
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(credentials("test", ADDRESSES).ca)) for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert len(made) == 4
    assert len(set(made)) == 1
