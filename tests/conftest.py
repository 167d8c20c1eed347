"""What every test run shares."""

from __future__ import annotations

import os

# Pictures are drawn to memory on machines without a screen.
os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_report_header() -> str:
    """Say which hetcal is tested: a run against the wrong copy or core should be seen at once."""
    import hetcal
    from hetcal.kernels import core_name

    data = os.environ.get("HETCAL_DATA") or "not set: tests on the paper's data are skipped"
    return f"hetcal: {core_name()} core, from {hetcal.__path__[0]}\nHETCAL_DATA: {data}"
