# frozen_string_literal: true

module Rackwright
  # A node as a VM of VirtualBox. Written after Vagrant's and VirtualBox's manuals; never run (docs/vagrant.md).
  module VirtualBox
    module_function

    # Vagrant keeps the first adapter for itself (NAT); the seed configures none but the declared ports.
    def network(rack, node, port)
      return { virtualbox__intnet: rack.network_name(port) } unless port.equal?(node.management)

      { adapter_ip: rack.host_address }
    end

    def configure(machine, rack, node)
      machine.vm.provider :virtualbox do |box, override|
        override.vm.base_mac = '080027524157' # an imported box names none
        box.name = "rackwright-#{rack.name}-#{node.name}"
        box.cpus = node.cpus
        box.memory = node.memory_mib
        box.check_guest_additions = false
        box.customize ['modifyvm', :id, '--firmware', 'efi', '--uart1', '0x3F8', '4', '--uartmode1', 'disconnected']
        attach_seed(box, rack, node)
      end
    end

    def prepare(_vm, rack, node)
      SeedDescriptor.new(rack.seed(node)).write
    end

    def clean_up(*); end

    # Port 1 of the controller that vagrant/box declares; the serial number is how the image finds it.
    def attach_seed(box, rack, node)
      box.customize ['storageattach', :id, '--storagectl', 'SATA', '--port', '1', '--type', 'hdd',
                     '--medium', SeedDescriptor.new(rack.seed(node)).path]
      box.customize ['setextradata', :id, 'VBoxInternal/Devices/ahci/0/Config/Port1/SerialNumber',
                     Libvirt::SEED_SERIAL]
    end
  end

  # A text file by which VirtualBox and VMware use the seed, a raw disk, as it is (VMDK, type monolithicFlat).
  class SeedDescriptor
    attr_reader :path

    def initialize(seed)
      @seed = seed
      @path = seed.sub(/\.tar\z/, '.vmdk')
    end

    def write
      sectors = File.size(@seed) / 512
      File.write(@path, <<~TEXT)
        # Disk DescriptorFile
        version=1
        CID=fffffffe
        parentCID=ffffffff
        createType="monolithicFlat"
        RW #{sectors} FLAT "#{File.basename(@seed)}" 0
        ddb.virtualHWVersion = "4"
        ddb.adapterType = "lsilogic"
        ddb.geometry.cylinders = "#{[sectors / (16 * 63), 1].max}"
        ddb.geometry.heads = "16"
        ddb.geometry.sectors = "63"
      TEXT
    end
  end
end
