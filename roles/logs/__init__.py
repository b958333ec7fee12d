"""logs: the journals of all nodes in one place, where each line remains available after its node is gone.

By default the place is a journal on the primary head. Every node uploads what it logs (systemd-journal-upload), by TLS and with
a certificate of the site's CA; an uploader remembers how far it came, so an outage of the head or of the network delays
lines and loses none. On the head a gate (rackwright.logs.gate) checks the certificate and passes the connection on to
systemd-journal-remote, which by itself accepts lines from anyone where the distribution built it without GnuTLS.
Loki and Elasticsearch or OpenSearch are the other stores; `rackwright logs` reads whichever is declared.

Only the site CA decides who may send, not what else the site trusts: `extra_trust` of the role site_ca does not
count. Each node's lines are in a separate file, so no node can write in the name of another; the fields of a line are
set by its sender. Entries about logins, sudo and runs of rackwright are kept for 90 days. How much a node may log is
set in the role tuning (`tuning.journal`).
"""
