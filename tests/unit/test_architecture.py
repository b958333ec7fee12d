"""The rules of docs/architecture.md, kept by reading the code. Each guard is also seen to object.

A guard takes the root of a tree and returns what is wrong in it, one line each.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from rackwright.osfamily.known import FAMILIES, RELEASES

ROOT = Path(__file__).resolve().parents[2]
ROLE_FILES = {"__init__.py", "options.py", "deploy.py", "verify.py"}
DRIVER_SIDE = re.compile(
    r"pyinfra\.(api\.(state|inventory|operations|config|connect|connectors|host)|connectors)|gevent"
)
BANNED_IN_ROLES = {
    "server.shell": "always changes; use an operation of rackwright.operations",
    "python.call": "always changes and hides what it does",
    "files.template": "rendered by rackwright.render instead",
    "files.put": "no exact diff, breaks on binary files; use rackwright.operations.files",
    "server.sysctl": "appends a second line on each change; use sysctls.live and a file",
    "systemd.daemon_reload": "always changes; rackwright.operations.units does it when needed",
}
UNIT_STATE = re.compile(r"systemctl (is-active|is-enabled|show .*(ActiveState|LoadState|UnitFileState))")
_ROOMS = """
    errors boundary state_folder command atomic_write known_hosts_file open_files result_store durations site_folder shipped render pytest_plugin textfiles drawing documents node_programs status node_folders
    osfamily certificates model catalog plan secrets containers mounts mount_roles exporters extra_lines alerts clusterfile init importers lab data ssh bmc
    kubernetes workload facts factcache operations lock health claims verify fabric burnin storage prometheus dashboards job_metrics logs
    pyinfra_driver silences engine image install firmware rotation backup restore drift why live clustermap top accept own_metrics drill bundle schemas completion cli __main__
"""
ROOMS_BOTTOM_UP = tuple(_ROOMS.split())
"""Rooms and modules of rackwright/; each imports only what stands before it."""
SLURM_ROOMS = (
    *("rackwright/workload/slurm", "rackwright/facts/slurm.py"),
    *("rackwright/operations/slurm_accounting.py", "rackwright/operations/slurm_reservations.py"),
    "rackwright/workload/slurm_in_pods",
    "roles/slurm",
    "roles/slurm_on_kubernetes",  # the same daemons, in pods
    "rackwright/alerts",  # runbooks contain commands to type
    "rackwright/drill/slurm_drills.py",  # breaks Slurm on purpose
    "roles/enroot_pyxis",  # builds a plugin of Slurm's and has to ask srun for it
    "roles/ray_on_slurm",  # asks salloc for a job
    "roles/hpc_stack",  # asks srun to start MPI's processes
)
FINDS_SLURM = ("rackwright/workload/lookup.py", "rackwright/workload/on_node.py")
"""Where a manager is chosen by what the roles declare."""
KUBERNETES_ROOMS = ("rackwright/workload/kubernetes", "rackwright/workload/slurm_in_pods")
OS_NAMED_OUTSIDE = {
    "rackwright/factcache/helper.py": "runs on the node, where the room is not",
    "rackwright/lab/artefact/recipe.py": "names the suites whose source package and programs it takes",
    "rackwright/lab/sources.py": "reads any suite of Debian's out of this machine's own apt configuration",
}
"""Files that may name an operating-system family or release although they are not in its room."""
BANNED_ARGUMENTS = {"_run_once", "_serial", "_parallel"}
WITHOUT_PYINFRA = ("rackwright.clusterfile.load", "rackwright.engine.run", "rackwright.cli")
DRIVER = "rackwright.pyinfra_driver.driver"


@cache
def _parsed(path: Path, text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


def _files(root: Path, *rooms: str) -> Iterator[Path]:
    for room in rooms:
        for path in sorted((root / room).rglob("*.py")):
            relative = path.relative_to(root)
            if relative.parts[:2] not in {
                ("rackwright", link) for link in ("roles", "deploys", "templates", "inventory")
            }:
                yield path


def _python(root: Path, *rooms: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in _files(root, *rooms):
        yield path, _parsed(path, path.read_text())


@cache
def _imports(tree: ast.AST, *, hints: bool = False) -> tuple[tuple[int, str], ...]:
    """(line, module) of every import; those under `if TYPE_CHECKING` load for type checkers only: `hints`."""
    found: list[tuple[int, str]] = []
    hidden: set[ast.AST] = set()
    for node in _nodes(tree):
        if not hints and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            hidden.update(inner for statement in node.body for inner in ast.walk(statement))
    for node in _nodes(tree):
        if node in hidden:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, node.module or ".")]
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return tuple(found)


def engine_knows_no_role(root: Path) -> list[str]:
    """rackwright/ imports neither a role nor a deploy; roles are found by name at run time."""
    return [
        f"{path.relative_to(root)}:{line}: imports {module}"
        for path, tree in _python(root, "rackwright")
        for line, module in _imports(tree)
        if re.match(r"rackwright\.(roles|deploys)(\.|$)", module)
    ]


def rooms_import_downwards(root: Path) -> list[str]:
    """No room imports one above it, type hints included, so that rooms form no circle."""
    rank = {room: place for place, room in enumerate(ROOMS_BOTTOM_UP)}
    wrong = []
    for path, tree in _python(root, "rackwright"):
        room = path.relative_to(root).parts[1].removesuffix(".py")
        if room == "__init__":
            continue
        if room not in rank:
            wrong.append(f"{path.relative_to(root)}: {room} is not in ROOMS_BOTTOM_UP")
            continue
        for line, module in _imports(tree, hints=True):
            other = module.split(".")[1] if module.startswith("rackwright.") else None
            if other in rank and rank[other] > rank[room]:
                wrong.append(
                    f"{path.relative_to(root)}:{line}: {room} imports {other}, which stands above it"
                )
    return wrong


def only_the_command_line_prints(root: Path) -> list[str]:
    """Rooms return reports; what a terminal shows of them is a view in rackwright/cli."""
    return [
        f"{path.relative_to(root)}:{line}: imports {module}"
        for path, tree in _python(root, "rackwright", "roles", "deploys")
        if path.relative_to(root).parts[:2] != ("rackwright", "cli")
        for line, module in _imports(tree)
        if module.split(".")[0] in ("rich", "typer")
    ]


def modules_import_in_no_circle(root: Path) -> list[str]:
    """Modules form no circle when they are loaded, imports inside functions included."""
    modules = {}
    for path, tree in _python(root, "rackwright"):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        modules[name] = [module for _, module in _imports(tree)]
    graph = {
        name: sorted({other for other in imports if other in modules}) for name, imports in modules.items()
    }
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return [" -> ".join(reversed(error.args[1]))]
    return []


def roles_stand_alone(root: Path) -> list[str]:
    """A role imports itself and rackwright, never another role, a deploy or the engine."""
    wrong = []
    for path, tree in _python(root, "roles"):
        own = f"rackwright.roles.{path.relative_to(root / 'roles').parts[0]}"
        for line, module in _imports(tree):
            other_role = module.startswith("rackwright.roles.") and not f"{module}.".startswith(f"{own}.")
            if other_role or re.match(r"(roles|deploys|rackwright\.(engine|cli|lab|deploys))(\.|$)", module):
                wrong.append(f"{path.relative_to(root)}:{line}: imports {module}")
    return wrong


def os_families_stand_in_their_room(root: Path) -> list[str]:
    """Outside rackwright/osfamily no code imports one family or names a family, a release or a codename."""
    words = [*RELEASES, *(os.codename for os in RELEASES.values() if os.codename)]
    named = re.compile(
        "|".join([*map(re.escape, FAMILIES), f".*\\b({'|'.join(map(re.escape, words))})\\b.*"])
    )
    wrong = []
    for path, tree in _python(root, "rackwright", "roles", "deploys"):
        where = path.relative_to(root).as_posix()
        if where.startswith("rackwright/osfamily/") or where in OS_NAMED_OUTSIDE:
            continue
        wrong += [
            f"{where}:{line}: imports {module}"
            for line, module in _imports(tree, hints=True)
            if re.fullmatch(r"rackwright\.osfamily\.(debian|el)", module)
        ]
        docstrings = {node.value for node in _nodes(tree) if isinstance(node, ast.Expr)}
        wrong += [
            f"{where}:{node.lineno}: {node.value!r} names an operating system"
            for node in _nodes(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
            if named.fullmatch(node.value.replace("\n", " "))
        ]
    return wrong


def the_driver_side_stays_in_its_room(root: Path) -> list[str]:
    """Only rackwright/pyinfra_driver touches pyinfra's State, Inventory, connectors and gevent."""
    return [
        f"{path.relative_to(root)}:{line}: imports {module}"
        for path, tree in _python(root, "rackwright", "roles", "deploys")
        if path.relative_to(root).parts[:2] != ("rackwright", "pyinfra_driver")
        for line, module in _imports(tree)
        if DRIVER_SIDE.match(module) and not module.startswith("pyinfra.api.host")
    ]


def roles_have_four_files(root: Path) -> list[str]:
    """__init__ (a docstring), options, deploy, verify; any further module is pure: no pyinfra."""
    wrong = []
    for folder in sorted(path for path in (root / "roles").iterdir() if path.is_dir()):
        if folder.name == "__pycache__":
            continue
        there = {path.name for path in folder.glob("*.py")}
        wrong += [f"roles/{folder.name}: {name} is missing" for name in sorted(ROLE_FILES - there)]
        for name in sorted(there - {"deploy.py"}):
            tree = _parsed(folder / name, (folder / name).read_text())
            wrong += [
                f"roles/{folder.name}/{name}:{line}: imports {module}; only deploy.py may"
                for line, module in _imports(tree)
                if module.split(".")[0] == "pyinfra" or module.startswith("rackwright.operations")
            ]
        if "__init__.py" in there:
            body = ast.parse((folder / "__init__.py").read_text()).body
            if len(body) != 1 or not isinstance(body[0], ast.Expr):
                wrong.append(f"roles/{folder.name}/__init__.py: holds more than a docstring")
    return wrong


def deploys_are_straight_lines(root: Path) -> list[str]:
    """Imports and `if (o := options_for(host, "role", Options)) is not None: role(options=o)`, no more.

    A node that leaves a workload has `left_for` and `leaves_role`; `shipped_roles("part")` reads another deploy of the folder.
    """
    call = re.compile(
        r"if \(?\(o := (options|left)_for\(host, '(\w+)', \w+\)\)\)? is not None:\n    (\w+)\(options=o\)$"
    )
    wrong = []
    for path, tree in _python(root, "deploys"):
        for node in tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            part = re.match(r"shipped_roles\('(\w+)'\)$", ast.unparse(node))
            if part is not None and path.with_name(f"{part[1]}.py").exists():
                continue
            match = call.match(ast.unparse(node))
            wanted = None if match is None else match[2] if match[1] == "options" else f"leaves_{match[2]}"
            if match is None or match[3] != wanted:
                wrong.append(f"{path.relative_to(root)}:{node.lineno}: {ast.unparse(node).splitlines()[0]}")
    return wrong


def every_role_is_deployed(root: Path) -> list[str]:
    """A role that no deploy calls would be configured and never applied."""
    called = "".join(path.read_text() for path in (root / "deploys").glob("*.py"))
    names = sorted(path.name for path in (root / "roles").iterdir() if (path / "__init__.py").exists())
    return [f"roles/{name}: no deploy calls it" for name in names if f'"{name}"' not in called]


def roles_use_declared_operations(root: Path) -> list[str]:
    """No operation that always changes, and `name=` on every operation (else pyinfra prints its arguments)."""
    wrong = []
    for path, tree in _python(root, "roles"):
        modules = {
            alias.asname or alias.name
            for node in _nodes(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "rackwright.operations"
            for alias in node.names
        }
        for node in _nodes(tree):
            if not isinstance(node, ast.Call):
                continue
            where = f"{path.relative_to(root)}:{node.lineno}"
            called = ast.unparse(node.func)
            keywords = {keyword.arg for keyword in node.keywords}
            if called in BANNED_IN_ROLES:
                wrong.append(f"{where}: {called} {BANNED_IN_ROLES[called]}")
            wrong += [
                f"{where}: {name} is racy or breaks hosts apart" for name in keywords & BANNED_ARGUMENTS
            ]
            if (
                called.partition(".")[0] in modules
                and "." in called
                and ("name" not in keywords or node.args)
            ):
                wrong.append(f"{where}: {called} wants keywords only, name= among them")
    return wrong


def checks_read_units_by_fact(root: Path) -> list[str]:
    """A check asks systemd about a unit with the fact that the deploy acts on (rackwright.claims.units)."""
    return [
        f"{path.relative_to(root)}:{node.lineno}: runs `{node.value}`; use rackwright.claims.units"
        for path, tree in _python(root, "roles")
        if path.name != "deploy.py"
        for node in _nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and UNIT_STATE.match(node.value)
    ]


def sizes_are_humane(root: Path) -> list[str]:
    """Files under 300 lines, functions under 50; tests are free to be tables."""
    wrong = []
    for path, tree in _python(root, "rackwright", "roles", "deploys"):
        lines = len(path.read_text().splitlines())
        if lines >= 300:
            wrong.append(f"{path.relative_to(root)}: {lines} lines")
        for node in _nodes(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length >= 50:
                    wrong.append(f"{path.relative_to(root)}:{node.lineno}: {node.name} has {length} lines")
    return wrong


def templates_are_templates(root: Path) -> list[str]:
    """Everything under templates/ ends in .j2 and is rendered by some code."""
    strings = {
        node.value
        for _, tree in _python(root, "rackwright", "roles")
        for node in _nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    wrong = []
    for path in sorted((root / "templates").rglob("*")):
        name = path.relative_to(root / "templates").as_posix()
        if path.is_dir():
            continue
        if path.suffix != ".j2":
            wrong.append(f"templates/{name}: does not end in .j2")
        elif not path.name.startswith("_") and not (
            {name, path.name, path.name.removesuffix(".j2")} & strings
            or any("/" in part[:-1] and name.startswith(part) for part in strings)  # f"slurm/pam.{family}.j2"
        ):
            wrong.append(f"templates/{name}: nothing renders it")
    return wrong


def no_vague_names(root: Path) -> list[str]:
    """A module's docstring describes its contents."""
    vague = {"utils.py", "util.py", "helpers.py", "common.py", "manager.py", "misc.py"}
    return [
        str(path.relative_to(root))
        for path in _files(root, "rackwright", "roles", "tests")
        if path.name in vague
    ]


def kubernetes_stands_in_its_room(root: Path) -> list[str]:
    """Kubernetes as a workload manager is known in its room alone; others ask through the protocol."""
    return [
        f"{place}:{line}: imports {module}"
        for path, tree in _python(root, "rackwright", "roles")
        for line, module in _imports(tree, hints=True)
        if module.startswith("rackwright.workload.kubernetes.")
        and not any((place := path.relative_to(root)).is_relative_to(room) for room in KUBERNETES_ROOMS)
        and place.as_posix() not in FINDS_SLURM
    ]


def slurm_stands_in_its_room(root: Path) -> list[str]:
    """Slurm's tools, and whether a cluster runs Slurm, are known in SLURM_ROOMS alone; docstrings may name it."""
    wrong = []
    for path, tree in _python(root, "rackwright", "roles"):
        place = path.relative_to(root)
        if any(place.is_relative_to(room) for room in SLURM_ROOMS):
            continue
        docs = {node.value for node in _nodes(tree) if isinstance(node, ast.Expr)}
        for node in _nodes(tree):
            if isinstance(node, ast.Compare) and '"slurm"' in ast.unparse(node).replace("'", '"'):
                wrong.append(f"{place}:{node.lineno}: compares with 'slurm'")
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if node not in docs and (tool := re.search(r"\b(scontrol|sinfo|srun|squeue|sacctmgr)\b", text)):
                wrong.append(f"{place}:{node.lineno}: names {tool[0]}")
        wrong += [
            f"{place}:{line}: imports {module}"
            for line, module in _imports(tree, hints=True)
            if module.startswith("rackwright.workload.slurm.") and place.as_posix() not in FINDS_SLURM
        ]
    return wrong


GUARDS: dict[Callable[[Path], list[str]], tuple[str, str]] = {
    rooms_import_downwards: ("rackwright/model/x.py", "from rackwright.catalog.read import catalogue"),
    only_the_command_line_prints: ("rackwright/verify/x.py", "from rich.console import Console"),
    modules_import_in_no_circle: ("rackwright/x.py", "import rackwright.x"),
    engine_knows_no_role: ("rackwright/x.py", "from rackwright.roles.base.options import BaseOptions"),
    roles_stand_alone: ("roles/base/x.py", "from rackwright.roles.slurm.options import SlurmOptions"),
    os_families_stand_in_their_room: ("roles/base/x.py", "def f(node):\n    return str(node.family) == 'el'"),
    the_driver_side_stays_in_its_room: ("rackwright/verify/x.py", "from pyinfra.api.state import State"),
    roles_have_four_files: ("roles/new/__init__.py", '"""A role without options."""'),
    deploys_are_straight_lines: ("deploys/x.py", "for role in (1, 2):\n    print(role)"),
    every_role_is_deployed: ("roles/new/__init__.py", '"""A role that nothing calls."""'),
    roles_use_declared_operations: (
        "roles/base/deploy.py",
        "from rackwright.operations import files\nfiles.file(path='/x', content='y')",
    ),
    checks_read_units_by_fact: (
        "roles/nfs/verify.py",
        "def _runs(context):\n    context.output('systemctl is-active %s', 'nfs-server.service')",
    ),
    sizes_are_humane: ("rackwright/x.py", "def long():\n" + "    pass\n" * 60),
    templates_are_templates: ("templates/base/motd.j2", "hello"),
    no_vague_names: ("rackwright/utils.py", ""),
    kubernetes_stands_in_its_room: (
        "rackwright/engine/x.py",
        "from rackwright.workload.kubernetes.control import Kubernetes",
    ),
    slurm_stands_in_its_room: ("rackwright/engine/x.py", "COMMAND = f'sinfo -N {1}'"),
}


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__)
def test_the_tree_keeps_the_rule(guard):
    assert guard(ROOT) == []


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__)
def test_the_guard_objects(guard, tmp_path):
    for room in ("rackwright", "roles", "deploys", "templates", "tests"):
        (tmp_path / room).mkdir()
    assert guard(tmp_path) == []
    name, text = GUARDS[guard]
    target = tmp_path / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    assert guard(tmp_path)


@pytest.mark.parametrize(
    ("code", "fine"),
    [
        ('"""Asks sinfo."""', True),
        ("def f(node):\n    'Runs srun.'", True),
        ("COMMAND = 'timeout 20 scontrol ping'", False),
        ("def f(node):\n    return any(one.manager == 'slurm' for one in node)", False),
        ("def f(node):\n    return 'slurm' in node.options", False),
        ("from rackwright.workload.slurm.control import Slurm", False),
        ("KIND = 'slurm'", True),
    ],
)
def test_what_names_slurm(tmp_path, code, fine):
    (tmp_path / "rackwright").mkdir()
    (tmp_path / "roles").mkdir()
    (tmp_path / "rackwright" / "x.py").write_text(code + "\n")
    assert (slurm_stands_in_its_room(tmp_path) == []) is fine


@pytest.mark.parametrize(
    ("deploy", "fine"),
    [
        ('if (o := options_for(host, "a", A)) is not None:\n    a(options=o)', True),
        ('if (o := options_for(host, "a", A)) is not None:\n    b(options=o)', False),
        ('if (o := options_for(host, "a", A)) is not None:\n    a(options=o)\n    b()', False),
        ('if (o := left_for(host, "a", A)) is not None:\n    leaves_a(options=o)', True),
        ('if (o := left_for(host, "a", A)) is not None:\n    a(options=o)', False),
        ('shipped_roles("site")', True),
        ('shipped_roles("missing")', False),
        ("def f():\n    pass", False),
        ("x = 1", False),
    ],
)
def test_what_a_straight_line_is(tmp_path, deploy, fine):
    (tmp_path / "deploys").mkdir()
    (tmp_path / "deploys" / "site.py").write_text(f'"""Order."""\nimport os\n{deploy}\n')
    assert (deploys_are_straight_lines(tmp_path) == []) is fine


@pytest.mark.parametrize(
    ("code", "fine"),
    [
        ("from rackwright.osfamily.debian import DEBIAN", False),
        ("from rackwright.osfamily import el", False),
        ("import rackwright.osfamily.el", False),
        ("TABLE = {'debian': 1}", False),
        ("name = f'deb http://m/debian bookworm {1}'", False),
        ("RELEASES = ('rocky-9',)", False),
        ('"""What Debian 12 (bookworm, debian-12) does."""', True),
        ("from rackwright.osfamily.known import RELEASES", True),
        ("name = 'debian-archive'; by_apt = node.family.package_tool == 'apt'", True),
    ],
)
def test_what_names_an_operating_system(tmp_path, code, fine):
    for room in ("rackwright", "roles", "deploys"):
        (tmp_path / room).mkdir()
    (tmp_path / "roles" / "x.py").write_text(code)
    assert (os_families_stand_in_their_room(tmp_path) == []) is fine


@pytest.mark.parametrize("path", OS_NAMED_OUTSIDE)
def test_an_exception_still_needs_to_be_one(path, tmp_path):
    (tmp_path / "rackwright").mkdir()
    (tmp_path / "rackwright" / "x.py").write_text((ROOT / path).read_text())
    assert os_families_stand_in_their_room(tmp_path)


_EACH_IN_A_FORK = """
import os, sys, traceback
import rackwright.model.options, rackwright.model.cluster  # what all of them load, once
for module in sys.argv[1:]:
    sys.stdout.flush()
    if not (child := os.fork()):
        try:
            __import__(module)
            print(module, "pyinfra" in sys.modules, flush=True)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
"""


@cache
def _loads_pyinfra() -> dict[str, bool]:
    """Each module, imported in a process where none of the others was; a module that breaks is not in it."""
    modules = [f"rackwright.roles.{role}.options" for role in _role_names()] + [*WITHOUT_PYINFRA, DRIVER]
    command = [sys.executable, "-c", _EACH_IN_A_FORK, *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=240)
    sys.stderr.write(done.stderr)  # shown with the module that is missing
    return {module: answer == "True" for module, answer in map(str.split, done.stdout.splitlines())}


def _role_names() -> list[str]:
    return sorted(path.parent.name for path in (ROOT / "roles").glob("*/__init__.py"))


@pytest.mark.parametrize("role", _role_names())
def test_options_load_without_pyinfra(role):
    assert _loads_pyinfra()[f"rackwright.roles.{role}.options"] is False


@pytest.mark.parametrize("module", WITHOUT_PYINFRA)
def test_the_command_line_process_never_loads_pyinfra(module):
    assert _loads_pyinfra()[module] is False


def test_a_process_that_loads_pyinfra_is_noticed():
    assert _loads_pyinfra()[DRIVER] is True


def test_the_document_lists_every_room_in_its_order():
    table = (ROOT / "docs" / "architecture.md").read_text().partition("| room | holds |")[2]
    cells = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    named = [room.strip("/") for cell in cells for room in re.findall(r"`([^`]+)`", cell)]
    assert named == [room for room in ROOMS_BOTTOM_UP if room != "__main__"]


def test_version_and_changelog_agree():
    from rackwright import __version__

    changelog = (ROOT / "CHANGELOG.md").read_text()
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{__version__}"' in pyproject
    assert "## Unreleased" in changelog or f"## {__version__}" in changelog
