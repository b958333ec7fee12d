"""What the options of roles that serve metrics share: addresses, certificates, users, the unit's command line."""

from __future__ import annotations

import shlex
from typing import ClassVar

import bcrypt
import pytest

from rackwright.exporters import ExporterOptions, drop_in, web_config
from rackwright.model.cluster import Node
from rackwright.model.monitoring import Scrape
from rackwright.model.services import Certificate, Listener
from rackwright.roles.prometheus.options import PrometheusOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.unit.roles.sites import site, worker


class Snmp(ExporterOptions):
    """A role of this test, with the names of a real program; it has nothing to read on gpu2."""

    role: ClassVar[str] = "some_exporter"
    software: ClassVar[str] = "snmp_exporter"
    job: ClassVar[str] = "some"
    port: int = 9999

    def serves(self, node: Node) -> bool:
        return node.name != "gpu2"

    def service(self, node: Node) -> tuple[str, ...]:
        return ("NoNewPrivileges=yes", "PrivateTmp=yes")


class Short(Snmp):
    """A program that calls its flags otherwise."""

    address_flag: ClassVar[str] = "--address"
    users_flag: ClassVar[str] = "--users"

    def service(self, node: Node) -> tuple[str, ...]:
        return ()


def cluster(options, *, ca=True, **more):
    return site({"some_exporter": options, **({"site_ca": SiteCaOptions()} if ca else {}), **more})


SITE = cluster(Snmp())
NODE = worker(SITE)
OPTIONS = Snmp()


def test_the_whole_unit():
    assert drop_in(
        SITE, NODE, Snmp(extra_arguments=("--log.level=debug",)), ("--config.file=/etc/x.yml",)
    ) == (
        "# written by rackwright\n"
        "[Unit]\n"
        "Wants=network-online.target\n"
        "After=network-online.target\n"
        "StartLimitIntervalSec=0\n"
        "\n"
        "[Service]\n"
        "ExecStart=\n"
        "ExecStart=/usr/bin/prometheus-snmp-exporter \\\n"
        '  "--web.listen-address=10.9.0.11:9999" \\\n'
        '  "--web.config.file=/etc/rackwright-exporters/some_exporter/web.yml" \\\n'
        '  "--config.file=/etc/x.yml" \\\n'
        '  "--log.level=debug"\n'
        "Restart=always\n"
        "RestartSec=5\n"
        "NoNewPrivileges=yes\n"
        "PrivateTmp=yes\n"
    )


def test_a_program_s_own_flags():
    text = drop_in(cluster(Short()), NODE, Short(port=1234), ())
    assert (
        '  "--address=10.9.0.11:1234" \\\n  "--users=/etc/rackwright-exporters/some_exporter/web.yml"\n'
        in text
    )
    assert text.endswith("Restart=always\nRestartSec=5\n")


@pytest.mark.parametrize("argument", ["^(a|b)$", 'say "so"', "50%", "a\\.b", "${HOME}", "it's; x", "tab\\t"])
def test_no_argument_means_anything_to_systemd(argument):
    """systemd.service(5), "Command lines": quotes, backslashes, % and $; a shell's rules of quotes are the same."""
    line = next(line for line in drop_in(SITE, NODE, OPTIONS, (argument,)).splitlines() if "web.yml" not in line
                and line.startswith('  "') and "listen" not in line)  # fmt: skip
    assert shlex.split(line.strip())[0].replace("$$", "$").replace("%%", "%") == argument
    assert "%" not in line.replace("%%", "")
    assert "$" not in line.replace("$$", "")


def test_who_may_read():
    text = web_config(SITE, NODE, OPTIONS, {"metrics_password": "open sesame"}.__getitem__)
    head, _, stored = text.partition("  prometheus: ")
    assert head == (
        "# written by rackwright\n"
        "tls_server_config:\n"
        "  cert_file: /etc/rackwright-exporters/some_exporter/tls.crt\n"
        "  key_file: /etc/rackwright-exporters/some_exporter/tls.key\n"
        "basic_auth_users:\n"
    )
    assert bcrypt.checkpw(b"open sesame", stored.strip().encode())
    assert text == web_config(SITE, NODE, OPTIONS, {"metrics_password": "open sesame"}.__getitem__)


def test_without_a_ca_there_is_no_certificate_and_still_a_password():
    bare = cluster(Snmp(), ca=False)
    text = web_config(bare, worker(bare), OPTIONS, {"metrics_password": "x"}.__getitem__)
    assert text.startswith("# written by rackwright\nbasic_auth_users:\n  prometheus: $2b$08$")
    assert OPTIONS.certificates(bare, worker(bare)) == ()
    assert OPTIONS.url(bare, worker(bare)) == "http://10.9.0.11:9999"


def test_what_it_declares():
    folder = "/etc/rackwright-exporters/some_exporter"
    assert OPTIONS.url(SITE, NODE) == "https://10.9.0.11:9999"
    assert OPTIONS.scrapes(SITE, NODE) == (Scrape("some", 9999),)
    assert OPTIONS.listeners(NODE) == (Listener("prometheus-snmp", (9999, 9999)),)  # as the kernel cuts it
    assert OPTIONS.unit_files(NODE) == (
        "/etc/systemd/system/prometheus-snmp-exporter.service.d/90-rackwright.conf",
    )
    assert OPTIONS.certificates(SITE, NODE) == (
        Certificate(
            name="some_exporter",
            key=f"{folder}/tls.key",
            chain=f"{folder}/tls.crt",
            names=("gpu1.test.example", "gpu1", "10.9.0.11"),
            group="prometheus",
            serves=("10.9.0.11:9999",),
        ),
    )


def test_where_it_has_nothing_to_read_it_declares_nothing():
    node = SITE.by_name["gpu2"]
    assert OPTIONS.scrapes(SITE, node) == ()
    assert OPTIONS.listeners(node) == ()
    assert OPTIONS.unit_files(node) == ()
    assert OPTIONS.certificates(SITE, node) == ()


def test_metrics_in_the_clear_are_declared_or_refused():
    bare = cluster(Snmp(), ca=False)
    assert list(OPTIONS.problems(bare)) == [
        (
            "",
            "head1 has no certificate for snmp_exporter: metrics and their password would cross the network unencrypted.",
            "add the role `site_ca: {}`, or declare it: `roles.prometheus.plain_http: true`",
        )
    ]
    assert (
        list(OPTIONS.problems(cluster(Snmp(), ca=False, prometheus=PrometheusOptions(plain_http=True)))) == []
    )
    assert list(OPTIONS.problems(SITE)) == []


def test_a_family_without_the_program(monkeypatch):
    names = OPTIONS.names(NODE)
    monkeypatch.setattr(ExporterOptions, "names", lambda self, node: type(names)(()))
    assert list(OPTIONS.problems(SITE)) == [
        (
            "",
            "head1 should run snmp_exporter, but debian-13 has no package for it.",
            "remove the role some_exporter from this node",
        )
    ]
