"""What ``hetcal --version`` says."""

from __future__ import annotations

import platform

from hetcal._show_versions import LIBRARIES, library_version
from hetcal._version import __version__
from hetcal.kernels import core_name

_CORES = {"native": "compiled core", "pure": "pure Python core"}


def version_text() -> str:
    """Return hetcal's version, the core in use, Python and the libraries below."""
    libraries = [f"{name} {library_version(name)}" for name in LIBRARIES]
    below = ", ".join([f"Python {platform.python_version()}", *libraries])
    return f"hetcal {__version__} ({_CORES[core_name()]})\n{below}"
