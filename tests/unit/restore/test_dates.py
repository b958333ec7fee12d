"""Backups that are dated in the future: never chosen by themselves."""

from __future__ import annotations

import time

import pytest

from rackwright.backup.catalogue import name_of
from rackwright.errors import RestoreError
from rackwright.restore.run import fetch_backup, restore
from tests.unit.restore.conftest import CONTENT, NAME, NEWER, backup


def put_back(cluster, source=None):
    return restore(cluster, [cluster.primary], source, agree=lambda restoring: True)


def dated(seconds):
    """Name of a backup that a head has made this many seconds from now."""
    return name_of("head1", time.time() + seconds)


def test_a_newest_backup_that_is_dated_in_the_future_is_not_chosen(cluster, head, tmp_path):
    future = dated(86400)
    backup(head.place, future, content={**CONTENT, "state": NEWER})
    sentence = f"The newest backup of head1, {future}, is dated in the future"
    with pytest.raises(RestoreError, match=sentence) as alone:
        put_back(cluster)
    assert f"--node head1 --from {future}" in alone.value.hint
    backup(head.place)
    with pytest.raises(RestoreError, match=sentence) as refused:
        put_back(cluster)
    assert f"--node head1 --from {NAME}, or move {future} out of {head.place}" in refused.value.hint
    with pytest.raises(RestoreError, match=sentence):
        fetch_backup(cluster, cluster.primary, None, tmp_path / "copies", lambda text: None)
    assert head.asked == []
    put_back(cluster, future)
    assert head.put["state"] == NEWER


def test_clocks_may_differ_by_minutes(cluster, head):
    backup(head.place)
    backup(head.place, dated(200), content={**CONTENT, "state": NEWER})
    put_back(cluster)
    assert head.put["state"] == NEWER
