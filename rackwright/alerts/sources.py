"""Where thresholds come from; each with the day it was read."""

from __future__ import annotations

MIXIN = "node_exporter's node-mixin, alerts/alerts.libsonnet (read 2026-11-27)"
STACKHPC = "StackHPC ansible-slurm-appliance, alert rules (read 2026-11-20)"
OCI = "Oracle oci-hpc, playbooks/roles/grafana/files/alert-rules.yaml (read 2026-11-27)"
AZURE = "Azure azurehpc-health-checks (read 2026-11-20)"
GCM = "facebookresearch gcm, health checks (read 2026-11-20)"
DCGM = "NVIDIA DCGM, health watches (read 2026-11-23)"
SENTINEL = "NVIDIA NVSentinel, NIC health monitor (read 2026-11-23)"
AI = "Azure ai-infrastructure-on-azure, ib_link_validation (read 2026-11-20)"
IB_DIAGS = "infiniband-diags, error_thresholds (read 2026-11-23)"
SLURM_CONF = "slurm.conf(5) (read 2026-11-27)"
