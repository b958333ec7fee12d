"""slurm_exporter: what Slurm knows of nodes, queues, jobs, accounts and its scheduler, for Prometheus.

Decisions, each with its reason:

Two programs. The collector runs as Slurm's own user and listens nowhere; the server listens and may do nothing but read
the collector's file. With PrivateData, which the slurm role sets, Slurm shows all jobs to root, SlurmUser and its
operators alone; an operator may cancel any job and needs a record in the accounting database, which `prune` removes.
SlurmUser may do more, so it is kept where no one can talk to it: no socket, no writable file but its own, no access to
Slurm's state and the database's password.

Slurm is asked once in an interval, however many scrapes there are. Three short questions (nodes, queue, scheduler) in
text, whose fields users cannot choose; what a job has on each node is asked in JSON, once for each job, as all of it
every time would take minutes of CPU an hour on a large site. Accounting is asked every five minutes, for one hour.

Old figures vanish. A figure that stays as it was looks like a quiet cluster: after three intervals without an answer
the series end, and `slurm_up` and `slurm_scrape_age_seconds` remain.

One node serves them, the primary head: a second one would count every job twice.
"""
