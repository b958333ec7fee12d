"""The pieces of the site, each by itself."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from rackwright.cli import _COMMANDS
from rackwright.clusterfile.roles import role_names
from rackwright.roles.munge.options import MungeOptions
from rackwright.roles.tuning.options import TuningOptions
from tests.docs_site import commands, links, roles
from tests.docs_site.effects import Effects, listed
from tests.docs_site.markdown import code, prose, table
from tests.docs_site.navigation import SECTIONS, navigation
from tests.docs_site.option_types import default_text, type_text
from tests.proof.ledger import Ledger

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 256}, "integer, 1 to 256"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 300}, "number, at most 300, above 0"),
        ({"type": "array", "items": {"type": "string"}}, "list of text"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "mapping to integer"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text"),
        ({"enum": ["report", "repair"]}, "`report` or `repair`"),
        ({"const": "unlimited"}, '`"unlimited"`'),
        ({"$ref": "#/$defs/Journal"}, "[Journal](#journal)"),
        ({"$ref": "#/$defs/Other"}, "Other"),
        ({"type": ["integer", "null"]}, "integer"),
        ({}, "any value"),
    ],
)
def test_what_an_option_may_be(schema, text):
    assert type_text(schema, {"Journal": "#journal"}) == text


@pytest.mark.parametrize(
    ("schema", "required", "text"),
    [
        ({}, True, "**required**"),
        ({}, False, "may be left out"),
        ({"default": None}, False, "none by default"),
        ({"default": 440}, False, "default `440`"),
        ({"default": "4G"}, False, "default `4G`"),
        ({"default": ["x" * 100]}, False, "has a default"),
    ],
)
def test_its_default(schema, required, text):
    assert default_text(schema, required=required) == text


def test_a_role_has_its_options_checks_files_and_proof():
    changes = Effects({"file": {"/etc/default/munge"}}, {"lab.yaml"})
    text = roles.role_page("munge", ROOT, changes, ["[Secrets](../secrets.md)"], Ledger())
    for name, field in MungeOptions.model_fields.items():
        assert f"| `{name}` |" in text
        assert prose(field.description or "") in text
    for part in (
        "- `/etc/default/munge`",
        "`daemon-options.j2`",
        "Explained in [Secrets]",
        "## Checks",
        "not run",
    ):
        assert part in text


def test_objects_in_options_are_explained_too():
    text = roles.role_page("tuning", ROOT, Effects(), [], Ledger())
    assert "[Journal](#journal)" in text
    assert "### Journal" in text
    assert "| `max_use` | text; default `4G`<br>" in text
    assert TuningOptions.model_fields["journal"].description in text


def test_a_check_that_a_platform_lacks_is_out_of_scope_there():
    text = roles.role_page("tuning", ROOT, Effects(), [], Ledger())
    row = next(line for line in text.splitlines() if line.startswith("| `container` |"))
    inside, of = row.split(" | ")[1].split(" of ")
    assert 0 < int(inside) < int(of)
    assert "a container shares its host's kernel" in row


def test_a_command_has_its_arguments_options_and_subcommands():
    plan, lab = commands.command_page("plan"), commands.command_page("lab")
    assert "| `--limit NODESET` |" in plan
    assert "Exit status: 0 nothing to change, 2 changes pending" in plan
    assert "## rackwright lab fault" in lab
    assert "--install-completion" not in lab


def test_the_pages_that_explain_a_role_are_those_of_the_readme():
    found = roles.guides((ROOT / "README.md").read_text(), defaultdict(lambda: "A page"))
    assert found["beegfs"] == ["[A page](../storage-clients.md)"]
    assert found["cuda"] == ["[A page](../gpu-stack.md)"]
    assert "base" not in found


def test_what_click_and_markdown_would_take_for_markup_is_text():
    assert prose("a <b> and `<c>`: gpu[001]") == r"a &lt;b&gt; and `<c>`: gpu\[001\]"
    assert code("a`b") == "`` a`b ``"
    assert table(("a",), [("x|y",)]).endswith("| x\\|y |")
    assert table(("a",), []) == ""


def test_many_files_of_a_folder_are_that_folder():
    digest = "/opt/x/" + "a" * 16
    shown = listed(
        {f"{digest}/one.py", f"{digest}/two/three.py", "/etc/a", *(f"/srv/{n}" for n in range(20))}
    )
    assert shown == ["/etc/a", "/opt/x/DIGEST/ (2 files)", "/srv/ (20 files)"]


def test_no_page_is_lost():
    nav = navigation(
        ["index.md", "quickstart.md", "new.md", "alerts/A.md", "commands/index.md", "commands/plan.md"]
    )
    assert nav[:2] == [{"Home": "index.md"}, {"Start": ["quickstart.md"]}]
    assert {"Commands": ["commands/index.md", {"plan": "commands/plan.md"}]} in nav
    assert nav[-1] == {"More": ["new.md"]}


def test_the_navigation_names_every_page_of_the_documentation():
    listed_pages = {name for names in SECTIONS.values() for name in names}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - listed_pages == {"index"}


def test_links_into_the_repository_become_links_of_the_site():
    text = "[a](../inventory/lab.yaml) [b](lab.md#size) [c](../README.md#try-it) [d](https://x.y) [e](#here)"
    assert links.translated(text, "docs/x.md", "x.md") == (
        "[a](files/inventory/lab.yaml.md) [b](lab.md#size) [c](repository/readme.md#try-it) [d](https://x.y) [e](#here)"
    )
    assert links.outside(text, "x.md") == {"inventory/lab.yaml", "README.md"}
    titled = links.translated(
        "([lab.md](lab.md#size)) in [lab.md](lab.md)", "docs/x.md", "x.md", {"lab.md": "The lab"}
    )
    assert titled == "([The lab](lab.md#size)) in [lab.md](lab.md)"
    readme = links.translated("[a](docs/lab.md)", "README.md", "repository/readme.md")
    assert readme == "[a](../lab.md)"
    assert links.translated("`[a](../x)`\n\n```\n[a](../x)\n```\n", "docs/x.md", "x.md").count("(../x)") >= 1


def test_commands_and_roles_are_linked_once_and_outside_code():
    site = links.Site({"plan"}, {"slurm"})
    text = "# `rackwright plan`\n\n`rackwright plan FILE`, `rackwright plan`, `rackwright no`. The role `slurm`.\n\n```\n`rackwright plan`\n```"
    assert links.linked(text, "a/b.md", site) == (
        "# `rackwright plan`\n\n[`rackwright plan FILE`](../commands/plan.md), `rackwright plan`, `rackwright no`. "
        "The role [`slurm`](../roles/slurm.md).\n\n```\n`rackwright plan`\n```"
    )


def test_the_overviews_are_linked_where_a_page_names_them():
    text = links.linked("It has a page for each command.", "x.md", links.Site((), ()))
    assert text == "It has [a page for each command](commands/index.md)."


def test_lists_and_tables_of_forges_are_read():
    assert (
        links.readable("a\n- b\n- c\n\nd <!-- x -->\n| e |\n|---|") == "a\n\n- b\n- c\n\nd \n\n| e |\n|---|"
    )


def test_the_readme_names_every_role():
    text = (ROOT / "README.md").read_text()
    assert [role for role in role_names() if f"`{role}`" not in text] == []
    assert [name for name in _COMMANDS if f"`{name}`" not in text] == []
