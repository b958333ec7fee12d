"""A page for each role, from its options, its checks, its templates and the proof ledger."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rackwright.claims.check import Check
from rackwright.clusterfile.roles import options_class, role_names
from rackwright.model.options import RoleOptions
from rackwright.model.platforms import Capability, why_lacking
from rackwright.model.types import NodeRole, Platform
from rackwright.osfamily.known import FAMILIES
from tests.docs_site.effects import KINDS, Effects, listed
from tests.docs_site.markdown import code, page, prose, section, table
from tests.docs_site.option_types import default_text, is_nullable, named_objects, type_text
from tests.proof import ledger as ledgers
from tests.proof.ledger import Ledger
from tests.proof.suites import SUITES, Tier

FOLDER = "roles"
_LINK = re.compile(r"\[([^\]]+)\]\(docs/([\w.-]+)\)")


def pages(root: Path, found: Mapping[str, Effects], guides: Mapping[str, list[str]]) -> dict[str, str]:
    """Path below docs/ -> text: the overview and a page for each role.

    `found` is what each role changes, `guides` the hand-written pages that explain it.
    """
    ledger = ledgers.load(root / "docs/proof.json")
    rows = [(f"[{code(role)}]({role}.md)", prose(_summary(role))) for role in role_names()]
    overview = page(
        "# Roles",
        "A role is a section under `roles:` of the cluster file. Each page is made from the role's code: its "
        "options, its checks, and what it changes on the nodes of the example clusters.",
        table(("role", "what it does"), rows),
    )
    return {
        f"{FOLDER}/index.md": overview,
        **{
            f"{FOLDER}/{role}.md": role_page(
                role, root, found.get(role, Effects()), guides.get(role, []), ledger
            )
            for role in role_names()
        },
    }


def role_page(role: str, root: Path, changes: Effects, guides: list[str], ledger: Ledger) -> str:
    """The page of one role."""
    options = options_class(role)
    checks: tuple[Check, ...] = importlib.import_module(f"rackwright.roles.{role}.verify").CHECKS
    templates = sorted(path.name for path in (root / "templates" / role).glob("*.j2"))
    return page(
        f"# Role {role}",
        prose(_summary(role)),
        _facts(role, options, guides),
        section("Options", _options(options, role)),
        section("Checks", _checks(checks)),
        section("What it changes", _changes(changes, templates)),
        section("Platforms", _platforms(role, checks)),
        section("Proof", _proof(role, ledger)),
        section("Why it is done this way", prose(_docstring(role).partition("\n\n")[2])),
    )


def _docstring(role: str) -> str:
    return inspect.getdoc(importlib.import_module(f"rackwright.roles.{role}")) or ""


def _summary(role: str) -> str:
    text = " ".join(_docstring(role).split("\n\n")[0].split()).removeprefix(f"{role}: ")
    return text[:1].upper() + text[1:]


def _facts(role: str, options: type[RoleOptions], guides: list[str]) -> str:
    held = "every node" if options.applies_to == frozenset(NodeRole) else _words(sorted(options.applies_to))
    lines = [f"- Runs on: {held}, where the cluster file has a section `{role}`."]
    if inspect.getdoc(options.runs_on) != inspect.getdoc(RoleOptions.runs_on) and options.runs_on.__doc__:
        lines.append(f"- Further: {prose(' '.join(options.runs_on.__doc__.split()))}")
    if options.secrets:
        lines.append(
            f"- Secrets: {_words(code(name) for name in options.secrets)} ([secrets](../secrets.md))."
        )
    if guides:
        lines.append(f"- Explained in {_words(guides)}.")
    return "\n".join(lines)


def _words(items: Iterable[str]) -> str:
    *front, last = [str(item) for item in items] or [""]
    return f"{', '.join(front)} and {last}" if front else last


def _options(options: type[RoleOptions], role: str) -> str:
    schema = options.model_json_schema()
    objects = named_objects(schema)
    links = {name: f"#{name.lower()}" for name in objects}
    parts = [_keys(schema, links) or "It has no options."]
    for name, one in sorted(objects.items()):
        parts.append(section(name, page(prose(one.get("description", "")), _keys(one, links)), level=3))
    return page(f"Below `roles: {role}:` of the cluster file.", *parts)


def _keys(schema: Mapping[str, Any], links: Mapping[str, str]) -> str:
    required = frozenset(schema.get("required", ()))
    return table(
        ("key", "meaning"),
        (
            (code(name), _meaning(one, links, required=name in required))
            for name, one in schema.get("properties", {}).items()
        ),
    )


def _meaning(schema: Mapping[str, Any], links: Mapping[str, str], *, required: bool) -> str:
    """Type, default and description; narrow enough for a telephone."""
    kind = type_text(schema, links) + (" or `null`" if is_nullable(schema) and required else "")
    return f"{kind}; {default_text(schema, required=required)}<br>{prose(schema.get('description', ''))}"


def _checks(checks: tuple[Check, ...]) -> str:
    if not checks:
        return ""
    rows = [
        (prose(check.name), _words(sorted(check.needs)) if check.needs else "", _notes(check))
        for check in checks
    ]
    return page(
        "What `rackwright verify` claims of each node where the role runs. A check whose need the node's declared "
        "platform lacks is OUT OF SCOPE there, with the reason.",
        table(("claim", "needs", "how"), rows),
    )


def _notes(check: Check) -> str:
    notes = [
        "once for the cluster, from the primary head" if check.scope == "cluster" else "",
        "where it applies" if check.applies is not None else "",
        f"may take {check.settle_seconds} s to come true" if check.settle_seconds else "",
        "runs a job on the node" if check.in_service else "",
        f"limit {check.timeout_seconds} s" if check.timeout_seconds != 60 else "",
    ]
    return ", ".join(note for note in notes if note)


def _changes(changes: Effects, templates: list[str]) -> str:
    parts = []
    for kind, title in KINDS.items():
        if changes.targets.get(kind):
            lines = "\n".join(f"- {code(target)}" for target in listed(changes.targets[kind]))
            parts.append(f"**{title}**\n\n{lines}")
    if parts:
        names = _words(code(name) for name in sorted(changes.examples))
        parts.insert(0, f"On nodes of {names}, before anything is installed:")
    if templates:
        parts.append(f"Its texts are {_words(code(name) for name in templates)} in `templates/`.")
    return page(*parts) if parts else ""


def _platforms(role: str, checks: tuple[Check, ...]) -> str:
    rows = [_platform_row(platform, checks) for platform in Platform] if checks else []
    software = [
        (
            str(family),
            _words(code(name) for name in family.software[role].packages),
            code(family.software[role].unit or "none"),
        )
        for family in FAMILIES.values()
        if role in family.software and family.software[role].packages
    ]
    return page(
        table(("platform", "checks in scope", "out of scope because"), rows),
        table(("OS family", "packages", "unit"), software),
    )


def _platform_row(platform: Platform, checks: tuple[Check, ...]) -> tuple[str, str, str]:
    reasons: dict[str, None] = {}
    inside = 0
    for check in checks:
        lacking = [
            reason
            for need in sorted(check.needs, key=list(Capability).index)
            if (reason := why_lacking(platform, need))
        ]
        inside += not lacking
        reasons |= dict.fromkeys(lacking)
    return code(str(platform)), f"{inside} of {len(checks)}", "; ".join(reasons)


def _proof(role: str, ledger: Ledger) -> str:
    rows = [
        (
            f"[{code(suite.name)}](../proof.md#{suite.name})",
            prose(suite.proves),
            _last_run(suite.name, ledger),
        )
        for suite in SUITES
        if f"roles/{role}" in suite.paths
    ]
    if not rows:
        return (
            "No suite of [the proof](../proof.md) names this role. It is tested by its unit tests alone, or by the "
            "racks of `make test`."
        )
    return page(
        "Suites of `make proof` whose result depends on this role:",
        table(("suite", "what it proves", "last full run"), rows),
    )


def _last_run(suite: str, ledger: Ledger) -> str:
    record = ledger.record(suite, Tier.FULL)
    return "not run" if record is None else f"{record.result} {record.date:%Y-%m-%d}"


def guides(readme: str, titles: Mapping[str, str]) -> dict[str, list[str]]:
    """By role, links to the pages that explain it: those of its row in README's table of roles.

    `titles` are the titles of the pages by path below docs/.
    """
    found: dict[str, list[str]] = {}
    for row in re.findall(r"^\| .+ \|$", readme.partition("## Roles")[2].partition("\n## ")[0], re.MULTILINE):
        subject, _, names = row.strip("| ").partition(" | ")
        for text, target in _LINK.findall(names):
            for role in re.findall(r"`(\w+)`", text):
                found.setdefault(role, []).append(target)
        for _, target in _LINK.findall(subject):
            for role in re.findall(r"`(\w+)`", names):
                found.setdefault(role, []).append(target)
    return {
        role: [f"[{titles[target]}](../{target})" for target in targets] for role, targets in found.items()
    }
