"""Product text has none of the words in tests/english.py, apart from those that another program or an old file dictates."""

from __future__ import annotations

import pytest

from tests.english import places

ALLOWED = {
    "the Unix account": {
        ("docs/integrity.md", "nobody"),
        ("rackwright/drift/install.py", "nobody"),
        ("rackwright/operations/traces.py", "nobody"),
        ("rackwright/osfamily/el_software.py", "nobody"),
        ("roles/access/trust.py", "nobody"),
        ("roles/munge/verify.py", "nobody"),
        ("roles/software/verify.py", "nobody"),
        ("templates/accounts/sshd.conf.j2", "nobody"),
        ("templates/nfs_client/idmapd.conf.j2", "nobody"),
        ("templates/slurm_on_kubernetes/sshd_config.j2", "nobody"),
    },
    "the key of old lock files, which are still read": {
        ("CHANGELOG.md", "wish"),
        ("rackwright/lock/content.py", "wish"),
    },
    "the key of state files of an earlier release": {("rackwright/drift/states.py", "told")},
    "the key in recorded documents of nodes": {
        ("rackwright/health/probe/gpus.py", "says"),
        ("rackwright/health/probe/nvlink.py", "says"),
    },
    "a name: a module of an earlier release, an account on GitHub": {
        ("CHANGELOG.md", "landing"),
        ("docs/exporters.md", "lest"),
    },
}
"""Reason -> (path, word)."""


@pytest.mark.slow
def test_the_words_are_gone():
    allowed = set().union(*ALLOWED.values())
    found = {(place.path, place.word): place for place in places()}
    assert [
        f"{one.path}:{one.line}: {one.word}: {one.text}" for key, one in found.items() if key not in allowed
    ] == []
    assert allowed <= set(found), "an exception that nothing needs"
