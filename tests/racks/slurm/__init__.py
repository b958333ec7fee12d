"""The whole tool on a rack of real nodes, driven as its users drive it."""
