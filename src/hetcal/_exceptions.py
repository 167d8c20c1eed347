"""Warnings of hetcal's own. Errors are plain ``ValueError`` and ``TypeError``, but for one."""


class HetcalWarning(UserWarning):
    """Base of every warning that hetcal raises itself."""


class SupportWarning(HetcalWarning):
    """Some items have no calibration data near them; their probabilities stay as they were."""


class UnknownCategoryWarning(HetcalWarning):
    """A categorical column holds levels at prediction that were not there at fit."""


class FileFormatError(ValueError):
    """A file is no hetcal file, was damaged, or holds what no calibrator could have written."""


class InputError(ValueError):
    """A table, or what was said about its columns, cannot be used as it is; the text says why."""
