# frozen_string_literal: true

module Rackwright
  # A node as a VM of VMware Desktop. Written after the plugin's manual; never run (docs/vagrant.md).
  module VMware
    module_function

    def configure(machine, rack, node)
      descriptor = SeedDescriptor.new(rack.seed(node))
      machine.vm.provider :vmware_desktop do |vmware|
        vmware.gui = false
        vmware.vmx['displayName'] = "rackwright-#{rack.name}-#{node.name}"
        vmware.vmx['numvcpus'] = node.cpus.to_s
        vmware.vmx['memsize'] = node.memory_mib.to_s
        vmware.vmx['firmware'] = 'efi'
        vmware.vmx['sata0.present'] = 'TRUE'
        vmware.vmx['sata0:1.present'] = 'TRUE'
        vmware.vmx['sata0:1.fileName'] = descriptor.path
      end
    end

    def prepare(_vm, rack, node)
      SeedDescriptor.new(rack.seed(node)).write
    end

    def clean_up(*); end
  end
end
