"""Benchmarks: `make bench` writes bench/results.json."""
