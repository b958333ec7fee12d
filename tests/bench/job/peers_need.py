"""What Ansible's modules want on a node, and rackwright does not: a whole Python, and its own name resolved."""

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.operations import files, packages


@deploy("peers")
def peers() -> None:
    """Installed before anything is measured."""
    hosts = f"127.0.0.1 localhost\n127.0.0.1 {host.name}\n"
    files.file(name="Resolve the node's own name", path="/etc/hosts", content=hosts)
    packages.installed(name="Install a whole Python", packages=("python3", "python3-apt"))


peers()
