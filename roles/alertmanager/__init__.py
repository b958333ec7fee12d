"""alertmanager: takes the alerts of Prometheus, groups them, leaves out what follows from a worse one, and sends the rest.

A dead leaf switch is one notification, since its nodes' alerts are grouped by leaf, and held back while the switch's own
alert fires. What rackwright itself takes down is silenced while it does so (rackwright.silences).

Passwords, keys and URLs that hold a key are in separate files, which Alertmanager alone can read; its settings name
these files. They are checked by the node's own amtool before they land.
"""
