"""Benchmarks: how fast the ledger and the service are, as ratios within one run (docs/performance.md)."""
