"""The calibration set: checked once, encoded once, split once, and handed on."""

from hetcal.data.calibration_set import CalibrationSet
from hetcal.data.folds import Folds
from hetcal.data.new_items import NewItems
from hetcal.data.out_of_sample import out_of_sample
from hetcal.data.scores import Scores

__all__ = ["CalibrationSet", "Folds", "NewItems", "Scores", "out_of_sample"]
