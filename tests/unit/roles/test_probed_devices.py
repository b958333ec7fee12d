"""BMCs and devices that an exporter asks for Prometheus: whether they answer, as Prometheus on the same node has it."""

from __future__ import annotations

import json

import pytest

from rackwright.roles.ipmi_exporter import verify as ipmi
from rackwright.roles.ipmi_exporter.options import IpmiExporterOptions
from rackwright.roles.prometheus.options import PrometheusOptions
from rackwright.roles.snmp_exporter import verify as snmp
from rackwright.roles.snmp_exporter.options import SnmpExporterOptions
from tests.unit.roles.fake_host import FakeHost, Reply, claimed, judged
from tests.unit.roles.sites import head, site

BMCS, DEVICES = "every declared BMC answers", "every declared device answers"
IPMI = IpmiExporterOptions.model_validate({"bmcs": {"gpu[1-2]": "10.20.0.11"}})
SNMP = SnmpExporterOptions.model_validate(
    {
        "auths": {"site": {"version": 2, "community": "snmp_community"}},
        "devices": {
            "leaf1": {"address": "10.9.0.201", "auth": "site"},
            "ups1": {"address": "10.9.0.210", "auth": "site", "kind": "ups", "port": 1161},
        },
    }
)
ROLES = {"ipmi_exporter": IPMI, "snmp_exporter": SNMP}
SITE = site({**ROLES, "prometheus": PrometheusOptions(plain_http=True)})


class Api(FakeHost):
    """Prometheus' answers by the beginning of the query."""

    def run(self, command, *args):
        query = args[-1].partition("query=")[2]
        pairs = next((given for start, given in self.replies.items() if query.startswith(start)), None)
        if pairs is None:
            return Reply(0, "<html>", "")
        result = [
            {"metric": {"instance": target}, "value": [1, str(value)]} for target, value in pairs.items()
        ]
        return Reply(0, json.dumps({"status": "success", "data": {"result": result}}), "")


def bmcs(up, answers):
    host = Api({"up": up, "max": answers})
    found = judged("ipmi_exporter", ipmi.CHECKS, BMCS, SITE, head(SITE), host)
    return found.status, found.evidence


def devices(up):
    found = judged("snmp_exporter", snmp.CHECKS, DEVICES, SITE, head(SITE), Api({"up": up}))
    return found.status, found.evidence


def test_bmcs_that_answer():
    up = {"10.20.0.11": 1, "10.20.0.12": 1, "gpu9:9290": 0}
    assert bmcs(up, up) == ("PASS", "2 answer")


def test_a_bmc_that_refuses_the_password_does_not_answer():
    """The exporter answers Prometheus: `up` is 1."""
    up = {"10.20.0.11": 1, "10.20.0.12": 1}
    silent = ("FAIL", "no answer from the BMC of gpu2 (10.20.0.12)")
    assert bmcs(up, {"10.20.0.11": 1, "10.20.0.12": 0}) == silent
    assert bmcs({**up, "10.20.0.12": 0}, {"10.20.0.11": 1}) == silent


def test_devices():
    assert devices({"10.9.0.201": 1, "10.9.0.210:1161": 1}) == ("PASS", "2 answer")
    assert devices({"10.9.0.201": 1, "10.9.0.210:1161": 0}) == (
        "FAIL",
        "no answer from ups1 (10.9.0.210:1161)",
    )
    assert devices({"10.9.0.201": 1}) == (
        "UNKNOWN",
        "Prometheus has not scraped 1 of 2 yet, e.g. ups1",
    )


@pytest.mark.parametrize(
    ("role", "checks", "name"),
    [("ipmi_exporter", ipmi.CHECKS, BMCS), ("snmp_exporter", snmp.CHECKS, DEVICES)],
)
def test_where_there_is_no_prometheus_it_is_not_claimed(role, checks, name):
    assert name in claimed(role, checks, head(SITE))
    assert name not in claimed(role, checks, head(site(ROLES)))
    assert judged(role, checks, name, SITE, head(SITE), Api({})).status == "UNKNOWN"
