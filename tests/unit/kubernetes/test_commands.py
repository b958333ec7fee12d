"""What compare and apply make of kubectl's output, with a stand-in of kubectl."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from rackwright.kubernetes import commands
from rackwright.kubernetes.commands import apply, compare, document

ROLE = "test"
STAND_IN = """#!/bin/sh
case "$*" in
*--raw=/readyz*) exit 0 ;;
*" diff "*) cat "$HERE/diff"; [ ! -s "$HERE/diff" ] ;;
*) echo "$*" >>"$HERE/log"; cat >/dev/null ;;
esac
"""
CHANGED = """\
diff -u -N /tmp/LIVE-1/v1.ResourceQuota.a.account /tmp/MERGED-2/v1.ResourceQuota.a.account
--- /tmp/LIVE-1/v1.ResourceQuota.a.account\t2026-11-28 05:52:46
+++ /tmp/MERGED-2/v1.ResourceQuota.a.account\t2026-11-28 05:52:46
@@ -17,7 +17,7 @@
         f:limits: {}
     operation: Apply
-    time: "2026-11-28T05:52:40Z"
+    time: "2026-11-28T05:52:46Z"
   name: account
"""
"""Of kubectl 1.20, which shows managed fields; recorded from a server of 1.20.2."""


def _object(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **more}}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "FOLDER", str(tmp_path))
    (tmp_path / "kubectl").write_text(STAND_IN)
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "diff").write_text("")

    def call(script: str) -> str:
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HERE": str(tmp_path)}
        done = subprocess.run(
            ["sh", "-c", script], env=env, capture_output=True, text=True, timeout=20, check=False
        )
        return done.stdout.strip()

    return call


def _declare(folder: Path, objects: list[dict[str, Any]]) -> None:
    (folder / f"{ROLE}.yaml").write_text(document(ROLE, objects))


@pytest.mark.parametrize(
    ("difference", "answer"),
    [
        ("", "as declared"),
        (CHANGED, "as declared"),
        (CHANGED.replace("name: account", "name: account\n+  cpu: 7"), "v1.ResourceQuota.a.account differs"),
        (CHANGED.replace("    time:", "  time:"), "v1.ResourceQuota.a.account differs"),
    ],
)
def test_the_time_of_the_comparison_is_no_difference(run, tmp_path, difference, answer):
    objects = [_object("ConfigMap", "a")]
    _declare(tmp_path, objects)
    (tmp_path / "diff").write_text(difference)
    assert run(compare(ROLE, objects)) == answer


def test_what_is_not_declared_any_more_goes_and_namespaces_stay(run, tmp_path):
    before = [
        _object("Namespace", "team"),
        _object("ConfigMap", "a", namespace="team"),
        _object("ConfigMap", "b"),
    ]
    _declare(tmp_path, before)
    run(apply(ROLE, before))
    after = [_object("ConfigMap", "b")]
    _declare(tmp_path, after)
    assert run(compare(ROLE, after)) == "configmap a team is not declared any more"
    run(apply(ROLE, after))
    deleted = [line for line in (tmp_path / "log").read_text().splitlines() if " delete " in line]
    assert len(deleted) == 1
    assert "delete configmap a --namespace team" in deleted[0]
    assert run(compare(ROLE, after)) == "as declared"


def test_other_objects_than_those_that_were_applied(run, tmp_path):
    _declare(tmp_path, [_object("ConfigMap", "a")])
    assert run(compare(ROLE, [_object("ConfigMap", "b")])) == "other objects were applied last"
