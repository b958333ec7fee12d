"""Questions that our preseed files answer, by type, to catch misspelt ones, which d-i ignores.

Sources: as in `preseed`.
"""

from __future__ import annotations

_BOOLEAN = """
    apt-setup/contrib apt-setup/disable-cdrom-entries apt-setup/non-free apt-setup/non-free-firmware cdrom-detect/eject
    clock-setup/ntp clock-setup/utc debian-installer/exit/poweroff grub-installer/only_debian
    grub-installer/with_other_os hw-detect/load_firmware base-installer/install-recommends netcfg/confirm_static
    netcfg/disable_autoconfig partman-auto-crypto/erase_disks partman-basicfilesystems/no_swap
    partman-efi/non_efi_system partman-lvm/confirm partman-lvm/confirm_nooverwrite partman-lvm/device_remove_lvm
    partman-md/confirm partman-md/confirm_nooverwrite partman-md/device_remove_md
    partman-partitioning/confirm_write_new_label partman/confirm partman/confirm_nooverwrite passwd/make-user
    passwd/root-login pkgsel/run_tasksel popularity-contest/participate
"""
_STRING = """
    debian-installer/locale grub-installer/bootdev mirror/country mirror/http/directory mirror/http/hostname
    mirror/http/proxy mirror/https/directory mirror/https/hostname mirror/https/proxy mirror/protocol mirror/suite
    netcfg/get_domain netcfg/get_gateway netcfg/get_hostname netcfg/get_ipaddress netcfg/get_nameservers
    netcfg/get_netmask netcfg/hostname partman-auto-lvm/guided_size partman-auto-lvm/new_vg_name
    partman-auto/expert_recipe partman-auto/method partman/early_command partman-partitioning/default_label
    pkgsel/include preseed/early_command preseed/late_command time/zone
"""
_SELECT = """
    keyboard-configuration/xkb-keymap netcfg/choose_interface netcfg/target_network_config partman/choose_partition
    partman/mount_style partman-partitioning/choose_label pkgsel/upgrade
"""
TYPES: dict[str, str] = {
    **dict.fromkeys(_BOOLEAN.split(), "boolean"),
    **dict.fromkeys(_STRING.split(), "string"),
    **dict.fromkeys(_SELECT.split(), "select"),
    **dict.fromkeys(("apt-setup/services-select", "tasksel/first"), "multiselect"),
    "passwd/root-password-crypted": "password",
    "finish-install/reboot_in_progress": "note",
}
"""The disk is not among them: the check on the node answers it."""
