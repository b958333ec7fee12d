"""prometheus: collects what every node and service measures, evaluates rules, and sends alerts to Alertmanager.

Its targets follow from the cluster file: each role that serves metrics declares it (ExposesMetrics), and each target carries
the labels of its node - rack, leaf switch, SKU - so that a dead leaf is one alert. What a node ought to have (GPUs, ports,
memory) is declared to it as recording rules, so that a rule compares with the declaration and never with what a node
happens to report.

Targets are files that Prometheus re-reads, so that another node needs no restart. A pair of heads runs two servers that
collect the same; Alertmanager drops what both send.
"""
