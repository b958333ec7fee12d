"""Authenticates a request: a MUNGE credential that the user's process created on a node of the cluster."""

from __future__ import annotations

import pwd
import re
import subprocess

_UID = re.compile(r"^UID:.*\(([0-9]+)\)$", re.MULTILINE)
_STATUS = re.compile(r"^STATUS:.*\(([0-9]+)\)$", re.MULTILINE)
CREDENTIAL = re.compile(r"MUNGE:[A-Za-z0-9+/=]{20,4000}:")
SECONDS = 10


class Refused(Exception):  # noqa: N818 - reads as a sentence
    """The credential does not prove who sent this request."""


def payload(job: str) -> str:
    """What a credential is for; one made for a job opens no other."""
    return f"rackwright job-metrics {job}"


def name_of(credential: str, job: str) -> str:
    """Name of the user who made the credential for this job.

    MUNGE checks the signature with the cluster's key, refuses what is older than its time to live (300 s), and what
    was decoded before on this node (unmunge(1), munge(7), read 2026-11-27).
    """
    if not CREDENTIAL.fullmatch(credential):
        raise Refused("no credential of MUNGE")
    try:
        found = subprocess.run(
            ["unmunge"], input=credential.encode(), capture_output=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused("MUNGE does not answer here") from error
    text = found.stdout.decode("utf-8", "replace")
    head, _, body = text.partition("\n\n")
    status, uid = _STATUS.search(head), _UID.search(head)
    if found.returncode != 0 or status is None or status[1] != "0" or uid is None:
        raise Refused("MUNGE refuses the credential")
    if body != payload(job):
        raise Refused("the credential is for something else")
    try:
        return pwd.getpwuid(int(uid[1])).pw_name
    except KeyError:
        raise Refused(f"user {uid[1]} has no name here") from None
