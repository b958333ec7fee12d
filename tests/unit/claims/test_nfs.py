"""The daemons that Kerberos and TLS of NFS need, on servers and clients."""

from __future__ import annotations

import pytest

from rackwright.claims.nfs import secured, uses_kerberos, uses_tls
from rackwright.roles.nfs_client.verify import CHECKS as OF_CLIENT
from rackwright.roles.nfs_server.verify import CHECKS as OF_SERVER
from tests.unit.roles.fake_facts import unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.nfs_sites import nfs, served
from tests.unit.roles.sites import head, worker

CLAIM = "the daemons for the declared security are running"


@pytest.mark.parametrize(
    ("options", "kerberos", "tls"),
    [((), False, False), (("sec=sys", "xprtsec=none"), False, False), (("sec=krb5:krb5p",), True, False),
     (("xprtsec=mtls",), False, True)],
)  # fmt: skip
def test_what_options_ask_for(options, kerberos, tls):
    one = (nfs(options=options),)
    assert (uses_kerberos(one), uses_tls(one), secured(one)) == (kerberos, tls, kerberos or tls)
    cluster = served(*one)
    assert (CLAIM in claimed("nfs_client", OF_CLIENT, worker(cluster))) is (kerberos or tls)
    assert (CLAIM in claimed("nfs_server", OF_SERVER, head(cluster))) is (kerberos or tls)


def judge(role, options, *replies):
    cluster = served(nfs(options=options))
    node, checks = (head(cluster), OF_SERVER) if role == "nfs_server" else (worker(cluster), OF_CLIENT)
    answers = {line: text for given in replies for line, text in given.items()}
    result = judged(role, checks, CLAIM, cluster, node, FakeHost(answers))
    return str(result.status), result.evidence


def test_a_client():
    both = ("sec=krb5p", "xprtsec=tls")
    gssd, tlshd = unit("rpc-gssd.service"), unit("tlshd.service")
    assert judge("nfs_client", both, gssd, tlshd) == ("PASS", "rpc-gssd.service runs, tlshd.service runs")
    assert judge("nfs_client", both, gssd, unit("tlshd.service", "inactive")) == (
        "FAIL",
        "tlshd.service is not running: filesystems with this security cannot be used",
    )
    assert judge("nfs_client", both)[0] == "UNKNOWN"


def test_a_server_has_one_of_two():
    off = unit("rpc-svcgssd.service", "inactive", "", "not-found")
    assert judge("nfs_server", ("sec=krb5",), off, unit("gssproxy.service")) == (
        "PASS",
        "gssproxy.service runs",
    )
    assert judge("nfs_server", ("sec=krb5",), off, unit("gssproxy.service", "inactive"))[0] == "FAIL"
    assert judge("nfs_server", ("sec=krb5",), off)[0] == "UNKNOWN"
