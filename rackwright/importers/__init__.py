"""Cluster files from what a site has already: Ansible inventories, lists (CSV), NetBox.

Each format is one module that reads a source into `Record`s, texts with the place each comes from. What follows is the
same for all: `resolve` types the texts, `folding` makes groups, `writing` writes the file. What is required and not in
the source is marked `# MISSING:` on the very line that `rackwright validate` then reports.
"""
