"""What the displays share: matplotlib, imported late, and colours that everyone can tell apart."""

from __future__ import annotations

from typing import Any

# Okabe and Ito's palette: distinct under the common forms of colour blindness and in grey.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
INK = "#333333"


def require_pyplot(caller: str) -> Any:
    """Return ``matplotlib.pyplot``, or say how to get it.

    Parameters
    ----------
    caller : str
        Who needs it; named in the error.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which is not installed. "
            "Install it with: pip install 'hetcal[plot]'"
        ) from error
    return plt
