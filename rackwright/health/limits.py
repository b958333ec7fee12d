"""Every threshold of the checks, with its source and the day it was read; a site may override each one."""

from __future__ import annotations

from dataclasses import dataclass

READ = "2026-11-20"
READ_AGAIN = "2026-11-23"
READ_BMC = "2026-11-27"


@dataclass(frozen=True)
class Limit:
    """One threshold."""

    value: float
    unit: str
    what: str
    source: str
    read: str = READ


AZURE = "Azure azurehpc-health-checks"
GCM = "facebookresearch gcm"
OCI = "Oracle oci-hpc"
AI = "Azure ai-infrastructure-on-azure"
SENTINEL = "NVIDIA NVSentinel, NIC health monitor"
STACKHPC = "StackHPC alert rules"
DCGM = "NVIDIA DCGM health watch"
OURS = "rackwright"

LIMITS: dict[str, Limit] = {
    "gpu_memory_tolerance_percent": Limit(
        2, "%", "GPU memory below the declared", f"{OURS}: nvidia-smi shows what the catalogue cites"
    ),
    "gpu_ecc_sram_corrected": Limit(
        10000, "errors", "corrected SRAM errors of a GPU in a day", f"{AZURE}, azure_gpu_ecc, as a total"
    ),
    "gpu_ecc_dram_corrected": Limit(
        20e6, "errors", "corrected DRAM errors of a GPU in a day", f"{AZURE}, azure_gpu_ecc, as a total"
    ),
    "gpu_rows_remapped": Limit(
        512, "rows", "rows remapped for uncorrectable errors", f"{AZURE} and {OCI}: 512 uncorrectable remaps"
    ),
    "gpu_pages_retired": Limit(
        60, "pages", "pages retired on GPUs before Ampere", "NVIDIA RMA policy for page retirement: 60 pages"
    ),
    "gpu_pcie_replays_warn": Limit(
        480, "replays", "PCIe replays of a GPU in an hour", f"{DCGM}: 8 a minute are the most that is recommended", READ_AGAIN
    ),
    "gpu_pcie_replays": Limit(
        10000, "replays", "PCIe replays of a GPU in an hour", f"{OURS}: twenty times what {DCGM} warns of", READ_AGAIN
    ),
    "gpu_margin_warn_c": Limit(5, "C", "margin to the slowdown temperature", f"{OURS}: ahead of the failure"),
    "gpu_margin_fail_c": Limit(
        2, "C", "margin to the slowdown temperature", f"{OCI} alert GpuThermal: 98 % of the slowdown temperature"
    ),
    "gpu_memory_warn_c": Limit(90, "C", "GPU memory temperature", f"{OURS}: ahead of the failure"),
    "gpu_memory_fail_c": Limit(
        95, "C", "GPU memory temperature", "nvidia-smi of an A100 names 95 C as the highest for its memory"
    ),
    "gpu_idle_temperature_c": Limit(70, "C", "temperature of a GPU under 10 % busy", f"{OCI} alert HotWhileIdle"),
    "gpu_power_limit_percent": Limit(
        99, "%", "power limit of the board's default", f"{OURS}: a lowered limit is a slow GPU"
    ),
    "gpu_power_over_percent": Limit(
        120, "%", "power drawn of the limit", f"{OURS}: an average above the limit is a broken sensor or regulator"
    ),
    "gpu_busy_clock_percent": Limit(
        50, "%", "SM clock of its maximum while 90 % busy", f"{GCM}: clock_freq asks for at least half"
    ),
    "gpu_idle_memory_mib": Limit(15, "MiB", "memory in use without a process", f"{GCM}: mem_usage above 15 MiB"),
    "gpu_stuck_memory_mib": Limit(1024, "MiB", "memory in use without a process", f"{OURS}: a job left it"),
    "xid_application_bursts": Limit(
        100, "bursts", "bursts of XIDs that blame the application, in a day; a burst: one process, one minute",
        f"{OURS}: shown, never a reason to drain", READ_AGAIN,
    ),
    "sxid_nonfatal_events": Limit(10, "events", "non-fatal SXids in a day", f"{OURS}: repeated ones precede fatal ones"),
    "nvlink_errors": Limit(
        10, "errors", "uncorrected errors of a GPU's NVLinks in an hour",
        f"{OURS}: {DCGM} fails at any increase; a single one was repeated and lost nothing", READ_AGAIN,
    ),
    "nvlink_recoveries": Limit(
        0, "times", "recoveries of a GPU's NVLinks in an hour", f"{DCGM}: any increase", READ_AGAIN
    ),
    "nvlink_replays": Limit(
        100, "errors", "replays of a GPU's NVLinks in an hour",
        f"{OURS}: {DCGM} fails at any increase; hardware repeats the packet, so few of them harm no job", READ_AGAIN,
    ),
    "nvlink_crc": Limit(
        360000, "errors", "CRC errors of a GPU's NVLinks in an hour", f"{DCGM}: they matter from 100 a second on", READ_AGAIN
    ),
    "ib_symbol_errors": Limit(
        120, "errors", "symbol errors of a port in an hour",
        f"{SENTINEL}, symbol_error_fatal: the InfiniBand bit error rate of 1e-12", READ_AGAIN,
    ),
    "ib_link_recoveries": Limit(
        10, "times", "recoveries of a link in an hour",
        f"infiniband-diags, error_thresholds: 10; {SENTINEL}: 5 in a minute", READ_AGAIN,
    ),
    "ib_link_downs": Limit(
        5, "times", "losses of link of one port in a day, by its counter",
        f"{AZURE}, azure_ib_link_flapping; a switch that restarts takes the link down once", READ_AGAIN,
    ),
    "ib_integrity_errors": Limit(
        5, "times", "local link integrity errors of a port in a day",
        f"{OURS}: {SENTINEL} treats any as fatal, but a link that was lost and retrained can count some", READ_AGAIN,
    ),
    "ib_receive_errors": Limit(
        100, "errors", "port_rcv_errors in an hour", f"{AI}, ib_link_validation; {SENTINEL}: 10 in a second", READ_AGAIN
    ),
    "ib_transmit_discards": Limit(
        1000, "packets", "port_xmit_discards in an hour",
        f"{AI}, ib_link_validation; {SENTINEL}: 100 in a second", READ_AGAIN,
    ),
    "ber_effective_warn": Limit(
        1e-12, "", "bit error rate of a port after correction", f"{OCI} dr-hpc-v2: fails at 1e-12; ibdiagnet's default"
    ),
    "ber_effective_fail": Limit(
        1e-9, "", "bit error rate of a port after correction", "NVIDIA deepops, NHC check of mlxlink: above 1e-9 fails"
    ),
    "ber_raw_warn": Limit(1e-5, "", "bit error rate of a port before correction", f"{OCI} dr-hpc-v2: fails at 1e-5"),
    "link_flaps": Limit(5, "times", "losses of link of one port in 24 h", f"{AZURE}, azure_ib_link_flapping"),
    "nic_error_percent": Limit(
        1, "%", "packets with errors in an hour", f"{STACKHPC}: network errors; node_exporter mixin: rate above 1 %"
    ),
    "nic_errors": Limit(
        100, "packets", "packets with errors in an hour", f"{OURS}: a few errors are a large share of an idle link's packets", READ_AGAIN
    ),
    "pcie_uncorrected": Limit(
        0, "errors", "fatal, and non-fatal but for unsupported requests, of a device in a day",
        f"{OURS}: each is a lost transfer", READ_AGAIN,
    ),
    "pcie_corrected": Limit(
        10000, "errors", "corrected PCIe errors of a device in an hour",
        "PCI Express base specification: a bit error rate of 1e-12, about one a second at 32 GT/s x16; three times that",
        READ_AGAIN,
    ),
    "pcie_corrected_events": Limit(
        1000, "lines", "corrected PCIe errors of a device logged in a day",
        f"{OURS}: ten times a recorded healthy session; shown, never a reason to drain", READ_AGAIN,
    ),
    "fs_silent_s": Limit(
        600, "s", "a declared file server that does not answer", f"{OURS}: a failover takes minutes", READ_AGAIN
    ),
    "cpu_throttle_events": Limit(
        1000, "times", "thermal throttling of all cores in an hour", f"{OURS}: more than bursts under load", READ_AGAIN
    ),
    "load_per_cpu": Limit(4, "", "load average per CPU", "NHC check_ps_loadavg, as sites set it"),
    "memory_tolerance_percent": Limit(
        5, "%", "memory below what is installed", f"{AZURE}: physmem within 3 to 5 %"
    ),
    "memory_numa_percent": Limit(
        10, "%", "memory of a NUMA node below the largest", f"{OURS}: a lost DIMM is more than a tenth"
    ),
    "memory_corrected": Limit(
        100, "errors", "corrected errors of a memory controller in a day",
        "mcelog.conf, mem-ce-error-threshold of a socket: 100 in 24 h (of a DIMM: 10)", READ_AGAIN,
    ),
    "memory_corrected_fail": Limit(
        1000, "errors", "corrected errors of a memory controller in a day",
        f"{OURS}: ten times what mcelog reports; a DIMM on its way to uncorrected ones", READ_AGAIN,
    ),
    "memory_poisoned_kib": Limit(
        4096, "KiB", "damaged memory the kernel took offline",
        f"{OURS}: rasdaemon and mcelog offline single pages after corrected errors; more is a row or a bank", READ_AGAIN,
    ),
    "memory_available_warn_percent": Limit(10, "%", "memory available", "node_exporter mixin: below 10 %"),
    "memory_available_fail_percent": Limit(3, "%", "memory available", "node_exporter mixin: critical"),
    "nvme_size_tolerance_percent": Limit(5, "%", "drive smaller than declared", f"{OURS}: decimal GB as sold"),
    "nvme_used_warn_percent": Limit(90, "%", "endurance used", "nvme smart-log percentage_used, as sites set it"),
    "nvme_used_fail_percent": Limit(100, "%", "endurance used", "NVM Express base specification, SMART log"),
    "nvme_media_errors": Limit(
        0, "errors", "media errors of a drive in a day", "NVM Express SMART log: each is data the drive could not read",
        READ_AGAIN,
    ),
    "nvme_temperature_c": Limit(75, "C", "drive temperature", "vendors' data sheets: 70 to 80 C"),
    "fs_seconds_warn": Limit(0.2, "s", "a filesystem's answer to statfs", f"{OURS}: a thousand times the usual"),
    "fs_used_warn_percent": Limit(90, "%", "filesystem full", "Verda's acceptance: / below 90 %"),
    "fs_used_fail_percent": Limit(95, "%", "filesystem full", "imbue cluster-health: 95 % is an error"),
    "inodes_used_percent": Limit(95, "%", "inodes used", "NHC check_fs_inodes, as sites set it"),
    "clock_offset_s": Limit(0.05, "s", "clock off the reference", f"{STACKHPC}: 0.05 s"),
    "clock_offset_fail_s": Limit(
        60, "s", "clock off the reference", "munge: a credential lives 300 s; Slurm refuses the node beyond", READ_AGAIN
    ),
    "clock_stratum": Limit(10, "", "stratum of the clock", f"{OURS}: a local clock without a source has stratum 10 or higher"),
    "processes_waiting": Limit(
        20, "processes", "processes in state D", f"{GCM}: D-state processes"
    ),
    "zombies": Limit(100, "processes", "zombies", f"{GCM}: zombie processes"),
    "service_restarts": Limit(
        5, "times", "restarts of a service in a day", "systemd, DefaultStartLimitBurst: gives up at five in 10 s", READ_AGAIN
    ),
    "dcgm_diag_age_s": Limit(
        86400, "s", "age of the kept result of dcgmi diag", f"{OURS}: earlier failures have been acted on"
    ),
    "bmc_cold_c": Limit(
        15, "C", "a critical temperature below this is too low or misread, not too hot",
        f"{OURS}: the lowest upper threshold in recorded outputs is 42 C, of an HPE inlet", READ_BMC,
    ),
    "bmc_log_warn_percent": Limit(
        80, "%", "event log of the BMC full", f"{OURS}: room for the events of a fault", READ_BMC
    ),
    "bmc_log_full_percent": Limit(
        95, "%", "event log of the BMC full", f"IPMI 2.0, log almost full and full; {GCM}: clears it at 40 entries", READ_BMC
    ),
    "bmc_event_hours": Limit(
        24, "h", "age of a critical event in the BMC's log",
        f"{OURS}: as the kernel's log, a day; uncorrectable memory errors count since the last boot", READ_BMC,
    ),
    "document_age_s": Limit(3600, "s", "age of the probe document", f"{OURS}: an older document is out of date"),
}  # fmt: skip
