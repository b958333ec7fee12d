"""Kubernetes as a workload manager: nodes are cordoned with a reason, and pods are sorted by what a drain does to them.

A drain sorts the pods of a node by their controller:

- Parts of the node stay: pods of DaemonSets, and static pods.
- Services are evicted through the Eviction API, which respects PodDisruptionBudgets: pods of ReplicaSets (and so of
  Deployments), StatefulSets and ReplicationControllers, and other pods of kube-system. Their emptyDir volumes are lost, as
  with `kubectl drain --delete-emptydir-data`.
- Jobs are waited for: pods of Jobs, pods without a controller, and those of controllers that are not known here, such as
  RayCluster or MPIJob.

The label `rackwright.dev/drain` on a pod decides otherwise: `ignore`, `evict` or `wait`. Finished pods count as gone, and so
do pods that the control plane has given up on a node which does not answer.

The reason of a drain is the annotation `rackwright.dev/drain-reason`, its author and time `rackwright.dev/drained-by`.
`kubectl uncordon` leaves both behind, so a reason of rackwright's own counts only while the API server records that
rackwright has set `spec.unschedulable` (metadata.managedFields).

`output`, `patches`, `on_node` and their imports also run on nodes: standard library only, Python 3.9.
"""
