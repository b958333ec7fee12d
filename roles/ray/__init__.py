"""ray: a Ray cluster that starts with the machines: the head on one node, a worker on every node that serves Ray.

Every node has the same Python environment, of wheels whose hashes are locked. Processes talk TLS with certificates of the
site's CA, and every request carries the cluster's token, which Ray itself checks (RAY_AUTH_MODE, from Ray 2.52 on). What
the head must remember is in a Redis on that node, so that the head's processes may die and come back. A user who has the
token may do everything in Ray: all jobs run as the user `ray`, and are not protected from each other.
"""
