"""What a calibrator has is passed on by what wraps it, and told in words where it has it not."""

from __future__ import annotations

from types import MethodType
from typing import Any

from hetcal._threads import ThreadSafe, on_snapshot


class DelegatedMethod:
    """A method of the wrapped calibrator; an attribute only where the calibrator has it."""

    def __init__(self, doc: str):
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        def method(self: Any, X: Any = None, **options: Any) -> Any:
            features, output = self._for_calibrator(X)
            return getattr(self._calibrator(), name)(features, **output, **options)

        method.__name__, method.__qualname__ = name, f"{owner.__qualname__}.{name}"
        method.__doc__, method.__module__ = self.__doc__, owner.__module__
        self.name, self.method = name, on_snapshot(method)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.method
        calibrator = instance._calibrator()
        if not hasattr(calibrator, self.name):
            inner = type(_innermost(calibrator)).__name__
            raise AttributeError(
                f"{type(instance).__name__} has {self.name} where its calibrator has it, and "
                f"{inner} has not. These have: {_who_has(self.name)}."
            )
        return MethodType(self.method, instance)


class DelegatedMethods(ThreadSafe):
    """Methods of a calibrator, asked with the items that the wrapper is asked with.

    A subclass says by ``_calibrator`` which one is fitted (or would be), and by ``_for_calibrator``
    what it is to be asked with: features and the classifier's output.
    """

    _calibrator: Any
    _for_calibrator: Any

    support = DelegatedMethod(
        "Return how much calibration data stands behind each item; as the calibrator's."
    )
    evidence = DelegatedMethod(
        "Return the calibration items that voted for each item; as the calibrator's."
    )
    effective_sample_size = DelegatedMethod(
        "Return how many equal votes each item's vote is worth; as the calibrator's."
    )
    predict_interval = DelegatedMethod(
        """Return an interval of P(y | x) for each item; as the calibrator's.

        It is about the truth, not about the prediction: with ``preserve="label"`` a probability
        that had to give way to the classifier's choice may lie outside.
        """
    )
    predict_smoothed_interval = DelegatedMethod(
        "Return an interval for each smoothed probability; as the calibrator's."
    )
    predict_venn_abers_pair = DelegatedMethod(
        "Return the Venn-Abers pair of E[y | q], of items predicted alike; as the calibrator's."
    )


def _innermost(calibrator: Any) -> Any:
    while isinstance(calibrator, DelegatedMethods):
        calibrator = calibrator._calibrator()
    return calibrator


def _who_has(method: str) -> str:
    from hetcal.calibration.registry import get_calibrator, list_calibrators

    names = [name for name in list_calibrators() if hasattr(get_calibrator(name), method)]
    return ", ".join(names)
