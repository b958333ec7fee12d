# frozen_string_literal: true

require 'ipaddr'
require 'json'
require 'open3'
require 'shellwords'

# What the Vagrantfile reads of the cluster file; plain Ruby, without Vagrant, so that it can be tested alone.
module Rackwright
  # A mistake of the user's: Vagrant prints the message without a backtrace.
  class Mistake < StandardError
    def initialize(message, hint)
      super("#{message}\nhint: #{hint}")
    end
  end

  # One network port of a node.
  Port = Struct.new(:network, :rail, :address, :prefix_length, :mtu, :mac, keyword_init: true) do
    def netmask
      IPAddr.new('255.255.255.255').mask(prefix_length).to_s
    end
  end

  # One node of the cluster file.
  class Node
    attr_reader :name, :roles, :cpus, :memory_mib, :topology, :disks_gb, :ports

    def initialize(details)
      @name = details.fetch('name')
      @roles = details.fetch('roles')
      @primary = details.fetch('primary')
      @cpus = details.fetch('lab').fetch('cpus')
      @memory_mib = details.fetch('lab').fetch('memory_mib')
      @topology = details.fetch('topology')
      @disks_gb = details.fetch('disks').map { |disk| disk.fetch('size_gb') }
      @ports = details.fetch('ports').map { |port| Port.new(**port.transform_keys(&:to_sym)) }
    end

    def primary?
      @primary
    end

    def management
      ports.first
    end
  end

  # The whole rack, as `rackwright show FILE --json` describes it.
  class Rack
    attr_reader :file, :name, :nodes

    # The command that runs rackwright.
    def self.program
      Shellwords.split(ENV.fetch('RACKWRIGHT', 'rackwright'))
    end

    def self.read(file)
      out, err, status = Open3.capture3(*program, 'show', file, '--json')
      raise Mistake.new("rackwright cannot read #{file}:\n#{err}", "rackwright validate #{file}") unless status.success?

      new(file, JSON.parse(out))
    rescue Errno::ENOENT
      raise Mistake.new("#{program.first} is not installed.", 'pip install rackwright, or set RACKWRIGHT to its path')
    end

    def initialize(file, document)
      @file = file
      @values = document.fetch('values').to_h { |value| value.values_at('path', 'value') }
      @name = value('name')
      details = document.fetch('details')
      refuse_unfit(details)
      @nodes = details.map { |each| Node.new(each) }
    end

    def program
      self.class.program
    end

    def ssh_user
      value('ssh.user')
    end

    def ssh_port
      value('ssh.port')
    end

    def ssh_key
      value('ssh.key')
    end

    def known_hosts
      value('ssh.known_hosts')
    end

    # The address that this machine has on the management network.
    def host_address
      value("networks.#{nodes.first.management.network}.gateway") ||
        raise(Mistake.new("#{file} declares no gateway for the management network, which is this host's address on it.",
                          'e.g. `gateway: 10.79.0.1`'))
    end

    # Folder of the seeds; `rackwright image seed` writes one disk for each node.
    def seeds
      ENV['RACKWRIGHT_VAGRANT_SEEDS'] || File.join(File.dirname(ssh_key), 'seeds')
    end

    def seed(node)
      File.join(seeds, "#{node.name}.tar")
    end

    # Folder of the images that `rackwright image build` makes; a seed adds accounts to those of its image.
    def images
      ENV['RACKWRIGHT_VAGRANT_IMAGES'] || File.join(File.dirname(ssh_key), 'images')
    end

    # Folder of the boxes that `vagrant/box` makes.
    def boxes
      ENV['RACKWRIGHT_VAGRANT_BOXES'] || File.join(File.dirname(ssh_key), 'boxes')
    end

    # The node's own box, else that of one of its roles: `worker1.box`, `worker.box`; nil where none has been made.
    def box(node)
      [node.name, *node.roles].map { |each| File.join(boxes, "#{each}.box") }.find { |path| File.file?(path) }
    end

    # A box that was built again has another name, or Vagrant would go on with the first one.
    def box_name(path)
      "rackwright-#{name}/#{File.basename(path, '.box')}-#{File.mtime(path).to_i}"
    end

    # Every network of the hypervisor has a name that says whose it is.
    def network_name(port)
      rail = port.rail.zero? ? '' : "-rail#{port.rail}"
      "rackwright-#{name}-#{port.network}#{rail}"
    end

    private

    def value(path)
      @values[path]
    end

    def refuse_unfit(details)
      details.each do |node|
        unless node['platform'] == 'vm'
          raise Mistake.new("#{node['name']} in #{file} is #{node['platform']}, but Vagrant makes virtual machines.",
                            'set `platform: vm`')
        end
        if node['lab'].nil?
          raise Mistake.new("#{node['name']} in #{file} has no `lab` section, which sets the size of its VM.",
                            'e.g. `lab: {cpus: 2, memory_mib: 2048}`')
        end
      end
      return unless value('ssh.key').nil?

      raise Mistake.new("#{file} names no `ssh.key`, which opens the VMs.", 'e.g. `key: .lab/id_ed25519`')
    end
  end
end
