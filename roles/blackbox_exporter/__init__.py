"""blackbox_exporter: probes nodes from outside - ping, ssh, certificates, names - for what they cannot report themselves.

Runs on the primary head. Its probes follow from the cluster file: every node's addresses on the head's own networks,
its sshd, every service with a certificate of the site's CA, every server of names, and what the site adds. Prometheus
hands it one address at a time, with the password: without it, no client can probe from the head.
"""
