"""The lab racks that are measured: a head and as many workers as it takes."""

_FILE = """\
version: 1
cluster: {{name: {name}{size}, domain: bench.test}}
defaults: {{os: debian-13, platform: container, sku: lab-node, lab: {{cpus: 2, memory_mib: {memory_mib}}}}}
networks:
  management: {{purpose: management, cidr: 10.78.0.0/22, gateway: 10.78.0.1}}
ssh: {{user: rack, key: id_ed25519, known_hosts: known_hosts}}
mirrors: {{apt_proxy: "http://10.78.0.1:3142"}}
nodes:
  - {{nodes: "head1", roles: [head], addresses: {{management: 10.78.0.10}}}}
{workers}
roles: {{{roles}}}
"""
_WORKERS = '  - {{nodes: "worker[1-{count}]", roles: [worker], addresses: {{management: 10.78.0.11}}}}'


def cluster_file(name: str, size: int, *, memory_mib: int, roles: dict[str, str]) -> str:
    """The cluster file of a rack of `size` nodes; options of each role as YAML in one line."""
    return _FILE.format(
        name=name,
        size=size,
        memory_mib=memory_mib,
        workers=_WORKERS.format(count=size - 1) if size > 1 else "",
        roles=", ".join(f"{role}: {options}" for role, options in roles.items()),
    )
