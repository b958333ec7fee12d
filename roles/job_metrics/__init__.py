"""job_metrics: users see what their own jobs did with GPUs, network and filesystems, and nothing of other users'.

Prometheus has no users: anyone who can query it sees everything, so users cannot reach it. They run `job-metrics JOB` on a node; it
creates a MUNGE credential, which proves their identity with the cluster's own key, and a server beside Prometheus answers for
that user alone. The user supplies a job's number and never an expression, and each expression is joined with the series
that names the job's owner, so that Prometheus itself returns nothing for another user's job.
"""
