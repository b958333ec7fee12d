"""The firewall on real network stacks: strangers on the rack's cables, rules of others, rules that lock out."""
