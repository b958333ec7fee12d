"""Cases of every rule, a module for each module of rackwright.alerts."""
