"""gpfs_client: IBM Storage Scale (GPFS): packages by digest, the kernel layer for the declared kernel, and the mounts.

IBM's packages are licensed, so a site keeps them at its `mirrors.files` and declares each with its SHA-256. The kernel
layer is built on the node by mmbuildgpl, which builds for the kernel that runs: while another one is declared, it waits
for the reboot. A node joins a Storage Scale cluster by an administrator's mmaddnode on a node of that cluster, which no
role here can do; `verify` claims that it has.
"""
