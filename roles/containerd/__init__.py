"""containerd: its configuration in the format of the release, its registries, its unit, crictl.

With docker on the same node there is one containerd and two users of it: docker keeps to its own
namespace (moby), Kubernetes and ctr to theirs. So both roles take the daemon from the same source
(refused otherwise), this one writes its configuration, and it comes first in the order of roles.

A restart does not affect containers, since each has its own shim. hosts.toml is read at every pull.
"""
