"""The checks, one module per topic; `rackwright.health.judge` imports all of them."""
