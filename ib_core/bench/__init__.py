"""Benchmarks as programs: ratios of things measured side by side in one run, never timed tests."""
