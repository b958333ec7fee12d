"""The no-change benchmark: `make bench`. Results go to docs/benchmarks.md."""
