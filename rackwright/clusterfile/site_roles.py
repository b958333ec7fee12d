"""Loads the roles of the site that a cluster file declares; what is wrong with them is a mistake of the file."""

from __future__ import annotations

import ast
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

from rackwright.boundary import printable
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.roles import role_names
from rackwright.documents.yaml_data import Data
from rackwright.shipped import TEMPLATES
from rackwright.site_folder import DEPLOY, PACKAGE, SiteFolder, open_to_others

_FILES = ("__init__.py", "options.py", "deploy.py", "verify.py")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = {"checks"}
"""What reports call the site's own checks."""


def load_site_roles(report: Report, site: SiteFolder, sections: Data) -> None:
    """Add the declared roles of the site to the report's, as far as they can be used, and note what is wrong."""
    declared = list(sections) if isinstance(sections, dict) else []
    file = Path(report.document.file)
    for role in declared:
        if role not in site.roles:
            continue
        wrong = list(_mistakes(site, role, file))
        if not wrong:
            try:
                report.roles.load(role)
            except Exception as error:  # noqa: BLE001 - the site's own code may raise anything
                wrong.append((_cause(error, site), "correct the role's options"))
        for message, hint in wrong:
            report.add(("roles", role), message, hint, key=True)
    _check_templates(report, site)
    _check_deploy(report, site, declared)


def _mistakes(site: SiteFolder, role: str, cluster_file: Path) -> Iterator[tuple[str, str]]:
    """Why a role of the site cannot be used, each with a hint."""
    folder = site.roles_folder / role
    shown = f"{PACKAGE}/{role}"
    if role in role_names() or role in _TAKEN:
        yield f"The name {role} of {shown} is taken by rackwright.", f"rename it, e.g. {PACKAGE}/site_{role}"
        return
    if not _NAME.fullmatch(role):
        yield f"{shown} is not named like a Python module.", "use lower-case letters, digits and `_`"
        return
    for place in (site.path, site.roles_folder, folder):
        if (why := open_to_others(place, cluster_file)) is not None:
            yield (
                f"{shown} is not loaded: {why}.",
                f"check what is in it, then `chown` or `chmod o-w {place}`",
            )
            return
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        yield (
            f"{shown} has no {' and no '.join(missing)}.",
            "a role has four files: `rackwright init` writes an example of each",
        )
    for name in _FILES:
        path = folder / name
        if path.is_file() and isinstance(parsed := _parse(path), str):
            yield f"{shown}/{name}:{parsed}", "correct the file"


def _parse(path: Path) -> ast.Module | str:
    """The module, or `LINE: what is wrong`."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        return f"{error.lineno}: {printable(error.msg, 200)}."
    except (OSError, ValueError) as error:
        return f"1: {printable(str(error), 200)}."


def _cause(error: Exception, site: SiteFolder) -> str:
    """The exception, with the last place in the site's own code where there is one."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(site.path):
            place = f"{path.relative_to(site.path)}:{frame.lineno}: "
    return printable(f"{place}{type(error).__name__}: {error}", 400)


def _check_templates(report: Report, site: SiteFolder) -> None:
    """Note templates that stand where rackwright's own are read."""
    for folder in sorted(site.templates.glob("*/")) if site.roles else ():
        if folder.is_dir() and (TEMPLATES / folder.name).is_dir():
            report.add(
                ("roles",),
                f"templates/{folder.name} is never read: rackwright has templates of that name.",
                f"rename it, e.g. templates/site_{folder.name}; some roles take extra lines for their files: `extra`",
                key=True,
            )


def _check_deploy(report: Report, site: SiteFolder, declared: list[str]) -> None:
    """Note declared roles that no line of the site's deploy applies."""
    if site.deploy is None:
        for role in declared:
            if role in report.roles.of_site:
                report.add(
                    ("roles", role),
                    f"No deploy applies the role {role}: {DEPLOY} is missing beside the cluster file.",
                    "`rackwright init` writes an example of it",
                    key=True,
                )
        return
    for place in (site.path, site.deploy.parent, site.deploy):
        if (why := open_to_others(place, Path(report.document.file))) is not None:
            hint = f"check what is in it, then `chown` or `chmod o-w {place}`"
            report.add(("roles",), f"{DEPLOY} is not run: {why}.", hint, key=True)
            return
    parsed = _parse(site.deploy)
    if isinstance(parsed, str):
        report.add(("roles",), f"{DEPLOY}:{parsed}", "correct the file", key=True)
        return
    applied, shipped = _applied(parsed)
    for role in declared:
        if role in applied or (shipped and role in role_names()) or role not in report.roles.names:
            continue
        line = "shipped_roles()" if role in role_names() else f'if (o := options_for(host, "{role}", ...)):'
        report.add(
            ("roles", role), f"No line of {DEPLOY} applies the role {role}.", f"add `{line}`", key=True
        )


def _applied(module: ast.Module) -> tuple[set[str], bool]:
    """Names of the roles whose options a deploy asks for, and whether it applies the shipped ones."""
    names: set[str] = set()
    shipped = False
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        shipped = shipped or node.func.id == "shipped_roles"
        if node.func.id == "options_for":
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            names |= {
                one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)
            }
    return names, shipped
