"""Warnings and the few errors of hetcal's own; others are plain ``ValueError``, ``TypeError``."""


class HetcalWarning(UserWarning):
    """Base of every warning that hetcal raises itself."""


class SupportWarning(HetcalWarning):
    """Some items have no calibration data near them; their probabilities stay as they were."""


class UnknownCategoryWarning(HetcalWarning):
    """A categorical column holds levels at prediction that were not there at fit."""


class ColumnOrderWarning(HetcalWarning):
    """The labels go with other columns of the probabilities than their own."""


class RefitWarning(HetcalWarning):
    """A model that is fitted already is trained again, because it was not frozen."""


class FileFormatError(ValueError):
    """A file is no hetcal file, was damaged, or holds what no calibrator could have written."""


class InputError(ValueError):
    """A table, or what was said about its columns, cannot be used as it is; the text says why."""


class FileWriteError(OSError):
    """A file could not be written; the text says why and what to do, ``errno`` as the system."""

    def __str__(self) -> str:
        return str(self.strerror)
