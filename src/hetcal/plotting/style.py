"""What the displays share: matplotlib, imported late, and colours that everyone can tell apart."""

from __future__ import annotations

from typing import Any, NamedTuple

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


class MethodStyle(NamedTuple):
    """How a calibration method looks in every picture.

    The marker tells methods apart where colours cannot: in grey print, or among more methods than
    there are colours that everyone can distinguish.
    """

    label: str
    color: str
    marker: str


# Global maps are warm, votes of neighbours are blue and green, our own two are purple, retrained
# models are grey-brown. Platt scaling and temperature scaling are the same idea for two and for
# many classes, and stand in the same place of the paper's tables: one hue, two markers.
METHOD_STYLES: dict[str, MethodStyle] = {
    "uncalibrated": MethodStyle("uncalibrated", "#A3A3A3", "o"),
    "platt": MethodStyle("Platt", ORANGE, "s"),
    "temperature": MethodStyle("temperature", "#D9A441", "D"),
    "bcts": MethodStyle("BCTS", "#A65628", "p"),
    "vector": MethodStyle("vector scaling", "#7A3E00", "h"),
    "matrix": MethodStyle("matrix scaling", "#4A2600", "H"),
    "ets": MethodStyle("ETS", "#C9B037", "H"),
    "beta": MethodStyle("beta", "#F2B5A0", "8"),
    "quadratic": MethodStyle("quadratic", "#E07B5A", "d"),
    "spline": MethodStyle("spline", "#F4CF8A", "d"),
    "isotonic": MethodStyle("isotonic", "#B84300", "^"),
    "histogram": MethodStyle("histogram", "#EBD84B", "v"),
    "venn-abers": MethodStyle("Venn-Abers", "#8F2D00", "x"),
    "atoms": MethodStyle("atoms", "#BFA500", "x"),
    "global": MethodStyle("global", "#AA4499", "o"),
    "sba": MethodStyle("SBA-10", "#A6D8F5", "<"),
    "sbaw": MethodStyle("SBAW-10", SKY, ">"),
    "swc": MethodStyle("SWC", BLUE, "P"),
    "swc-hh": MethodStyle("SWC-HH", GREEN, "X"),
    "hybrid": MethodStyle("hybrid", "#882255", "*"),
}
_OTHER_COLORS = ("#4D4D4D", "#8C6D31", "#637939", "#7B4173", "#843C39", "#17607A")
_OTHER_MARKERS = ("d", "1", "2", "3", "4", "+")


def method_style(name: str) -> MethodStyle:
    """Return label, colour and marker of a method, the same in every picture.

    Names that are not in the registry (a retrained model, a calibrator of one's own) get a style
    that depends on the name alone.

    Examples
    --------
    >>> method_style("swc").color == BLUE
    True
    >>> method_style("my own") == method_style("my own")
    True
    """
    if name in METHOD_STYLES:
        return METHOD_STYLES[name]
    number = sum(name.encode())
    return MethodStyle(
        name,
        _OTHER_COLORS[number % len(_OTHER_COLORS)],
        _OTHER_MARKERS[number // len(_OTHER_COLORS) % len(_OTHER_MARKERS)],
    )


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


def axes_to_draw_on(caller: str, ax: Any, figsize: tuple[float, float]) -> Any:
    """Return the axes that were given, or those of a new figure."""
    plt = require_pyplot(caller)
    return plt.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def tidy(ax: Any, *, grid: str | None = None, left: bool = True) -> None:
    """Remove the frame around a picture, and draw light lines across one of its axes."""
    ax.spines[["top", "right"] if left else ["top", "right", "left"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color="#E6E6E6", linewidth=0.8)
        ax.set_axisbelow(True)
