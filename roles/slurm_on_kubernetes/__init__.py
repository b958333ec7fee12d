"""slurm_on_kubernetes: Slurm's daemons as pods, from the settings of the slurm section.

Decisions, each with its reason:

The same options and templates. The slurm role renders its files for pods (`rackwright.workload.slurm.pods`), so
partitions, accounts, QOS and GPUs are declared once, whether the daemons run on nodes or in pods.

One image for all daemons, of distribution packages (`rackwright image pods`): the same release everywhere, and
one archive to carry to a site without Internet access.

slurmd on the host's network by default: RDMA, NCCL and PMIx use the node's ports, and srun has to be reached from
every node, so the login pod is on it too. With `network: pod` slurmd answers at its name in the cluster's DNS; then
each node has its own DaemonSet, since all pods of one share their host name.

slurmd's pods are replaced by this role and not by Kubernetes (`OnDelete`), and only on idle nodes: a new pod ends the
jobs of the old one.

Services with an address each for slurmctld, slurmdbd and the database: Slurm keeps the addresses that it has
resolved, and a pod that is started again has another one.

slurmctld, slurmdbd and the database wait in their start script for what they need, instead of failing until it is
there: a container that restarts is then a fault, and verify reports it.

Secrets never lie in the objects' file: they go from the secrets store through kubectl's stdin.

A change of what `scontrol reconfigure` takes over waits until every pod has the new files, then reconfigures; a change
of names, ports or scripts is in an annotation of the pods, whose controllers replace them.

munged runs in a second container beside each daemon, so that it is started again when it fails.
"""
