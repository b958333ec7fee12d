"""vagrant/seeds.rb and the disks' descriptions: what the Vagrantfile writes before a VM starts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.vagrant.conftest import ROOT

Run = Callable[[str], subprocess.CompletedProcess[str]]

_BEFORE = """\
module Vagrant; module Errors; VagrantError = Class.new(StandardError) do
  def message = error_message
end; end; end
%w[rack seeds libvirt virtualbox].each { |name| require File.join(ARGV[0], name) }
Node = Struct.new(:name, :roles)
Rack = Struct.new(:folder, :nodes) do
  def file = 'cluster.yaml'
  def program = ["#{folder}/rackwright"]
  def seeds = "#{folder}/seeds"
  def seed(node) = "#{seeds}/#{node.name}.tar"
  def images = "#{folder}/images"
  def boxes = "#{folder}/boxes"
  def ssh_key = "#{folder}/key"
  def known_hosts = "#{folder}/known hosts"
end
RACK = Rack.new(ARGV[1], [Node.new('head1', ['head']), Node.new('worker1', ['worker'])])
"""


@pytest.fixture
def run(ruby: str, tmp_path: Path) -> Run:
    """Runs Ruby with RACK, a rack of two nodes whose files are in the test's folder."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ruby, "-e", _BEFORE + script, str(ROOT / "vagrant"), str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def program(folder: Path, script: str) -> None:
    path = folder / "rackwright"
    path.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n{script}\n')
    path.chmod(0o755)


def test_seeds_are_made_once(run: Run, tmp_path: Path) -> None:
    made = f"mkdir -p {tmp_path}/seeds; touch {tmp_path}/key {tmp_path}/seeds/head1.tar {tmp_path}/seeds/worker1.tar"
    program(tmp_path, made)
    for _ in range(2):
        done = run("Rackwright::Seeds.new(RACK).ensure")
        assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [f"image seed cluster.yaml --images {tmp_path}/images --out {tmp_path}/seeds"]
    assert (tmp_path / "seeds/ssh_config").read_text() == (
        "Host *\n"
        "  StrictHostKeyChecking yes\n"
        f'  GlobalKnownHostsFile "{tmp_path}/known hosts"\n'
        "  UserKnownHostsFile none\n"
    )


def test_the_folder_of_private_keys_is_closed(run: Run, tmp_path: Path) -> None:
    program(tmp_path, "true")
    assert run("Rackwright::Seeds.new(RACK).ensure").returncode == 0
    assert (tmp_path / "seeds").stat().st_mode & 0o777 == 0o700


def test_one_missing_seed_is_enough(run: Run, tmp_path: Path) -> None:
    program(tmp_path, "true")
    (tmp_path / "seeds").mkdir()
    for path in ("key", "seeds/head1.tar"):
        (tmp_path / path).touch()
    run("Rackwright::Seeds.new(RACK).ensure")
    assert (tmp_path / "asked").exists()


def test_a_failure_to_make_them_is_shown(run: Run, tmp_path: Path) -> None:
    program(tmp_path, "echo 'error: no image of worker1' >&2; exit 1")
    done = run("Rackwright::Seeds.new(RACK).ensure")
    assert done.returncode == 1
    assert "image seed cluster.yaml" in done.stderr
    assert "error: no image of worker1" in done.stderr


def test_a_vm_without_a_box_is_refused(run: Run, tmp_path: Path) -> None:
    done = run(
        "Config = Struct.new(:vm); VM = Struct.new(:box); Machine = Struct.new(:config)\n"
        "begin\n"
        "  Rackwright::Libvirt.refuse_without_box(Machine.new(Config.new(VM.new(nil))), RACK, RACK.nodes[1])\n"
        "rescue Rackwright::Refusal => e\n  puts e.message\nend\n"
        "Rackwright::Libvirt.refuse_without_box(Machine.new(Config.new(VM.new('b'))), RACK, RACK.nodes[1])\n"
    )
    assert done.returncode == 0, done.stderr
    build = f"rackwright image build cluster.yaml --group worker1 --out {tmp_path}/images/worker"
    assert done.stdout.splitlines() == [
        f"{tmp_path}/boxes has neither worker1.box nor worker.box.",
        f"hint: {build}, then vagrant/box {tmp_path}/images/worker --out {tmp_path}/boxes/worker.box",
    ]


def test_the_description_of_a_raw_disk_names_its_size(run: Run, tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds/head1.tar").write_bytes(b"\0" * 10240)
    done = run("Rackwright::SeedDescriptor.new(RACK.seed(RACK.nodes.first)).write")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "seeds/head1.vmdk").read_text()
    assert 'RW 20 FLAT "head1.tar" 0\n' in text
    read = subprocess.run(
        ["qemu-img", "info", str(tmp_path / "seeds/head1.vmdk")], capture_output=True, text=True, check=False
    )
    assert "virtual size: 10 KiB (10240 bytes)" in read.stdout
