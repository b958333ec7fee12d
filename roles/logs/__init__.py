"""logs: the journals of all nodes in one place, where each line can be found although its node is gone.

By default the place is a journal on the primary head. Every node uploads what it logs (systemd-journal-upload), by TLS and with
a certificate of the site's CA; an uploader remembers how far it came, so an outage of the head or of the network delays
lines and loses none. On the head a gate of ours (rackwright.logs.gate) checks the certificate and passes the node on to
systemd-journal-remote, which by itself takes lines from everyone where the distribution built it without GnuTLS.
Loki and Elasticsearch or OpenSearch are the other stores; `rackwright logs` reads whichever is declared.

Who may send is decided by the site's CA alone, not by what else the site trusts: `extra_trust` of the role site_ca has no
say here. A node's lines are in a file of its own, so none can write in another one's name; the fields of a line are
its sender's words. Entries about logins, sudo and runs of rackwright are kept for 90 days. How much a node may log is
the role tuning's business (`tuning.journal`).
"""
