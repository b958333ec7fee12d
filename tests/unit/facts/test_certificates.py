"""What a node's shell says of certificates, and how it is read; the shell runs here, on files of the test."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from rackwright.certificates.issuer import OnNode
from rackwright.certificates.read import key_digest
from rackwright.facts.certificates import Anchors, CertificateAt
from tests.unit.certificates.authorities import NAMES, issuer

CA = issuer()
ISSUED = CA.issue(NAMES, datetime.now(UTC))


def said(command: object, **environment: str) -> list[str]:
    done = subprocess.run(
        ["sh", "-c", str(command)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment or None,
    )
    return done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "it's").mkdir()
    return tmp_path / "it's"


def ask(folder, days=30, **environment):
    lines = said(CertificateAt().command(f"{folder}/c.crt", f"{folder}/k.key", days), **environment)
    return lines, CertificateAt().process(lines)


def write(folder, issued=ISSUED):
    (folder / "c.crt").write_text(issued.chain)
    (folder / "k.key").write_text(issued.key)
    (folder / "c.crt").chmod(0o644)
    (folder / "k.key").chmod(0o640)


def test_a_certificate_and_its_key(folder):
    write(folder)
    lines, found = ask(folder)
    assert (found.key or "").startswith("640 ")
    assert (found.chain or "").startswith("644 ")
    assert found.pem.strip() == ISSUED.chain.strip()
    assert found.key_sha256 == key_digest(found.certificate())
    assert CA.reason(found, NAMES, datetime.now(UTC)) is None
    assert not any(line and line in ISSUED.key for line in lines if "-----" not in line)


def test_nothing_there(folder):
    lines, found = ask(folder)
    assert (lines, found) == (["chain absent", "key absent"], OnNode())
    assert CertificateAt().process([]) == OnNode()


def test_links_count_as_absent(folder):
    """A planted link would have its target's owner and mode changed."""
    write(folder)
    (folder / "k.key").rename(folder / "other")
    (folder / "k.key").symlink_to("other")
    assert ask(folder)[1].key is None


def test_a_key_that_is_none(folder):
    write(folder)
    (folder / "k.key").write_text("hello")
    assert ask(folder)[1].key_sha256 is None


def test_without_openssl_the_key_is_not_known(folder, tmp_path):
    write(folder)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("stat", "head", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    lines, found = ask(folder, PATH=str(programs))
    assert "openssl is missing" in lines
    assert found.key_sha256 is None
    assert found.pem.strip() == ISSUED.chain.strip()


@pytest.mark.parametrize(
    ("age", "left"),
    [(0, "left 30"), (59, "left 30"), (60.01, "left 29"), (70.5, "left 19"), (90.5, "left 0")],
)
def test_the_answer_changes_when_the_renewal_is_due(folder, age, left):
    """The quick check compares the digests of answers: time has to be in them, and only once it matters."""
    write(folder, CA.issue(NAMES, datetime.now(UTC) - timedelta(days=age)))
    assert left in ask(folder)[0]


@pytest.mark.parametrize("lines", [["hello"], ["left 3", "chain absent"], ["key absent"]])
def test_an_unreadable_answer(lines):
    with pytest.raises(ValueError, match="unreadable answer"):
        CertificateAt().process(lines)


def test_a_large_file_is_cut_and_then_refused(folder):
    write(folder)
    (folder / "c.crt").write_text(ISSUED.chain * 40)
    found = ask(folder)[1]
    assert len(found.pem) < 17000
    assert CA.reason(found, NAMES, datetime.now(UTC)).startswith("it is unreadable")


def anchors(folder, bundle):
    return Anchors().process(said(Anchors().command(str(folder), str(bundle), "rackwright-")))


def test_anchors(folder, tmp_path):
    bundle = tmp_path / "bundle"
    assert anchors(tmp_path / "none", bundle) == {}
    (folder / "rackwright-site-ca.crt").write_text(CA.trusted)
    (folder / "site.crt").write_text("the site's own")
    (found,) = anchors(folder, bundle).items()
    assert found[0] == "rackwright-site-ca.crt"
    assert not found[1].in_bundle
    body = "".join(line for line in CA.trusted.splitlines() if "-----" not in line)
    bundle.write_text(f"# other\n-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    assert anchors(folder, bundle)["rackwright-site-ca.crt"].in_bundle
    (folder / "rackwright-site-ca.crt").write_text("")
    assert not anchors(folder, bundle)["rackwright-site-ca.crt"].in_bundle


@pytest.mark.parametrize("lines", [["hello"], ["folder", "anchor x"]])
def test_an_unreadable_answer_about_anchors(lines):
    with pytest.raises(ValueError, match="unreadable"):
        Anchors().process(lines)
