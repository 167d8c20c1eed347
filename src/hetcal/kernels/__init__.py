"""Arrays to arrays: the numerical work, compiled where possible, each with a pure twin."""

from hetcal.kernels._backend import core_name, native, use_core

__all__ = ["core_name", "native", "use_core"]
