"""snmp_exporter: ports, temperatures, power and batteries of switches, PDUs and UPSes, which run no exporter themselves.

Runs on the primary head and queries each declared device on behalf of Prometheus. A switch that is the leaf of nodes
carries their label `leaf`, so that its death and theirs are one alert.

The distribution's package comes without modules, since those are derived from separately licensed MIBs. Rackwright's are
written from the numbers that the RFCs assign: ports (IF-MIB), sensors (ENTITY-SENSOR-MIB), UPSes (UPS-MIB), and power of
two makers' PDUs. A site adds its own with `module_files`, as the package's generator makes them.
"""
