"""The commands that bring units up, run by a shell with a systemctl that fails as the real one does."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.operations.units import _systemctl


@pytest.mark.parametrize(
    ("verb", "failures", "exit_status", "calls"),
    [
        ("reload", 0, 0, ["reload", "is-active"]),
        ("reload", 1, 0, ["reload", "reload", "is-active"]),
        ("reload", 2, 1, ["reload", "reload", "status"]),
        ("restart", 1, 1, ["restart", "status"]),
        ("enable", 0, 0, ["enable"]),
    ],
)
def test_a_reload_that_lost_its_process_is_tried_again(verb, failures, exit_status, calls, tmp_path):
    (tmp_path / "systemctl").write_text(
        "#!/bin/sh\n"
        f'echo "$1" >>{tmp_path}/calls\n'
        f'[ "$1" = {verb} ] || exit 0\n'
        f"[ $(grep -c {verb} {tmp_path}/calls) -gt {failures} ]\n"
    )
    (tmp_path / "sleep").write_text("#!/bin/sh\nexit 0\n")
    for name in ("systemctl", "sleep"):
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", str(_systemctl(verb, "slurmd.service"))],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        check=False,
        timeout=60,
    )
    assert done.returncode == exit_status
    assert (tmp_path / "calls").read_text().split() == calls
