"""rackwright init."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from rackwright.clusterfile.load import load
from rackwright.errors import RackwrightError
from rackwright.init.site import make_site
from rackwright.init.start import Start


@pytest.mark.parametrize("start", Start)
def test_each_start_is_valid_and_has_the_example_role(start, tmp_path):
    site = make_site(tmp_path / "new", start)
    loaded = load(site.file)
    assert "motd" in loaded.roles
    assert all("motd" in node.options for node in loaded.cluster.nodes)
    assert "example-" not in site.file.read_text()
    assert "inventory/" not in site.file.read_text()


def test_the_example_file_is_kept_but_for_names_and_the_role(tmp_path):
    original = (Start.DGX_H100.stem, "cluster")
    site = make_site(tmp_path / "new", Start.DGX_H100)
    from rackwright.init.start import _INVENTORY  # the shipped file itself

    shipped = (_INVENTORY / f"{original[0]}.yaml").read_text().replace(*original).splitlines()
    added = [line for line in site.file.read_text().splitlines() if line not in shipped]
    assert added[0] == "  name: new"
    assert [line.split(":")[0].strip() for line in added[1:]] == ["motd"]


def test_again_writes_nothing_and_completes_what_is_missing(tmp_path):
    first = make_site(tmp_path / "new", Start.LAB)
    assert make_site(tmp_path / "new", Start.LAB).written == ()
    (tmp_path / "new" / "README.md").unlink()
    assert [str(path) for path in make_site(tmp_path / "new", Start.LAB).written] == ["README.md"]
    assert len(first.written) > 10


def test_a_file_with_another_text_is_never_replaced(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(RackwrightError, match=r"README\.md") as caught:
        make_site(tmp_path, Start.LAB)
    assert caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RackwrightError, match="file"):
        make_site(tmp_path / "file", Start.LAB)


def test_the_schema_knows_the_role_of_the_site(site):
    schema = json.loads((site.folder / "cluster.schema.json").read_text())
    assert "motd" in schema["properties"]["roles"]["properties"]
    assert "contact" in schema["$defs"]["MotdOptions"]["properties"]


def test_keys_are_kept_out_of_git(site):
    subprocess.run(["git", "init", "-q"], cwd=site.folder, check=True)
    for name in (
        ".lab/id_ed25519",
        "identity.age.txt",
        "id_ed25519",
        "tls.key",
        "lab.secrets.age",
        "known_hosts",
    ):
        (site.folder / name).parent.mkdir(exist_ok=True)
        (site.folder / name).write_text("x")
    listed = subprocess.run(
        ["git", "ls-files", "-o", "--exclude-standard"],
        cwd=site.folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert {"cluster.yaml", "roles/motd/options.py", "lab.secrets.age", "known_hosts"} <= set(listed)
    assert not {".lab/id_ed25519", "identity.age.txt", "id_ed25519", "tls.key"} & set(listed)


def test_the_workflow_validates_and_plans(site):
    workflow = yaml.safe_load((site.folder / ".github/workflows/rackwright.yml").read_text())
    text = json.dumps(workflow["jobs"])
    assert "rackwright validate cluster.yaml" in text
    assert "rackwright plan cluster.yaml" in text
    assert "${{ secrets.SSH_KEY }}" in text


@pytest.mark.slow
def test_its_python_is_clean(site):
    for command in (["ruff", "check"], ["ruff", "format", "--check", "--line-length", "110"]):
        done = subprocess.run(
            [sys.executable, "-m", *command, "."],
            cwd=site.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_command(rackwright, tmp_path):
    result = rackwright("init", tmp_path / "new", "--from", "small")
    assert result.status == 0
    assert "new/cluster.yaml: cluster new, from the example small" in result.out
    assert rackwright("validate", tmp_path / "new" / "cluster.yaml").status == 0


def test_the_cluster_is_named_after_its_folder_where_that_is_a_name(tmp_path):
    assert load(make_site(tmp_path / "gpu-farm", Start.LAB).file).cluster.name == "gpu-farm"
    assert load(make_site(tmp_path / "My Cluster", Start.LAB).file).cluster.name == "lab"
