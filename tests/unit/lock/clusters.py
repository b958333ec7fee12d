"""Small clusters with GPUs, for the lock."""

from __future__ import annotations

from pathlib import Path

TEXT = """\
version: 1
cluster: {name: demo, domain: demo.test}
networks:
  mgmt: {purpose: management, cidr: 10.1.0.0/24}
ssh: {user: admin}
%(skus)snodes:
  - {nodes: head1, roles: [head], os: debian-13, sku: cpu-16c-64g, addresses: {mgmt: 10.1.0.10}}
%(groups)s%(stack)s"""


def write_cluster(folder: Path, kinds: dict[str, str], stack: str | None, skus: str = "") -> Path:
    """A cluster file: worker kinds by SKU with their OS, and the section gpu_stack as YAML flow text."""
    groups = "".join(
        f"  - {{nodes: 'w{number}[1-2]', roles: [worker], os: {os}, sku: {sku}, "
        f"addresses: {{mgmt: 10.1.0.{number + 1}1}}}}\n"
        for number, (sku, os) in enumerate(kinds.items(), start=1)
    )
    section = "" if stack is None else f"gpu_stack: {stack}\n"
    path = folder / "demo.yaml"
    path.write_text(TEXT % {"groups": groups, "stack": section, "skus": skus})
    return path
