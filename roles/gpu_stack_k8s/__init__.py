"""GPUs of the nodes in Kubernetes: the device plugin or the DRA driver, the RuntimeClass, labels from the declaration.

Driver and container toolkit stay those of the roles nvidia_driver and nvidia_container_toolkit, at the locked versions;
NVIDIA's operators are configured to install neither. So a node's driver is the locked one in every workload, and a change
of it is an apply in waves, not a DaemonSet's rollout. dcgm-exporter stays the host's for the same reason.

Labels have GFD's names, so that manifests written for GFD select nodes here, but their values come from the cluster
file: a node that lost a GPU keeps its label, and verify reports that it offers fewer GPUs than its SKU has.
"""
