"""slurm: controller and accounting on the heads, slurmd on the workers, clients on login nodes.

Decisions, each with its reason:

Rendered, not configless. Every node has its own /etc/slurm, written whole from the cluster file.
So each file is in the plan, drift on one node is visible there, slurmd starts while the
controller is away, and it works on releases without sackd (before 24.05), which login nodes of a
configless cluster need. The price is one reload per node after a change, which apply does anyway.

Two files, by what a change costs. slurm.conf holds what `scontrol reconfigure` takes, and a change
of it reloads the daemons; slurm-restart.conf, which it includes, holds names, ports, authentication
and places, and a change of it restarts them (as one of job_container.conf does, by its manual).
Before Slurm 23.11 a reload leaves nodes and plugins as they were, so there everything restarts.

prolog.sh and epilog.sh run the folders prolog.d and epilog.d. Slurm takes `prolog.d/*` itself, but
with 24.11 an empty folder then drains every node ("Unable to create list of paths"), scripts run
from z to a, and a failure does not name the script.

DefMemPerCPU for the cluster, DefMemPerGPU for partitions of GPU nodes. With the latter alone a job
that asks for CPUs only gets all memory of its nodes; both in one partition make it invalid.

ResumeTimeout with and without power saving. slurmctld also uses it for `scontrol reboot`, with which
users' jobs, administrators and the health role reboot nodes: one that is not back by then is DOWN
("reboot timed out"), and ReturnToService=1 does not bring it back.

Billing by the largest share of a node. A sum bills a whole node three times, and CPUs alone make GPUs
free: fair share then sees 8 GPUs with 8 CPUs as a small job. One unit for all partitions (a GPU is
100, a CPU of a CPU node 1), since usage of all partitions is added up.

Cores= by socket, and only where the catalogue knows the socket of each GPU. Slurm places CPUs and
GPUs together by socket; cores of the wrong one are worse than none. Known for the DGX H100. The DGX
A100's sockets are known in nvidia-smi's order, which need not be that of /dev/nvidiaN.

Accounting entities before slurmctld: it refuses a partition whose QOS slurmdbd does not know. Where
slurmdbd runs on another node, controllers wait for its answer, and its node comes first where `waves.size` splits
an apply.

Archived before purged: slurmdbd alone deletes for good, and a site finds out years later, when it has
to account for a grant. A year of a busy cluster is some GiB of files that `sacctmgr archive load` reads.

A pair of controllers has its state on a declared mount. A folder that is only there looks the same to
`test -w`: slurmctld would start on it with no jobs, and both would act as primary. BindsTo= on
the mount's unit, not RequiresMountsFor= alone, because that does not stop slurmctld when an operator
unmounts it (systemd.unit(5), read 2026-11-23).

In containers nothing is contained: slurmd cannot own a cgroup v2 tree there, so processes are
tracked by linuxproc, and /tmp, devices, memory and pam_slurm_adopt are out of scope by declaration.
GPUs of a container are links to /dev/null: counted and scheduled, with no device behind them.
"""
