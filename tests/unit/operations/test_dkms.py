"""Modules that DKMS builds: seen as they are, built for the kernel that is named, failing in the compiler's words."""

from __future__ import annotations

import shlex
import stat

import pytest

from rackwright.operations import dkms
from tests.factories import make_cluster, make_node
from tests.unit.pyinfra_driver.local import LocalRun

# A dkms that keeps its state in files beside itself; `fails` makes it write a log as make would.
_TOOL = r"""#!/bin/sh
here=$(dirname "$0"); verb=$1; shift
while [ $# -gt 0 ]; do case $1 in -m) m=$2 ;; -v) v=$2 ;; -k) k=$2 ;; esac; shift 2; done
case $verb in
status) [ ! -e "$here/built.$m.$k" ] || echo "$m/$v, $k, x86_64: $(cat "$here/built.$m.$k")" ;;
install)
  echo "$m $v $k" >>"$here/asked"
  if [ -e "$here/fails" ]; then
    mkdir -p "$here/tree/$m/$v/build"
    cp "$here/fails" "$here/tree/$m/$v/build/make.log"
    echo "Error! Bad return status for module build on kernel: $k"
    exit 10
  fi
  echo installed >"$here/built.$m.$k" ;;
esac
"""
# As gcc 14 and make said it of 550.163.01 and Debian 13's headers, 2026-11-20.
_LOG = """\
/var/lib/dkms/x/build/nvidia/nv-pci.c: In function 'nv_resize_pcie_bars':
/var/lib/dkms/x/build/nvidia/nv-pci.c:211:9: error: too few arguments to function 'pci_resize_resource'
  211 |     r = pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size);
make[4]: *** [/usr/src/linux-headers/scripts/Makefile.build:249: nvidia/nv-pci.o] Error 1
make: *** [Makefile:115: modules] Error 2
"""


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A node with DKMS sources of version 1.0, and a run of the operation on it."""
    tool = tmp_path / "dkms"
    tool.write_text(_TOOL)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(dkms, "_BUILD", dkms._BUILD.replace("/var/lib/dkms", str(tmp_path / "tree")))
    source = tmp_path / "src" / "nvidia-current-open-1.0"
    source.mkdir(parents=True)
    (source / "dkms.conf").write_text('# x\nPACKAGE_NAME="nvidia-current-open"\nPACKAGE_VERSION="1.0"\n')

    class Node:
        folder = tmp_path

        def __init__(self, kernel="6.1.0-50-amd64", version="1.0"):
            self.run = LocalRun(make_cluster(make_node("node1", 21)), tmp_path)
            self.deploy = (
                "from rackwright.operations import dkms\n"
                f"dkms.built(name='Build', sources='{shlex.quote(str(tmp_path))}/src/nvidia*-{version}', kernel={kernel!r})\n"
            )

        def plan(self):
            found = self.run.plan(self.deploy)["node1"]
            return [(c.target, c.before, c.after) for op in found.operations for c in op.changes]

        def apply(self):
            return self.run.apply(self.deploy)["node1"]

    return Node


def test_it_is_built_once_for_the_named_kernel(node):
    assert node().plan() == [
        ("DKMS module nvidia-current-open 1.0", None, "built and installed for 6.1.0-50-amd64")
    ]
    assert node().apply().ok
    assert (node.folder / "asked").read_text() == "nvidia-current-open 1.0 6.1.0-50-amd64\n"
    assert node().plan() == []


def test_a_module_that_is_built_and_not_installed(node):
    (node.folder / "built.nvidia-current-open.6.1.0-50-amd64").write_text("built\n")
    assert node().plan()[0][1] == "built"


def test_another_kernel_is_another_module(node):
    assert node().apply().ok
    assert node("6.1.0-56-amd64").plan()[0][2] == "built and installed for 6.1.0-56-amd64"


def test_a_build_that_fails_says_the_compiler_s_line_and_is_tried_again(node):
    (node.folder / "fails").write_text(_LOG)
    outcome = node().apply()
    assert not outcome.ok
    said = "\n".join(filter(None, [outcome.error, *(op.error for op in outcome.operations)]))
    assert "nvidia-current-open 1.0 does not build for 6.1.0-50-amd64 (whole log: " in said
    assert "nv-pci.c:211:9: error: too few arguments to function 'pci_resize_resource'" in said
    assert "make" not in said.split("whole log")[1].partition("\n")[2]
    (node.folder / "fails").unlink()
    assert node().apply().ok
    assert node().plan() == []


def test_without_a_log_dkms_s_own_words_are_told(node):
    (node.folder / "fails").write_text("")
    outcome = node().apply()
    said = "\n".join(filter(None, [outcome.error, *(op.error for op in outcome.operations)]))
    assert "Error! Bad return status for module build on kernel: 6.1.0-50-amd64" in said


def test_no_sources_is_an_error_and_not_a_success(node):
    assert len(node(version="2.0").plan()) == 1
    outcome = node(version="2.0").apply()
    said = "\n".join(filter(None, [outcome.error, *(op.error for op in outcome.operations)]))
    assert not outcome.ok
    assert "or no headers: nothing was built" in said
