"""A learning curve is drawn from trials that have all of its sizes."""

import pandas as pd

from hetcal.paper.figures.learning_curves import _whole_curves


def test_no_curve_changes_its_trials_between_sizes():
    rows = [("SWC", seed, size) for seed in range(4) for size in (50, 100, 3000)]
    # The other method has fewer sizes throughout, and more trials at the largest alone.
    rows += [("hybrid", seed, size) for seed in range(2) for size in (50, 3000)]
    rows += [("hybrid", seed, 3000) for seed in range(2, 4)]
    table = pd.DataFrame(rows, columns=["method", "seed", "n_cal"]).assign(classifier="NB")
    trials = _whole_curves(table).groupby(["method", "n_cal"])["seed"].nunique().to_dict()
    assert {size: n for (method, size), n in trials.items() if method == "SWC"} == {
        50: 4,
        100: 4,
        3000: 4,
    }
    assert {size: n for (method, size), n in trials.items() if method == "hybrid"} == {
        50: 2,
        3000: 2,
    }
