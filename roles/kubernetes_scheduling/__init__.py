"""Who may use how much of a Kubernetes cluster, from accounts, users and QOS in the slurm role's fields.

Without Kueue: a namespace for each account, with a ResourceQuota as its hard limit, and a PriorityClass for each QOS, by
which the scheduler preempts. With Kueue: a queue for each account in a tree of cohorts, so that an account's limit is
its guaranteed share, and what others leave idle is lent to it until they want it back.

Several of Slurm's settings have no equivalent in Kubernetes (limits by job, time limits, QOS by user); docs/kubernetes-addons.md
lists them.
"""
