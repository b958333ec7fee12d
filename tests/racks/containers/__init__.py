"""docker, containerd, podman and a registry, really installed on two nodes that may run containers."""
