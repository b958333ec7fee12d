"""A read cache of datasets on a node's local scratch, filled from a shared filesystem or an object store.

A dataset is copied beside the cache, summed, and renamed into it when it is whole: readers see all of it or none. What was
fetched longest ago makes room for what is fetched next, within one declared limit.
"""
