"""Warnings and the few errors of hetcal's own; others are plain ``ValueError``, ``TypeError``."""

import sys


class HetcalWarning(UserWarning):
    """Base of every warning that hetcal raises itself."""


class SupportWarning(HetcalWarning):
    """Items have no calibration data near them, or so few that an interval says nothing."""


class UnknownCategoryWarning(HetcalWarning):
    """A categorical column holds levels at prediction that were not there at fit."""


class ColumnOrderWarning(HetcalWarning):
    """The labels go with other columns of the probabilities than their own."""


class RefitWarning(HetcalWarning):
    """A model that is fitted already is trained again, because it was not frozen."""


class WeightWarning(HetcalWarning):
    """Weights stand for many more items than there are rows, or for next to none of them."""


class SlowFitWarning(HetcalWarning):
    """Features are so many that fitting takes minutes; a projection of them would do."""


class TrainingSetWarning(HetcalWarning):
    """Calibration items predict almost as well without the classifier: it may be retrained."""


class FileFormatError(ValueError):
    """A file is no hetcal file, was damaged, or holds what no calibrator could have written."""


class InputError(ValueError):
    """A table, or what was said about its columns, cannot be used as it is; the text says why."""


class FileWriteError(OSError):
    """A file could not be written; the text says why and what to do, ``errno`` as the system."""

    def __str__(self) -> str:
        return str(self.strerror)


def levels_to_caller() -> int:
    """Return the stacklevel of the first caller outside of hetcal: the line that the user wrote."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
