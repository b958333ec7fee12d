# frozen_string_literal: true

module Rackwright
  # A node as a domain of libvirt (vagrant-libvirt).
  module Libvirt
    POOL = ENV.fetch('RACKWRIGHT_VAGRANT_POOL', 'default')
    SEED_SERIAL = 'rackwright-seed'
    # UEFI firmware without stored variables, so that no file of it is left behind: Debian's and Arch's packages.
    FIRMWARE = ['/usr/share/ovmf/OVMF.fd', '/usr/share/edk2/x64/OVMF.4m.fd'].freeze

    module_function

    # KVM where this user may use it; whether a guest's kernel then runs is seen at the first boot.
    def driver
      ENV['RACKWRIGHT_VAGRANT_DRIVER'] || (File.readable?('/dev/kvm') && File.writable?('/dev/kvm') ? 'kvm' : 'qemu')
    end

    def firmware
      ENV['RACKWRIGHT_VAGRANT_FIRMWARE'] || FIRMWARE.find { |path| File.file?(path) } || FIRMWARE.first
    end

    # Options of one port's network: no DHCP and no forwarding anywhere, and no address of this machine on a rail.
    def network(rack, node, port)
      own = {
        libvirt__network_name: rack.network_name(port),
        libvirt__dhcp_enabled: false,
        libvirt__guest_ipv6: 'no',
        libvirt__mtu: port.mtu
      }
      return own.merge(libvirt__forward_mode: 'veryisolated') unless port.equal?(node.management)

      own.merge(libvirt__forward_mode: 'none', libvirt__host_ip: rack.host_address)
    end

    def configure(machine, rack, node)
      machine.vm.provider :libvirt do |libvirt|
        libvirt.default_prefix = "rackwright-#{rack.name}-"
        libvirt.storage_pool_name = POOL
        hardware(libvirt, node)
        disks(libvirt, rack, node)
        # The declared ports are all there is: the address comes from the guest agent, not from a DHCP lease.
        libvirt.mgmt_attach = false
        libvirt.qemu_use_agent = true
      end
    end

    def hardware(libvirt, node)
      libvirt.driver = driver
      libvirt.machine_type = 'q35'
      libvirt.loader = firmware
      libvirt.cpus = node.cpus
      libvirt.memory = node.memory_mib
      if driver == 'kvm'
        libvirt.cpu_mode = 'host-passthrough'
      else
        libvirt.cpu_mode = 'custom'
        libvirt.cpu_model = 'qemu64'
      end
      libvirt.cputopology sockets: node.topology['sockets'], cores: node.topology['cores_per_socket'],
                          threads: node.topology['threads_per_core']
      libvirt.disk_driver cache: 'unsafe' # faster; a VM that a power cut of this machine damages is made again
      libvirt.graphics_type = 'none'
      libvirt.video_type = 'none'
      libvirt.random model: 'random'
    end

    def disks(libvirt, rack, node)
      node.disks_gb.each_with_index do |size_gb, index|
        libvirt.storage :file, size: "#{size_gb * 1_000_000_000}B", bus: 'virtio', serial: "data#{index}"
      end
      libvirt.storage :file, path: seed_volume(rack, node), type: 'raw', bus: 'virtio', serial: SEED_SERIAL,
                             size: '1M', allow_existing: true
    end

    def seed_volume(rack, node)
      "rackwright-#{rack.name}-#{node.name}-seed.raw"
    end

    # vagrant-libvirt takes disks from the pool only, so the seed is put there before a VM starts.
    def prepare(vm, rack, node)
      return if %i[running inaccessible].include?(vm.state.id)

      refuse_without_box(vm, rack, node)
      SeedVolume.new(vm, seed_volume(rack, node)).replace(rack.seed(node))
    end

    # vagrant-libvirt leaves a disk alone that it has not made.
    def clean_up(vm, rack, node)
      SeedVolume.new(vm, seed_volume(rack, node)).remove if vm.id.nil?
    end

    def refuse_without_box(vm, rack, node)
      return unless vm.config.vm.box.nil?

      role = node.roles.first
      raise Refusal, "#{rack.boxes} has neither #{node.name}.box nor #{role}.box.\n" \
                     "hint: rackwright image build #{rack.file} --group #{node.name} --out #{rack.images}/#{role}, " \
                     "then vagrant/box #{rack.images}/#{role} --out #{rack.boxes}/#{role}.box"
    end
  end

  # A volume of libvirt's pool with the bytes of a file.
  class SeedVolume
    CHUNK = 250 * 1024

    def initialize(vm, name)
      @client = vm.provider.driver.connection.client
      @name = name
    end

    def replace(path)
      remove
      size = File.size(path)
      volume = pool.create_volume_xml(<<~XML)
        <volume>
          <name>#{@name}</name>
          <capacity unit='B'>#{size}</capacity>
          <target><format type='raw'/></target>
        </volume>
      XML
      upload(volume, path, size)
    end

    def remove
      @client.lookup_storage_pool_by_name(Libvirt::POOL).lookup_volume_by_name(@name).delete
    rescue ::Libvirt::RetrieveError
      nil # there is no such volume, or no pool
    end

    private

    def pool
      @client.lookup_storage_pool_by_name(Libvirt::POOL)
    rescue ::Libvirt::RetrieveError
      raise Refusal, "libvirt has no storage pool #{Libvirt::POOL}.\n" \
                     "hint: virsh pool-define-as #{Libvirt::POOL} dir --target /var/lib/libvirt/images; " \
                     "virsh pool-start #{Libvirt::POOL}"
    end

    def upload(volume, path, size)
      stream = @client.stream
      volume.upload(stream, 0, size)
      File.open(path, 'rb') do |file|
        while (chunk = file.read(CHUNK))
          chunk = chunk.byteslice(stream.send(chunk)..) until chunk.empty?
        end
      end
      stream.finish
    end
  end
end
