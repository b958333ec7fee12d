"""The script that builds a part, run on a small source with a real make: atomic, repeatable, quiet about success."""

from __future__ import annotations

import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.roles.hpc_stack.recipes import Recipe, recipes
from tests.unit.roles.hpc_sites import BUILD, cpu_site

_CONFIGURE = """\
#!/bin/sh
echo "$*" >arguments
prefix=$(echo "$1" | cut -d= -f2)
printf 'all:\\n\\techo $(MAKEFLAGS) >flags\\ninstall:\\n\\tmkdir -p $(DESTDIR)%s\\n\\tcp arguments $(DESTDIR)%s/\\n' \\
  "$prefix" "$prefix" >Makefile
"""
_FAILS = "#!/bin/sh\necho 'configure: error: no usable C compiler' >&2\nexit 77\n"


class Node:
    """A folder in which the script finds what it wants of a node."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.opt = root / "opt/rackwright"
        for made in ("opt", "var/tmp", "var/log", "var/cache/rackwright", "run"):
            (root / made).mkdir(parents=True)

    def source(self, recipe: Recipe, **files: str) -> None:
        """The tarball, with these executable files."""
        folder = self.root / "source"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        with tarfile.open(f"{self.root}{recipe.tarball}", "w:bz2") as tar:
            tar.add(folder, "openmpi-5.0.10")

    def build(self, recipe: Recipe, jobs: int | None = 3) -> subprocess.CompletedProcess[str]:
        """Run the script, with the node's folders in place of the system's."""
        script = recipe.write(jobs)
        for place in ("/opt/rackwright", "/var/tmp", "/var/log", "/var/cache", "/run"):
            script = script.replace(place, f"{self.root}{place}")
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=240, check=False)

    def reads(self, recipe: Recipe) -> str:
        """What the fact finds."""
        command = recipe.read.replace("/opt/rackwright", str(self.opt))
        done = subprocess.run(
            ["sh", "-c", f"({command}) 2>/dev/null || :"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout.strip()

    def left(self) -> list[str]:
        """Everything of the role's that is there, but for logs."""
        return sorted(
            path.name for folder in (self.opt, self.root / "var/tmp") for path in folder.glob("*")
        ) + [path.name for path in self.opt.glob(".*")]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
def recipe() -> Recipe:
    made = cpu_site(BUILD)
    return next(one for one in recipes(made, made.by_name["gpu1"], BUILD) if one.part == "openmpi")


def test_it_builds_installs_and_links(node: Node, recipe: Recipe):
    node.source(recipe, configure=_CONFIGURE)
    assert node.reads(recipe) == ""
    done = node.build(recipe)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert node.reads(recipe) == recipe.folder
    assert node.left() == ["openmpi", recipe.folder]
    arguments = (node.opt / "openmpi/arguments").read_text()
    assert arguments.startswith(f"--prefix={node.opt}/openmpi --disable-static ")  # in users' programs
    assert (node.opt / "openmpi/.rackwright-recipe").read_text() == f"{recipe.digest}\n"


def test_a_copy_of_a_repository_is_prepared(node: Node, recipe: Recipe):
    node.source(
        recipe, **{"autogen.pl": f"#!/bin/sh\ncat >configure <<'C'\n{_CONFIGURE}C\nchmod +x configure\n"}
    )
    assert node.build(recipe, jobs=None).returncode == 0
    assert node.reads(recipe) == recipe.folder


def test_a_build_that_fails_says_why_and_leaves_nothing(node: Node, recipe: Recipe):
    node.source(recipe, configure=_FAILS)
    done = node.build(recipe)
    assert done.returncode == 1
    assert done.stderr.endswith(
        f"Open MPI 5.0.10 was not built; the whole log is in {node.root}/var/log/rackwright-{recipe.folder}.log on "
        "this node\n"
    )
    assert "configure: error: no usable C compiler\n" in done.stderr
    assert node.left() == []
    assert node.reads(recipe) == ""


def test_what_an_interruption_left_is_no_build(node: Node, recipe: Recipe):
    (node.opt / recipe.folder).mkdir(parents=True)  # without its mark
    (node.opt / ".building-openmpi.AbCdEf").mkdir()
    (node.root / "var/tmp/rackwright-openmpi.AbCdEf").mkdir()
    node.source(recipe, configure=_CONFIGURE)
    assert node.build(recipe).returncode == 0
    assert node.left() == ["openmpi", recipe.folder]
    assert node.reads(recipe) == recipe.folder


def test_going_back_builds_nothing(node: Node, recipe: Recipe):
    other = replace(recipe, steps=f"{recipe.steps}# another\n")
    assert other.prefix != recipe.prefix
    node.source(recipe, configure=_CONFIGURE)
    assert node.build(recipe).returncode == 0
    assert node.build(other).returncode == 0
    assert node.reads(recipe) == other.folder
    node.source(recipe, configure=_FAILS)
    assert node.build(recipe).returncode == 0
    assert node.reads(recipe) == recipe.folder
    assert (node.opt / other.folder / "arguments").exists()  # old builds stay
