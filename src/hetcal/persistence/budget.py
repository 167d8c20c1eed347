"""One account for the memory that a file takes, from its first byte to a usable calibrator."""

from __future__ import annotations

from hetcal._exceptions import FileFormatError

DEFAULT_LIMIT = 4 << 30


class Budget:
    """What everything that is made from a file draws on, before it is made.

    Parameters
    ----------
    max_bytes : int
        What all of it may take together.
    """

    def __init__(self, max_bytes: int = DEFAULT_LIMIT):
        self.max_bytes = max_bytes
        self.taken = 0

    def take(self, n_bytes: int) -> None:
        """Draw on the account; raise where it does not cover that much."""
        self.taken += n_bytes
        if self.taken > self.max_bytes:
            raise FileFormatError(
                f"The file would take more than {self.max_bytes} bytes of memory. If you trust it, "
                "pass a larger max_bytes to hetcal.load."
            )
