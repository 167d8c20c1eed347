"""Arrays to arrays: the numerical work, compiled where possible, with a pure twin of each kernel."""

from hetcal.kernels._backend import core_name, native, use_core

__all__ = ["core_name", "native", "use_core"]
