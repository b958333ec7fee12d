"""What ships with rackwright: its deploy and its templates; and which deploy a cluster runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import CodeType

from rackwright.site_folder import site_folder

SITE_DEPLOY = Path(__file__).resolve().parent / "deploys" / "site.py"
TEMPLATES = Path(__file__).resolve().parent / "templates"


@cache
def template_source(name: str) -> str:
    """The text of `templates/<role>/<name>.j2` itself, not rendered."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def deploy_of(cluster_file: Path) -> Path:
    """The site's `deploys/site.py` beside the cluster file, or else the shipped one."""
    return site_folder(cluster_file).deploy or SITE_DEPLOY


def shipped_roles(part: str = "site") -> None:
    """Every shipped role in its order, each where the cluster file has it: a line of a site's own deploy.

    + part: name of one of the shipped deploys, of which `site` is the whole
    """
    path = SITE_DEPLOY.with_name(f"{part}.py")
    exec(_compiled(path), {"__file__": str(path), "__name__": "deploy"})  # noqa: S102 - as pyinfra runs a deploy


@cache
def _compiled(path: Path) -> CodeType:
    return compile(path.read_text(), str(path), "exec")
