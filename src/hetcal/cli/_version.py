"""What ``hetcal --version`` says."""

from __future__ import annotations

import platform
from importlib import metadata

from hetcal._version import __version__
from hetcal.kernels import core_name

_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_CORES = {"native": "compiled core", "pure": "pure Python core"}


def version_text() -> str:
    """Return hetcal's version, the core in use, Python and the libraries below."""
    # Asked of the metadata: importing the libraries only for their version takes a second.
    libraries = [f"{name} {metadata.version(name)}" for name in _LIBRARIES]
    below = ", ".join([f"Python {platform.python_version()}", *libraries])
    return f"hetcal {__version__} ({_CORES[core_name()]})\n{below}"
