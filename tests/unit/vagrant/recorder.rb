# frozen_string_literal: true

# Loads the Vagrantfile without Vagrant and prints, as JSON, every setting and call that it makes.
# usage: ruby recorder.rb VAGRANTFILE PROVIDER

require 'json'

CALLS = []

# Takes any setting and any call, notes it under its path, and lets blocks run.
class Recorder < BasicObject
  def initialize(path)
    @path = path
  end

  def method_missing(name, *arguments, **options, &block)
    here = "#{@path}.#{name}"
    given = arguments.map { |each| each.is_a?(::Symbol) ? each.to_s : each }
    given << options unless options.empty?
    ::CALLS << [here, given]
    if name == :provider
      block.call(::Recorder.new("#{here}.#{arguments.first}"), self) if arguments.first.to_s == ::ARGV.fetch(1)
    elsif name == :define
      block.call(::Recorder.new(arguments.first))
    elsif block && name != :ruby
      block.call(::Recorder.new(here))
    end
    ::Recorder.new(here)
  end

  def respond_to_missing?(*)
    true
  end
end

module Vagrant
  module Errors
    VagrantError = Class.new(StandardError)
  end

  def self.configure(_version)
    yield Recorder.new('config')
  end
end

load ARGV.fetch(0)
puts JSON.generate(CALLS)
