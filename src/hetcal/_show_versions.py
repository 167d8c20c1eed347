"""What a report of a problem must say about versions and machine."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from hetcal._version import __version__
from hetcal.kernels import core_name

LIBRARIES = ("numpy", "scipy", "scikit-learn")
_MORE = ("joblib", "pandas", "narwhals", "typer", "threadpoolctl")
_OPTIONAL = ("matplotlib", "pyarrow", "polars", "dask", "onnx", "onnxruntime")
_VARIABLES = ("HETCAL_CORE", "OMP_NUM_THREADS")


def library_version(name: str) -> str | None:
    """Return the installed version of a library, None where there is none."""
    # Asked of the metadata: importing the libraries only for their version takes a second.
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions_text() -> str:
    """Return a line for each thing that can make a difference."""
    facts: dict[str, str | None] = {
        "hetcal": f"{__version__} ({core_name()} core)",
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "machine": f"{platform.platform()}, {os.cpu_count()} processors",
    }
    facts |= {name: library_version(name) for name in LIBRARIES + _MORE + _OPTIONAL}
    facts |= {name: os.environ.get(name) for name in _VARIABLES}
    return "\n".join(f"{name:>15}: {value or '-'}" for name, value in facts.items())


def show_versions() -> None:
    """Print the versions of hetcal and of what it runs on, for reports of problems.

    Examples
    --------
    >>> import hetcal
    >>> hetcal.show_versions()
             hetcal: ...
    """
    print(versions_text())  # noqa: T201
