"""Under which names sources have the fields of a node: headers of lists, variables of hosts, custom fields."""

from __future__ import annotations

import re

from rackwright.importers.records import Field

_NAMES: dict[Field, str] = {
    "name": "name hostname host node nodename node_name host_name server fqdn device",
    "roles": "role roles function functional_group_name device_role type_of_node",
    "address": "ip address ipaddress ip_address ipv4 management management_ip mgmt mgmt_ip mgmt_address management_address "
    "admin_ip primary_ip primary_ip4 primary_ipv4",
    "mac": "mac macaddress mac_address macs mgmt_mac management_mac admin_mac pxe_mac",
    "serial": "serial serial_number serialnumber serial_no sn service_tag chassis_serial",
    "bmc": "bmc bmc_ip bmc_address bmc_host ipmi ipmi_ip ipmi_address idrac idrac_ip ilo ilo_ip oob oob_ip redfish "
    "redfish_ip xcc_ip",
    "rack": "rack rack_name cabinet rack_id",
    "position": "position unit u rack_unit ru rack_position u_position slot",
    "switch": "switch leaf leaf_switch tor_switch",
    "sku": "sku model device_type hardware product platform_model server_model model_name",
    "os": "os operating_system distribution distro os_release platform image_os",
    "domain": "domain dns_domain domain_name",
}
_BY_NAME: dict[str, Field] = {name: field for field, names in _NAMES.items() for name in names.split()}
_OF_VARIABLES: frozenset[Field] = frozenset(
    ("mac", "serial", "bmc", "rack", "position", "switch", "sku", "os")
)


def plain_name(text: str) -> str:
    """`Rack Unit`, `rack-unit` and `RackUnit` as `rack_unit`."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", text.strip())
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def field_of(header: str) -> Field | None:
    """The field that a column is about; None: none that a cluster file has."""
    return _BY_NAME.get(plain_name(header))


def field_of_variable(name: str) -> Field | None:
    """As `field_of`, for variables and custom fields, whose `ip`, `name` or `role` may mean anything."""
    field = field_of(name)
    return field if field in _OF_VARIABLES else None


def header_of(field: Field) -> str:
    """The first name of a field's column."""
    return _NAMES[field].split()[0]
