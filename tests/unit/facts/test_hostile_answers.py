"""Every fact, given anything at all: a result, or an exception that becomes the node's error; bounded memory and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.certificates.issuer import described
from rackwright.facts.certificates import Anchors, CertificateAt
from rackwright.facts.files import AtPath, Tree, tree_differences
from rackwright.facts.kernel import Sysctls
from rackwright.facts.mariadb import MariadbServer
from rackwright.facts.packages import Packages
from rackwright.facts.settings import Answer
from rackwright.facts.slurm import AccountingRecords, ReservationsFound
from rackwright.facts.units import Unit
from rackwright.facts.users import UnixGroup, User
from rackwright.workload.slurm.output import parse_hostlist
from rackwright.workload.slurm.records import normal
from tests.unit.answers import few, lines, many, memory_limit

DIGEST = f"{'0' * 64}  -"
FACTS: dict[str, tuple[Callable[[list[str]], Any], tuple[str, ...]]] = {
    "AtPath": (
        AtPath().process,
        ("file|644|root|root|5", DIGEST, "aGVsbG8=", "link|777|root|root|4", "/etc/x", "absent", "directory|755|a|b|1"),
    ),
    "Tree": (Tree().process, (DIGEST.replace("-", "./a"), "f 644 root:root ./a", "d 755 root:root .")),
    "Sysctls": (Sysctls().process, ("net.x=1\t2", "kernel.y=")),
    "MariadbServer": (
        MariadbServer().process,
        ("database\tslurm\t3\t", "account\tslurm\tlocalhost\tunix_socket", "global\t'a'@'b'\tSELECT\t", "complete\t\t\t"),
    ),
    "Packages": (
        lambda said: Packages().process(said),
        ("have a 1:2 ii", "have b 3 hi", "candidate c 4", "lock a-1:2.*", "stale /x", "have d 1 iU"),
    ),
    "Answer": (Answer().process, ("yes", "")),
    "AccountingRecords": (
        AccountingRecords().process,
        ("# cluster", "lab", "# qos", "normal||0|||00:00:00||1.0||||||", "# account", "root|d|o", "# user", "a|root|None",
         "# association", "root||||1|||||||||", "root|a||root|1|||||||||", "# tres", "cpu|", "# complete", "# stopped"),
    ),
    "ReservationsFound": (
        ReservationsFound().process,
        ("# zone +0100", ("ReservationName=m StartTime=2026-11-23T00:00:00 EndTime=2026-11-24T00:00:00 Nodes=n[1-2] "
         "Users=(null) Accounts=a Flags=MAINT,SPEC_NODES"), "# complete"),
    ),
    "Unit": (
        Unit().process,
        ("LoadState=loaded", "ActiveState=active", "UnitFileState=enabled",
         "StateChangeTimestamp=Fri 2026-11-20 19:50:11.123456 UTC", "newest 1763668211.1 /etc/x"),
    ),
    "CertificateAt": (
        CertificateAt().process,
        ("chain 644 root:root", "key 640 root:x", f"public {DIGEST}", "left 30", "openssl is missing",
         "-----BEGIN CERTIFICATE-----", "AAAA", "-----END CERTIFICATE-----"),
    ),
    "Anchors": (
        Anchors().process,
        ("folder", f"anchor rackwright-site-ca.crt yes {'0' * 64} regular file 644 root:root"),
    ),
    "User": (User().process, ("ada:x:3000:3000::/home/ada:/bin/bash", "ada", "ada sudo")),
    "UnixGroup": (UnixGroup().process, ("ada:x:3000:",)),
}  # fmt: skip
"""What reads a fact's answer, and lines of a valid one."""
SECONDS = 20
"""Of one answer of less than a megabyte; most take a millisecond."""


def _whatever_the_facts_are_told(name: str, said: list[str]) -> None:
    process, _ = FACTS[name]
    began = time.process_time()
    try:
        found = process(said)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - it becomes that node's error, see tests/unit/pyinfra_driver/test_hostile_nodes.py
        found = None
    if name == "CertificateAt" and found is not None:
        described(found)
    if name == "Tree" and found is not None:
        tree_differences(found, ("d 755 root:root .",))
    assert time.process_time() - began < SECONDS


def _any_fact() -> st.SearchStrategy[tuple[str, list[str]]]:
    return st.sampled_from(sorted(FACTS)).flatmap(
        lambda name: lines(*FACTS[name][1]).map(lambda said: (name, said))
    )


@few
@given(_any_fact())
def test_a_fact_reads_or_refuses(case: tuple[str, list[str]]) -> None:
    with memory_limit():
        _whatever_the_facts_are_told(*case)


@pytest.mark.proof
@many
@given(_any_fact())
def test_a_fact_reads_or_refuses_ten_thousand_times(case: tuple[str, list[str]]) -> None:
    with memory_limit():
        _whatever_the_facts_are_told(*case)


@pytest.mark.parametrize("name", FACTS)
def test_valid_lines_are_read(name: str) -> None:
    """The mutations begin with something that a fact takes."""
    process, valid = FACTS[name]
    first = {"AtPath": valid[:3], "AccountingRecords": valid[:-1]}.get(name, valid)
    assert process(list(first)) is not None


@pytest.mark.parametrize(
    "text",
    ["n[1-999999999]", "n[0-9][0-9][0-9][0-9][0-9][0-9]", f"n[{'0' * 4000}-1]", ",".join(["n[1-60000]"] * 3)],
)
def test_a_hostlist_that_would_fill_the_memory_is_refused(text: str) -> None:
    with memory_limit(200), pytest.raises(ValueError, match="hostlist"):
        parse_hostlist(text)


def test_a_time_that_would_take_hours_to_read_is_refused() -> None:
    with pytest.raises(ValueError, match="not a time of Slurm's"):
        normal("gracetime", "1:" * 500_000 + "1")
