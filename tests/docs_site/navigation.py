"""Which page stands where. A page that is not listed here goes under "More", so that none is lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Start": ("quickstart", "concepts", "your-site", "first-cluster", "faq"),
    "Operate": (
        "sick-node", "upgrade", "plan", "reboots", "kubernetes-drains", "drift", "operators", "map", "top", "terminal", "secrets", "backup",
        "drill", "field", "json",
    ),
    "Declare": ("cluster-file", "examples", "catalogue", "lock", "bundle", "import"),
    "Bare metal": ("bare-metal", "bmc", "images", "installers", "firmware", "lab", "vagrant"),
    "Nodes": (
        "kernel", "network", "dns", "firewall", "users", "accounts", "home", "integrity", "site-ca", "software",
        "containers",
    ),
    "GPU, fabric, Slurm": ("gpu-stack", "fabric", "hpc-stack", "slurm-state", "burnin"),
    "Kubernetes, Ray": ("kubernetes", "kubernetes-drains", "kubernetes-addons", "slurm-on-kubernetes", "ray", "bundle"),
    "Storage": ("storage", "storage-layout", "storage-clients", "scratch", "storage-bench"),
    "Health and monitoring": (
        "health", "health-checks", "prometheus", "alertmanager", "alerts", "exporters", "slurm-exporter", "dashboards",
        "metrics", "job-metrics", "logs",
    ),
    "Project": ("proof", "benchmarks", "security", "architecture", "pyinfra"),
}  # fmt: skip
"""Title -> pages of docs/ without `.md`; one that does not exist (yet) is left out."""
UNLISTED_FOLDERS = ("alerts/", "dashboards/", "files/")
"""Pages that others link to, too many for the navigation."""


def navigation(pages: Iterable[str]) -> list[Any]:
    """mkdocs' `nav` for these pages, paths below docs/."""
    there = sorted(page for page in pages if not page.startswith(UNLISTED_FOLDERS))
    listed = ["index", *(name for names in SECTIONS.values() for name in names)]
    nav: list[Any] = [{"Home": "index.md"}]  # in no section, or mkdocs does not take it for the home page
    for title, names in SECTIONS.items():
        nav.append({title: [f"{name}.md" for name in names if f"{name}.md" in there]})
    for title, folder in (("Commands", "commands/"), ("Roles", "roles/")):
        nav.append({title: [_entry(page) for page in _index_first(there) if page.startswith(folder)]})
    nav.append(
        {"Repository": [{_short(page).upper(): page} for page in there if page.startswith("repository/")]}
    )
    more = [page for page in there if "/" not in page and page.removesuffix(".md") not in listed]
    return [*nav, *([{"More": more}] if more else [])]


def _index_first(pages: list[str]) -> list[str]:
    return sorted(pages, key=lambda page: (not page.endswith("/index.md"), page))


def _entry(page: str) -> str | dict[str, str]:
    """A generated page under its bare name; an overview is the page of its section."""
    return page if _short(page) == "index" else {_short(page): page}


def _short(page: str) -> str:
    return page.rpartition("/")[2].removesuffix(".md")
