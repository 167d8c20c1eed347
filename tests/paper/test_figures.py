"""The paper's figures: what is drawn is what the results say."""

import os
from functools import cache, partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from tests.paper.made_up import results_like_the_paper, write

from hetcal.datasets import paper_split
from hetcal.paper.figures import (
    _results,
    draw_figure,
    figure_names,
    figure_title,
    figure_trials,
    improvement,
    moons,
    rotation,
    shift,
    support_low,
)
from hetcal.paper.figures._digits import CalibratedDigits
from hetcal.paper.published import published_value
from hetcal.paper.settings import Trial
from hetcal.paper.store import load_results

OF_RESULTS = [name for name in figure_names() if figure_trials(name, trials=1)]
needs_data = pytest.mark.skipif(
    not os.environ.get("HETCAL_DATA"), reason="HETCAL_DATA does not name the folder of the data"
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    table = results_like_the_paper(trials=3)
    networks = table[table["dataset"] == "letter"].assign(dataset="cifar10", n_test=5000)
    names = {"NB": "resnet20", "DT": "resnet56", "RF": "repvgg_a2"}
    networks = networks[networks["classifier"].isin(names)].replace({"classifier": names})
    small = table[table["dataset"] == "mnist-4v9"].assign(n_cal=50)
    small = small[small["classifier"].isin(["NB", "DT", "RF"])]
    table = pd.concat([table, networks, small], ignore_index=True)
    keys = [
        Trial(row.dataset, row.classifier, row.n_cal, row.seed, row.method).key
        for row in table.itertuples()
    ]
    return write(table.assign(key=keys), tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def drawn(folder):
    """Return a function that draws a figure of the results, once."""
    return cache(partial(draw_figure, results=folder))


@pytest.mark.parametrize("name", OF_RESULTS)
def test_figures_of_results_are_drawn(name, drawn):
    found = drawn(name)
    assert len(found.figure.axes) >= 1
    assert len(found.facts)
    found.figure.canvas.draw()  # layout problems are warnings, and so errors


@pytest.mark.parametrize("name", OF_RESULTS)
def test_without_results_one_is_told_what_to_run(name, tmp_path):
    with pytest.raises(ValueError, match=f"hetcal paper figure {name}"):
        draw_figure(name, results=tmp_path)


def test_bars_are_as_high_as_the_means(drawn):
    axes = drawn("appendix-binary").figure.axes
    ax = axes[0]  # mnist-1v7, Brier score
    labels = [text.get_text().split("\n")[0] for text in ax.get_xticklabels()]
    start = [published_value("mnist-1v7", name, "Uncal.") for name in labels]
    assert start == sorted(start, reverse=True)
    heights = {bars.get_label(): [bar.get_height() for bar in bars] for bars in _bars(ax)}
    for method in ("Uncal.", "Platt", "SWC-HH"):
        expected = [published_value("mnist-1v7", name, method) for name in labels]
        np.testing.assert_allclose(heights[method], expected)
    colors = {bars.get_label(): bars[0].get_facecolor() for bars in _bars(ax)}
    other = {bars.get_label(): bars[0].get_facecolor() for bars in _bars(axes[2])}
    assert colors == other
    assert len(set(colors.values())) == len(colors) == 9


def _bars(ax):
    from matplotlib.container import BarContainer

    return [found for found in ax.containers if isinstance(found, BarContainer)]


def test_the_figure_says_which_network_was_trained_for_this_project(drawn):
    figure = drawn("cifar").figure
    labels = " ".join(text.get_text() for text in figure.axes[0].get_xticklabels())
    assert "RepVGG_A2*" in labels
    assert "* trained for this project" in figure.get_suptitle()


def test_improvements_against_a_plain_loop(folder):
    table = _results.at_usual_size(load_results(folder, "mnist-4v9"))
    points = improvement.improvements(table)
    assert set(points["method"]) == {"Platt / TS", "SWC", "SWC-HH", "hybrid"}
    index = table.set_index(["classifier", "seed", "method"])
    part = points[(points["method"] == "SWC") & (points["measure"] == "out-of-sample local")]
    assert len(part) == 18
    for row in part.itertuples():
        before = index.loc[(row.classifier, row.seed, "Uncal."), "brier"]
        after = index.loc[(row.classifier, row.seed, "SWC"), "brier"]
        assert row.improvement == pytest.approx(before - after)
        local = index.loc[(row.classifier, row.seed, "hh-out-of-sample"), "hh_local"]
        assert row.hh == pytest.approx(local)


def test_correlations_and_slope_against_their_definitions():
    rng = np.random.default_rng(0)
    hh = rng.uniform(size=40)
    gain = 2 * hh + rng.normal(scale=0.3, size=40)
    points = pd.DataFrame({"hh": hh, "improvement": gain, "measure": "published", "row": "binary"})
    flat = points.assign(hh=0.1, method="no variation")
    few = points.iloc[:2].assign(method="two points")
    [found] = improvement.correlations(
        pd.concat([points.assign(method="SWC"), flat, few])
    ).itertuples()
    a, b = hh - hh.mean(), gain - gain.mean()
    assert found.pearson == pytest.approx((a @ b) / np.sqrt((a @ a) * (b @ b)))
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (hh, gain)]
    assert found.spearman == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert found.slope == pytest.approx((a @ gain) / (a @ a))


def test_learning_curves_are_named_as_in_the_paper(drawn):
    figure = drawn("learning-curves").figure
    names = {text.get_text() for text in figure.legends[0].get_texts()}
    assert names == {
        *("Uncal.", "Platt", "Iso Reg", "Hist bin", "SBA-10", "SBAW-10", "SWC", "SWC-HH", "hybrid"),
    }


def test_trials_are_those_that_the_figure_shows(folder):
    """Everything that a figure needs has a result once its trials are run."""
    needed = {trial.key for trial in figure_trials("appendix-binary", 3, ["hybrid"])}
    assert needed <= set(load_results(folder)["key"])


def test_unknown_names_are_refused():
    for function in (figure_title, figure_trials, draw_figure):
        with pytest.raises(ValueError, match="There is no figure 'moon'; choose one of .*moons"):
            function("moon")


def test_the_moons_are_the_published_ones():
    split = paper_split("moons", seed=0, n_cal=1000)
    for name, before, after in (("DT", 0.156, 0.129), ("RF", 0.134, 0.122)):
        panels, facts = moons.row_of_panels(split, name)
        assert facts["uncalibrated"] == pytest.approx(before, abs=0.0005)
        assert facts["swc"] == pytest.approx(after, abs=0.0005)
        # The panels show what the scores are scores of.
        points = split.X_test[:5]
        assert (panels["HH"](points) >= 0).all()
        assert panels["SWC"](points).shape == (5,)


@pytest.fixture(scope="module")
def digits():
    return CalibratedDigits.trial(0)


@pytest.mark.paper
@needs_data
class TestDigits:
    """Figures 5 and 6, on the first trial."""

    def test_images_are_scaled_as_the_split_is(self, digits):
        split = paper_split("mnist-1v7", 0, 3000)
        np.testing.assert_allclose(digits.scaled(digits.images), split.X_test, atol=1e-9)

    def test_swc_lowers_the_true_class_for_all_five(self, digits):
        low = support_low.lowest_support(digits)
        assert (low["after"] < low["before"]).all()
        np.testing.assert_allclose(low["support"], np.sort(digits.support(digits.images))[:5])

    def test_support_falls_when_items_are_turned(self, digits):
        upright, none = rotation.support_after_rotation(digits, 0.0)
        assert not none.any()
        half, turned = rotation.support_after_rotation(digits, 0.5)
        assert turned.sum() == 250
        np.testing.assert_allclose(half[~turned], upright[~turned])
        assert np.median(upright) == pytest.approx(900, rel=0.1)
        whole, every = rotation.support_after_rotation(digits, 1.0)
        assert every.all()
        assert np.median(whole) == pytest.approx(300, rel=0.1)
        np.testing.assert_allclose(half[turned], whole[turned])

    def test_turning_is_counter_clockwise(self, digits):
        """The right edge of an image becomes its upper edge."""
        image = digits.images[0]
        np.testing.assert_array_equal(np.rot90(image, axes=(0, 1))[0], image[:, -1])


def test_the_training_sample_has_the_share_that_is_wanted():
    rng = np.random.default_rng(0)
    rare = rng.random(20_000) < 0.33
    pool = rng.permutation(20_000)
    for share in (0.0, 0.05):
        train = shift._biased(pool, rare, share)
        assert len(train) == len(set(train)) == shift.N_TRAIN
        assert rare[train].mean() == share
    np.testing.assert_array_equal(shift._biased(pool, rare, None), pool[: shift.N_TRAIN])


def test_finished_trials_of_the_shift_experiment_are_drawn_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(shift, "shift_trial", _must_not_run)
    facts = _shift_facts(trials=2)
    (tmp_path / "figures").mkdir()
    facts.to_csv(tmp_path / "figures" / "shift.csv", index=False)
    drawn = draw_figure("shift", results=tmp_path, trials=2)
    assert len(drawn.facts) == len(facts)
    with pytest.raises(RuntimeError, match="was run"):
        draw_figure("shift", results=tmp_path, trials=3)
    monkeypatch.setattr(shift, "_VERSION", "of another recipe")
    with pytest.raises(RuntimeError, match="was run"):
        draw_figure("shift", results=tmp_path, trials=2)


def test_trials_of_the_shift_experiment_are_kept(tmp_path, monkeypatch):
    ran = []

    def trial(classifier, share, seed):
        ran.append((classifier, share, seed))
        if len(ran) == 4:
            raise KeyboardInterrupt
        facts = _shift_facts(trials=seed + 1)
        level = 0.33 if share is None else share
        keep = (facts["classifier"] == classifier) & (facts["share"] == level)
        return facts[keep & (facts["seed"] == seed)].reset_index(drop=True)

    monkeypatch.setattr(shift, "shift_trial", trial)
    with pytest.raises(KeyboardInterrupt):
        draw_figure("shift", results=tmp_path, trials=1)
    drawn = draw_figure("shift", results=tmp_path, trials=1)
    assert len(ran) == 7  # six, and the one that was stopped once more
    expected = _shift_facts(trials=1)
    order = ["classifier", "share", "method", "group"]
    pd.testing.assert_frame_equal(
        drawn.facts.sort_values(order, ignore_index=True)[expected.columns],
        expected.sort_values(order, ignore_index=True),
    )


def _must_not_run(*_):
    raise RuntimeError("a trial was run")


def _shift_facts(trials: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {
                "classifier": classifier,
                "share": share,
                "seed": seed,
                "method": method,
                "group": group,
                "items": 100,
                "brier": rng.uniform(0.1, 0.2),
                "gap": 0.01,
                "version": shift._VERSION,
            }
            for classifier in shift.CLASSIFIERS
            for share in (0.0, 0.05, 0.33)
            for seed in range(trials)
            for method in shift.METHODS
            for group in (shift.RARE, shift.COMMON)
        ]
    )
