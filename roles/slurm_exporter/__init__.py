"""slurm_exporter: Slurm's data about nodes, queues, jobs, accounts and its scheduler, for Prometheus.

Decisions, each with its reason:

Two programs. The collector runs as Slurm's own user and listens nowhere; the server listens and may do nothing but read
the collector's file. With PrivateData, which the slurm role sets, Slurm shows all jobs to root, SlurmUser and its
operators alone; an operator may cancel any job and needs a record in the accounting database, which `prune` removes.
SlurmUser may do more, so the collector is isolated: no socket, no writable file but its own, no access to
Slurm's state and the database's password.

Slurm is queried once per interval, independent of scrapes. Three short queries (nodes, queue, scheduler) in
text, whose fields users cannot choose; a job's resources on each node are queried in JSON, once for each job, since all of them
every time would take minutes of CPU an hour on a large site. Accounting is queried every five minutes, for one hour.

Stale metrics vanish. A metric that does not change looks like a quiet cluster: after three intervals without an answer
the series end, and `slurm_up` and `slurm_scrape_age_seconds` remain.

One node serves them, the primary head: a second one would count every job twice.
"""
