"""The paper's figures by name, and one that it leaves open.

:func:`draw_figure` computes and draws one; :func:`figure_names` lists them. What a figure shows
comes with it as a small table (``facts``), which is what the claims are checked against.
"""

from hetcal.paper.figures._registry import (
    DrawnFigure,
    draw_figure,
    facts_file,
    figure_names,
    figure_title,
    figure_trials,
)

__all__ = [
    "DrawnFigure",
    "draw_figure",
    "facts_file",
    "figure_names",
    "figure_title",
    "figure_trials",
]
