"""Every interval, bound and test that hetcal prints: what it claims, and at which level.

How often each claim holds is simulated by ``benchmarks/coverage_of_levels.py``; its results are
kept in ``benchmarks/results/coverage.csv``. A test compares what is printed with this list, and
this list with the results: a number with a level that was not measured is not printed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """A claim with a level.

    Attributes
    ----------
    nominal : float
        How often it is to hold. A test holds where it does not reject a true hypothesis at 5 %, an
        alarm where it is not given without a reason.
    claim : str
        What is said, and of what.
    printed : tuple of str
        Where: fields of a report ("Score.difference_se"), rows of ``Advice.frame()``
        ("advice global_gain interval", "advice hh_local p_value"), columns of other tables
        ("evaluate brier_score").
    """

    nominal: float
    claim: str
    printed: tuple[str, ...]


_METRICS = "evaluate {}".format

LEVELS = {
    "gain": Level(
        0.95,
        "interval of the gain in Brier score of a recipe as it was fitted, on new items",
        (
            "advice global_gain interval",
            "advice local_gain interval",
            "advice hybrid_gain interval",
            "advice retraining_gain interval",
            "advice hybrid_over_retrained interval",
            "advice model_gain interval",
            "advice doubling_gain interval",
            "Score.difference_se",
            "compare difference_se",
            "refresh gain_low",
            "refresh gain_high",
        ),
    ),
    "gain_p": Level(
        0.95,
        "test that nothing is gained on later items, where a time is given",
        ("advice global_gain p_value", "advice local_gain p_value"),
    ),
    "score": Level(
        0.95,
        "interval of the Brier score or log loss of a recipe as fitted, on new items",
        ("Score.low", "Score.high", "compare low", "compare high"),
    ),
    "cost": Level(
        0.95,
        "interval of the mean cost of decisions (accuracy is one less such a cost)",
        ("CostRow.low", "CostRow.high", "compare accuracy low", "compare accuracy high"),
    ),
    "bootstrap": Level(
        0.95,
        "interval of Brier score, log loss, accuracy, cost, uncertainty and of their differences "
        "between given probabilities",
        tuple(
            map(
                _METRICS,
                ("brier_score", "brier_uncertainty", "log_loss", "accuracy", "expected_cost"),
            )
        ),
    ),
    "bootstrap_parts": Level(
        0.95,
        "interval of the calibration and refinement parts of the Brier score",
        tuple(map(_METRICS, ("brier_calibration", "brier_refinement"))),
    ),
    "bootstrap_ece": Level(
        0.95,
        "interval of a calibration error that is not debiased",
        tuple(
            map(
                _METRICS,
                (
                    "ece_top_label",
                    "ece_top_label_equal_width",
                    "ece_class_wise",
                    "smooth_calibration_error",
                ),
            )
        ),
    ),
    "bootstrap_debiased": Level(
        0.95,
        "interval of a debiased calibration error",
        tuple(map(_METRICS, ("ece_top_label_debiased", "ece_top_label_debiased_l2"))),
    ),
    "reliability": Level(
        0.95, "band of each bin of a reliability diagram, one by one", ("Bin.low", "Bin.high")
    ),
    "hh_p": Level(
        0.95,
        "test that a global map repairs everything",
        (
            "Hidden.p_value",
            "Certainty.p_value",
            "advice hh_local p_value",
            "advice local_gain p_value",
        ),
    ),
    "hh_regions": Level(
        0.95, "no region is singled out where nothing is hidden", ("HiddenCell.q_value",)
    ),
    "hh_low": Level(
        0.95, "lower bound on the grouping loss", ("HiddenHeterogeneity hh_local_low",)
    ),
    "hh_error": Level(
        0.95,
        "what was found of hidden heterogeneity ± 1.96 standard errors; there may be more",
        ("Hidden.standard_error", "HiddenCell.standard_error", "advice hh_local interval"),
    ),
    "average_p": Level(
        0.95,
        "test that the probabilities are right on average",
        ("advice global_gain p_value", "advice hh_global p_value"),
    ),
    "subgroup": Level(
        0.95, "interval of what happens in a sub-population", ("Subgroup.low", "Subgroup.high")
    ),
    "subgroup_p": Level(
        0.95, "no sub-population is singled out where all is right", ("Subgroup.p_value",)
    ),
    "class_balance": Level(
        0.95, "intervals of all changes of class frequencies", ("PriorShift.low", "PriorShift.high")
    ),
    "low_support": Level(
        0.95,
        "share of items of the same law that are not said to have little support",
        ("Support.typical_low", "Histogram.share_low"),
    ),
    "monitor_flag": Level(
        0.95, "share of items of the same law without a flag at rate=0.05", ("monitor flag",)
    ),
    "monitor_alarm": Level(
        0.9, "no alarm in 1000 items of the same law at alarm_rate=0.1", ("monitor alarm",)
    ),
    "dependence": Level(
        0.98, "independent rows are not said to belong together", ("warning dependence",)
    ),
    "more_data": Level(
        0.95,
        "interval of what twice the items would bring",
        ("MoreData.expected_low", "MoreData.expected_high"),
    ),
    "probability": Level(
        0.9,
        "interval of P(y given x): the share of new items and classes that it holds",
        ("predict_interval", "apply q_low", "apply q_high"),
    ),
    "votes": Level(
        0.95,
        "interval of a vote: the probability smoothed over similar items",
        ("predict_smoothed_interval",),
    ),
}
