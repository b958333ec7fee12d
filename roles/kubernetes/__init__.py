"""kubernetes: a cluster by kubeadm, from the declaration.

The CAs and the service-account key are secrets of the cluster, in the secrets store: every control-plane node gets the
same, a node joins with a client certificate in its name that is valid for minutes, and a lost control-plane node is
replaced from the store. No bootstrap token exists.
"""
