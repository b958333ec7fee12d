"""Simulated `nvidia-smi -q -x`, in the layout of nvsmi_device_v12/v13.dtd.

Elements, and which of them are N/A, are those that recorded boards of each architecture print: a test
compares them (tests/unit/health/recorded/nvidia_smi_fields.json). Values are recorded ones of idle,
healthy boards where the SKU does not give them; Volta was not recorded with this driver.
"""

from __future__ import annotations

from rackwright.model.sku import Architecture, Gpus

DRIVER = "580.173.02"
REASONS = (
    "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
    "hw_power_brake_slowdown", "sync_boost", "sw_thermal_slowdown", "display_clocks_setting",
)  # fmt: skip
NAMES = {Architecture.VOLTA: "Volta", Architecture.TURING: "Turing", Architecture.AMPERE: "Ampere",
         Architecture.ADA: "Ada Lovelace", Architecture.HOPPER: "Hopper", Architecture.BLACKWELL: "Blackwell"}  # fmt: skip
OLD = (Architecture.VOLTA, Architecture.TURING)
GENERATION = {Architecture.VOLTA: 3, Architecture.TURING: 3, Architecture.AMPERE: 4, Architecture.ADA: 4}


CLOCKS = {
    Architecture.VOLTA: (135, 877, 1530, 877), Architecture.TURING: (1590, 5000, 1590, 5001),
    Architecture.AMPERE: (210, 1215, 1410, 1215), Architecture.ADA: (2040, 9001, 2520, 9001),
    Architecture.HOPPER: (345, 2619, 1980, 2619), Architecture.BLACKWELL: (120, 3996, 1965, 3996),
}  # fmt: skip
"""SM and memory clock of an idle board, and their maxima, in MHz."""
TLIMIT = (Architecture.ADA, Architecture.HOPPER, Architecture.BLACKWELL)
"""Boards that name the margin to the temperature they slow down at; older ones name the temperature."""


def document(gpus: Gpus, mig: tuple[str, ...] = ()) -> str:
    """The whole document of healthy, idle GPUs."""
    body = "".join(_gpu(index, gpus, mig) for index in range(gpus.count))
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n'
        "<!-- Simulated by rackwright: there is no GPU here. -->\n<nvidia_smi_log>\n"
        f"<timestamp>Fri Nov 20 12:00:00 2026</timestamp><driver_version>{DRIVER}</driver_version>"
        f"<cuda_version>13.0</cuda_version><attached_gpus>{gpus.count}</attached_gpus>\n{body}</nvidia_smi_log>\n"
    )


def bus(index: int) -> str:
    """PCI address of a GPU as nvidia-smi writes it."""
    return f"00000000:{0x1B + 0x10 * index:02X}:00.0"


def name(gpus: Gpus) -> str:
    """What the tools call a GPU of this kind."""
    return f"NVIDIA {gpus.model} (simulated)"


def uuid(index: int) -> str:
    """A GPU's UUID."""
    return f"GPU-00000000-0000-0000-0000-0000000000{index:02d}"


def _gpu(index: int, gpus: Gpus, mig: tuple[str, ...]) -> str:
    parts = (
        _identity(index, gpus, mig),
        _pci(index, gpus),
        _memory(gpus, mig),
        _errors(gpus, mig),
        _physics(gpus),
        _fabric(gpus),
    )
    return f'<gpu id="{bus(index)}">\n' + "\n".join(parts) + "\n</gpu>\n"


def _tags(values: dict[str, object]) -> str:
    return "".join(f"<{name}>{value}</{name}>" for name, value in values.items())


def _identity(index: int, gpus: Gpus, mig: tuple[str, ...]) -> str:
    mode = "N/A" if not gpus.mig else "Enabled" if mig else "Disabled"
    devices = "".join(f"<mig_device><index>{at}</index></mig_device>" for at in range(len(mig))) or "None"
    gsp = "N/A" if gpus.architecture is Architecture.VOLTA else DRIVER
    return (
        _tags(
            {
                "product_name": name(gpus),
                "product_architecture": NAMES.get(gpus.architecture or Architecture.HOPPER, "?"),
                "persistence_mode": "Enabled",
            }
        )
        + f"<mig_mode><current_mig>{mode}</current_mig><pending_mig>{mode}</pending_mig></mig_mode>"
        + f"<mig_devices>{devices}</mig_devices>"
        + _tags(
            {
                "serial": f"165000000000{index}",
                "uuid": uuid(index),
                "minor_number": index,
                "vbios_version": "96.00.A5.00.01",
            }
        )
        + "<inforom_version><img_version>G520.0200.00.05</img_version></inforom_version>"
        + _tags({"gpu_recovery_action": "None", "gsp_firmware_version": gsp})
    )


def _pci(index: int, gpus: Gpus) -> str:
    device = gpus.pci_ids[0].split(":")[1].upper()
    generation = gpus.pcie_generation or GENERATION.get(gpus.architecture or Architecture.HOPPER, 5)
    return (
        f"<pci><pci_device_id>{device}10DE</pci_device_id><pci_bus_id>{bus(index)}</pci_bus_id><pci_gpu_link_info>"
        f"<pcie_gen><max_link_gen>{generation}</max_link_gen><current_link_gen>{generation}</current_link_gen></pcie_gen>"
        "<link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths>"
        "</pci_gpu_link_info><replay_counter>0</replay_counter></pci><performance_state>P0</performance_state>"
    )


def _memory(gpus: Gpus, mig: tuple[str, ...]) -> str:
    bar1 = 256 if not gpus.nvlinks else 1 << (gpus.memory_mib - 1).bit_length()
    reasons = "".join(
        f"<clocks_event_reason_{name}>{'Active' if name == 'gpu_idle' else 'Not Active'}</clocks_event_reason_{name}>"
        for name in REASONS
    )
    return (
        f"<clocks_event_reasons>{reasons}</clocks_event_reasons>"
        f"<fb_memory_usage><total>{gpus.memory_mib} MiB</total><reserved>551 MiB</reserved><used>0 MiB</used>"
        f"<free>{gpus.memory_mib} MiB</free></fb_memory_usage>"
        f"<bar1_memory_usage><total>{bar1} MiB</total><used>1 MiB</used></bar1_memory_usage>"
        "<compute_mode>Default</compute_mode>"
        f"<utilization><gpu_util>{'N/A' if mig else '0 %'}</gpu_util></utilization>"
    )


def _errors(gpus: Gpus, mig: tuple[str, ...]) -> str:
    old = gpus.architecture in OLD
    unc = ("sram_uncorrectable",) if old else ("sram_uncorrectable_parity", "sram_uncorrectable_secded")
    counts = _tags(dict.fromkeys(("sram_correctable", *unc, "dram_correctable", "dram_uncorrectable"), 0))
    rows = _tags({"remapped_row_corr": 0, "remapped_row_unc": 0})
    rows += _tags({"remapped_row_pending": "No", "remapped_row_failure": "No"})
    repairs: dict[str, object] = {"channel_repair_pending": "No", "tpc_repair_pending": "No"}
    repairs["unrepairable_memory"] = "No" if gpus.nvlinks else "N/A"
    threshold = "" if old else "<sram_threshold_exceeded>No</sram_threshold_exceeded>"
    count, pending = (0, "No") if old else ("N/A", "N/A")
    return (
        "<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>"
        f"<ecc_errors><volatile>{counts}</volatile><aggregate>{counts}{threshold}</aggregate>"
        f"{'' if old else _tags(repairs)}</ecc_errors><retired_pages>"
        f"<multiple_single_bit_retirement><retired_count>{count}</retired_count></multiple_single_bit_retirement>"
        f"<double_bit_retirement><retired_count>{count}</retired_count></double_bit_retirement>"
        f"<pending_retirement>{pending}</pending_retirement></retired_pages>"
        f"<remapped_rows>{'N/A' if old or mig else rows}</remapped_rows>"
    )


def _physics(gpus: Gpus) -> str:
    architecture, hbm = gpus.architecture or Architecture.HOPPER, bool(gpus.nvlinks)
    if architecture in TLIMIT:
        limit = "<gpu_temp_tlimit>58 C</gpu_temp_tlimit><gpu_temp_slow_tlimit_threshold>-2 C</gpu_temp_slow_tlimit_threshold>"
        highest = f"<gpu_temp_max_mem_tlimit_threshold>{'0 C' if hbm else 'N/A'}</gpu_temp_max_mem_tlimit_threshold>"
    else:
        limit = (
            "<gpu_temp_tlimit>N/A</gpu_temp_tlimit><gpu_temp_slow_threshold>89 C</gpu_temp_slow_threshold>"
        )
        highest = f"<gpu_temp_max_mem_threshold>{'95 C' if hbm else 'N/A'}</gpu_temp_max_mem_threshold>"
    memory = "37 C" if hbm else "N/A"
    average = "68.57 W" if architecture in TLIMIT else "N/A"
    sm, mem, sm_max, mem_max = CLOCKS[architecture]
    return (
        f"<temperature><gpu_temp>29 C</gpu_temp>{limit}<memory_temp>{memory}</memory_temp>{highest}</temperature>"
        f"<gpu_power_readings><average_power_draw>{average}</average_power_draw>"
        "<instant_power_draw>68.92 W</instant_power_draw>"
        f"<current_power_limit>{gpus.power_watts}.00 W</current_power_limit>"
        f"<default_power_limit>{gpus.power_watts}.00 W</default_power_limit></gpu_power_readings>"
        f"<clocks><sm_clock>{sm} MHz</sm_clock><mem_clock>{mem} MHz</mem_clock></clocks>"
        f"<max_clocks><sm_clock>{sm_max} MHz</sm_clock><mem_clock>{mem_max} MHz</mem_clock></max_clocks>"
    )


def _fabric(gpus: Gpus) -> str:
    blackwell, rack = gpus.architecture is Architecture.BLACKWELL, gpus.nvswitch == "rack"
    reported = gpus.nvswitch in ("node", "rack") and (blackwell or gpus.architecture is Architecture.HOPPER)
    cluster = "3f6c2d1a-0000-4000-8000-00000000beef" if rack else "00000000-0000-0000-0000-000000000000"
    state: dict[str, object] = {
        "state": "Completed",
        "status": "Success",
        "cliqueId": 0,
        "clusterUuid": cluster,
    }
    routes = ("route_recovery_in_progress", "route_unhealthy")
    health: dict[str, object] = {
        "summary": "Healthy" if reported and blackwell else "N/A",
        "bandwidth": "Full" if reported and rack else "N/A",
        **dict.fromkeys(routes, "False" if reported and rack else "N/A"),
        "access_timeout_recovery": "False" if reported and blackwell else "N/A",
        "incorrect_configuration": "None" if reported and "GB300" in gpus.model else "N/A",
    }
    return (
        f"<fabric>{_tags(state if reported else dict.fromkeys(state, 'N/A'))}<health>{_tags(health)}</health></fabric>"
        "<processes></processes>"
    )
