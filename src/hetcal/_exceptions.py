"""Warnings of hetcal's own. Errors are plain ``ValueError`` and ``TypeError``."""


class HetcalWarning(UserWarning):
    """Base of every warning that hetcal raises itself."""


class SupportWarning(HetcalWarning):
    """Some items have no calibration data near them; their probabilities stay as they were."""


class UnknownCategoryWarning(HetcalWarning):
    """A categorical column holds levels at prediction that were not there at fit."""
