"""job_metrics: users see what their own jobs did with GPUs, network and filesystems, and nothing of other users'.

Prometheus knows no users: who may query it sees all. So users do not reach it. They run `job-metrics JOB` on a node; it
makes a MUNGE credential, which says who they are with the cluster's own key, and a server beside Prometheus answers for
that user alone. The user supplies a job's number and never an expression, and each expression is joined with the series
that says whose job it is, so that it is Prometheus that returns nothing for another user's job.
"""
