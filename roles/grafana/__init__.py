"""grafana: dashboards for the cluster's staff, on the primary head.

Settings, data sources, folders and dashboards are files that rackwright writes; changes made in the browser do
not stay. Every page requires a login, and sign-up is disabled. Passwords are in separate files,
which the settings name (`$__file{}`).

In the open-source edition every user who can log in can send any query to any data source of their organization, regardless of the
dashboards they see ("Data source permissions", grafana.com/docs, read 2026-11-27: Enterprise and Cloud alone have them). So
accounts are for staff: a directory's users get one by their group, and all others are refused. The cluster's users see
their own jobs with the role job_metrics, where the server decides what is theirs.
"""
