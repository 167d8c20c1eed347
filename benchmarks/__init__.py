"""Everything that hetcal claims, measured: ``python -m benchmarks list``."""
