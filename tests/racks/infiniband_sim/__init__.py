"""The opensm role against a simulated fabric: ibsim, and the real opensm and tools of infiniband-diags."""
