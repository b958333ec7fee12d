"""`vagrant up` with libvirt under emulation: the VMs of inventory/vagrant.yaml, accepted, halted and verified."""
