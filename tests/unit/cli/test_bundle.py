"""rackwright bundle as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LAB = Path(__file__).parents[3] / "inventory" / "lab.yaml"


@pytest.mark.slow
def test_the_list_of_the_lab(rackwright):
    result = rackwright("bundle", LAB)
    assert result.status == 0, result.err
    assert "packages of debian-13" in result.out
    assert "slurmctld" in result.out
    document = json.loads(rackwright("bundle", LAB, "--json").out)
    assert document["kind"] == "rackwright.bundle"
    assert {item["kind"] for item in document["items"]} >= {"package"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--resolve", "--pack", "x"), "--resolve, --pack and --check exclude each other."),
        (("--update",), "--update belongs to --resolve."),
    ],
)
def test_what_excludes_each_other(rackwright, arguments, message):
    result = rackwright("bundle", LAB, *arguments)
    assert (result.status, message in result.err) == (64, True)


def test_a_folder_that_does_not_exist(rackwright, tmp_path, monkeypatch):
    monkeypatch.setattr("rackwright.bundle.listing.list_items", lambda cluster: _nothing())
    result = rackwright("bundle", LAB, "--check", tmp_path / "gone")
    assert (result.status, "does not exist" in result.err) == (1, True)


def test_checking_a_folder(rackwright, tmp_path, monkeypatch):
    monkeypatch.setattr("rackwright.bundle.listing.list_items", lambda cluster: _nothing())
    result = rackwright("bundle", LAB, "--check", tmp_path)
    assert (result.status, result.out) == (
        3,
        "FAIL image registry.k8s.io/pause:3.10: is missing\n1 items; 0 packages are not part of it\n",
    )
    document = json.loads(rackwright("bundle", LAB, "--check", tmp_path, "--json").out)
    assert document["items"][0]["status"] == "FAIL"


def _nothing():
    from rackwright.bundle.listing import Item, Listing
    from rackwright.model.mirrored import MirrorItem

    return Listing((Item(MirrorItem("image", "registry.k8s.io/pause:3.10"), ("kubernetes",), None),), ())
