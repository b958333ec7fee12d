"""Log lines of all nodes, read from the declared store: a central journal, Loki, Elasticsearch or OpenSearch.

`ask` runs on the control node. A reader for each kind of store runs on its server, over ssh; the readers and
`keeper`, which the central journal's server runs on a timer, use only the standard library (Python 3.9).
"""
