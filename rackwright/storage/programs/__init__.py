"""Programs that nodes run for the storage bench, by themselves on Python 3.9 and its standard library."""
