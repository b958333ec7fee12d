"""weka_client: WEKA's stateless client: the agent of a declared version and digest, its network and cores, and the mounts.

Vendors' guides install the agent by piping a backend's answer into a shell. Here it comes from the tarball of a declared
release with a declared SHA-256, out of the site's `mirrors.files`. The first mount joins the node to the WEKA cluster, and
brings the cores and memory that are declared here; the agent's cgroups mode is `none`, since the others hide cores from
hwloc and so from Slurm. The agent builds the kernel modules for the running kernel at the first
mount.
"""
