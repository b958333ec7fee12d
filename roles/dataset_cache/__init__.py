"""A read cache of datasets on a node's local scratch, filled from a shared filesystem or an object store.

A dataset is copied beside the cache, checksummed, and renamed into it when complete: readers see all of it or none. What was
fetched longest ago is evicted for what is fetched next, within one declared limit.
"""
