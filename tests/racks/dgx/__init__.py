"""The DGX example applied to lab nodes with simulated GPUs, as far as packages and containers go."""
