"""Other projects' software in Kubernetes: Kueue, operators, a pod network, storage drivers.

A manifest or chart is a file beside the cluster file, read and committed like code, with the SHA-256 that the site declares:
nothing is fetched during an apply. Objects go through the same comparison as those of every other role, so that drift is seen
and what is not declared any more is deleted. Charts are rendered on the control node by `helm template`; hooks of charts do not
run.
"""
