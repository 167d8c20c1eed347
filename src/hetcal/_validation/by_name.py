"""What is passed by name, and the error of who passes it by place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def output_by_name(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function name ``y_proba=`` where somebody passes the output by place.

    Examples
    --------
    >>> @output_by_name
    ... def advise(X, y, *, y_proba=None): ...
    >>> advise([[1.0]], [0], [[0.2, 0.8]])
    Traceback (most recent call last):
        ...
    TypeError: advise takes 2 arguments by place, got 3. Pass the classifier's output by name: ...
    """
    parameters = signature(function).parameters
    most = sum(p.kind is Parameter.POSITIONAL_OR_KEYWORD for p in parameters.values())
    bound = int("self" in parameters)

    @wraps(function)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        if len(args) > most:
            owner = f"{type(args[0]).__name__}." if bound else ""
            raise TypeError(
                f"{owner}{function.__name__} takes {most - bound} arguments by place, got "
                f"{len(args) - bound}. Pass the classifier's output by name: y_proba= "
                "(probabilities) or logits= (before the softmax)."
            )
        return function(*args, **named)

    return checked
