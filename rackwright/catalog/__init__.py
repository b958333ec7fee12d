"""SKU catalogue: data files, read by rackwright.catalog.read."""
