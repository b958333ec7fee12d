"""irdma: Intel's E810 NICs speak iWARP or RoCE v2, one at a time for each port: as the declared network is.

They come up as RoCE v2. devlink changes it at runtime and forgets it at the next boot, so a unit sets it again. Sources:
Linux, commit e523af4e (ice: enable_iwarp and enable_roce, which exclude each other) and Documentation/networking/devlink/
ice.rst, read 2026-11-25. X722 supports only iWARP and lacks the parameter: declare its port on an iWARP network.
"""
