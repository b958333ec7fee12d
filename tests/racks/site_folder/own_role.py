"""A role and a check that a site writes itself, as its operator would add them to a new site folder."""

from __future__ import annotations

import textwrap
from pathlib import Path

FILES = {
    "roles/shared/__init__.py": '"""shared: a folder that users of a worker share."""\n',
    "roles/shared/options.py": '''
        """Options of the shared role."""

        from __future__ import annotations

        from typing import ClassVar

        from pydantic import Field
        from rackwright.model.options import RoleOptions
        from rackwright.model.types import NodeRole


        class SharedOptions(RoleOptions):
            """The shared folder of workers."""

            applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER})

            path: str = Field(pattern="^/", description="Absolute path of the folder.")
            quota_gib: int = Field(default=10, ge=1, description="GiB that its README names.")
        ''',
    "roles/shared/deploy.py": '''
        """Brings a worker to what the shared role declares."""

        from __future__ import annotations

        from pyinfra.api.deploy import deploy
        from rackwright.operations import files
        from rackwright.render import render

        from roles.shared.options import SharedOptions


        @deploy("shared")
        def shared(options: SharedOptions) -> None:
            """The folder, then its README."""
            files.directory(name="Create the shared folder", path=options.path, mode="1777")
            files.file(
                name="Write its README",
                path=f"{options.path}/README",
                content=render("shared/readme.j2", options=options),
            )
        ''',
    "roles/shared/verify.py": '''
        """What the shared role claims."""

        from __future__ import annotations

        from rackwright.claims.check import Check, CheckContext, fail

        from roles.shared.options import SharedOptions


        def _mode(context: CheckContext[SharedOptions]) -> str:
            found = context.output("stat -c %%a %s", context.options.path).strip()
            if found != "1777":
                fail(f"{context.options.path} has mode {found}, declared 1777")
            return f"{context.options.path} has mode 1777"


        CHECKS = (Check("every user can write to the shared folder", _mode),)
        ''',
    "templates/shared/readme.j2": "Shared by all users; {{ options.quota_gib }} GiB each.\n",
    "checks/test_shared.py": """
        import pytest

        pytestmark = pytest.mark.node_roles("worker")


        def test_ada_can_write(host, node, record_property):
            path = node.options["shared"].path
            done = host.run("runuser -u ada -- touch %s/of-ada", path)
            assert done.rc == 0, done.stderr
            record_property("evidence", f"ada wrote {path}/of-ada")
        """,
}
_IMPORTS = "from roles.motd.options import MotdOptions\n"
_CALL = """
if (o := options_for(host, "shared", SharedOptions)) is not None:
    shared(options=o)
"""


def add(folder: Path, section: str) -> None:
    """Add the role with this section of the cluster file, its line in the deploy, and the check."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
    deploy = folder / "deploys/site.py"
    imports = "from roles.shared.deploy import shared\nfrom roles.shared.options import SharedOptions\n"
    text = deploy.read_text()
    if imports not in text:
        deploy.write_text(text.replace(_IMPORTS, _IMPORTS + imports) + _CALL)
    declare(folder, section)


def declare(folder: Path, section: str) -> None:
    """Set the section of the role in the cluster file."""
    file = folder / "cluster.yaml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("  shared:")]
    lines.insert(lines.index("roles:") + 1, f"  shared: {section}")
    file.write_text("\n".join(lines) + "\n")
