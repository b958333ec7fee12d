# frozen_string_literal: true

require 'fileutils'
require 'open3'

module Rackwright
  # What keeps a VM from being made; Vagrant prints the message alone.
  class Refusal < Vagrant::Errors::VagrantError
    def initialize(text)
      @text = text
      super()
    end

    def error_message
      @text
    end
  end

  # The seed disks, which give each VM its name, addresses, host key and administrator at the first boot.
  class Seeds
    LOCK = Mutex.new # several VMs come up at once

    def initialize(rack)
      @rack = rack
    end

    # Let rackwright write the seeds where one is missing; a seed that exists is left alone.
    def ensure
      LOCK.synchronize do
        write unless @rack.nodes.all? { |node| File.file?(@rack.seed(node)) } && File.file?(@rack.ssh_key)
        write_ssh_config
      end
    end

    private

    def write
      command = [*@rack.program, 'image', 'seed', @rack.file, '--images', @rack.images, '--out', @rack.seeds]
      out, status = Open3.capture2e(*command)
      raise Refusal, "#{command.join(' ')} failed:\n#{out}" unless status.success?
    end

    # Both of Vagrant's ssh clients read it; the Ruby one takes host keys from a global file only.
    def write_ssh_config
      FileUtils.mkdir_p(@rack.seeds, mode: 0o700) # seeds hold the nodes' private keys
      File.write(File.join(@rack.seeds, 'ssh_config'), <<~TEXT)
        Host *
          StrictHostKeyChecking yes
          GlobalKnownHostsFile "#{@rack.known_hosts}"
          UserKnownHostsFile none
      TEXT
    end
  end
end
