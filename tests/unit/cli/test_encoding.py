"""A terminal that cannot show a character gets its escape, and the command its own exit status."""

import os
import subprocess
import sys

import pytest

from tests.unit.clusterfile.base_file import BASE


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1", "utf-8"])
def test_text_beyond_the_terminal_s_encoding_is_escaped(tmp_path, encoding):
    file = tmp_path / "cluster.yaml"
    file.write_text(BASE.replace("cluster:", "Łódź: 1\ncluster:", 1), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "rackwright", "validate", str(file)],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
        timeout=240,
    )
    shown = done.stdout + done.stderr
    assert done.returncode == 1, shown
    assert b"Traceback" not in shown
    assert (
        b"\\u0141" if encoding == "iso-8859-1" else "Łódź".encode()
    ) in shown  # click writes UTF-8 for ascii
