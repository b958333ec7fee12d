"""BMCs that are not the lab's: sushy-tools' Redfish and virtualbmc's IPMI, on a machine of libvirt's."""
