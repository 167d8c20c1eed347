# The compiled module exists only after a build; its functions are called by their twins in
# hetcal.kernels, which carry the types.
from typing import Any

def __getattr__(name: str) -> Any: ...
