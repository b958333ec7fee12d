"""The lines of all nodes, read from where the cluster file keeps them: a central journal, Loki, Elasticsearch or OpenSearch.

What asks runs on the control node (`ask`). A reader for each kind of store runs on its server, over ssh; the readers and
`keeper`, which the central journal's server runs on a timer, load the standard library alone (Python 3.9).
"""
