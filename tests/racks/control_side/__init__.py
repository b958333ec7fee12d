"""What surrounds rackwright in the field: jump hosts, resolvers, shells, locales, disks, package databases."""
