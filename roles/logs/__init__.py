"""logs: the journals of all nodes in one place, where each line can be found although its node is gone.

By default the place is a journal on the primary head (systemd-journal-remote): every node uploads what it logs by TLS with a
certificate of the site's CA, and nobody without one may send. An uploader remembers how far it came, so an outage of
the head or of the network delays lines and loses none. Loki and Elasticsearch or OpenSearch are the other two stores; `rackwright
logs` reads whichever is declared.

Who may send is decided by the site's CA alone, not by what else the site trusts: `extra_trust` of the role site_ca has
no say here. A node's lines are in a file named after its certificate, so no node can write in another one's name; the
fields of a line are its sender's own words. Entries about logins, sudo and runs of rackwright are kept for 90 days.
How much a node may log is the role tuning's business (`tuning.journal`).
"""
