"""Near-copies of one event in shuffled rows are found without any column that numbers events."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hetcal
from hetcal.cli._app import app
from hetcal.data import CalibrationSet
from hetcal.data.near_copies import _MOST_COPIES, _Neighbourhood, find_near_copies
from hetcal.diagnosis import group_near_copies
from hetcal.diagnosis.checks import check_dependence
from hetcal.diagnosis.dependence import find_dependence

pytestmark = pytest.mark.usefixtures("with_small_hybrids")


def events(seed=0, sizes=(6,) * 40, *, noise=0.02, d=5, changing=0, one_outcome=True):
    """Rows of some events in random order: nearly equal features, and one outcome per event."""
    rng = np.random.default_rng(seed)
    event = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    values = rng.normal(size=(len(sizes), d))
    shared = values[event] + noise * rng.normal(size=(len(event), d))
    X = np.hstack([shared, rng.normal(size=(len(event), changing))])
    slope = rng.normal(size=d)
    p = 1 / (1 + np.exp(-shared @ slope))
    chance = 1 / (1 + np.exp(-values @ slope))
    draws = rng.random(len(sizes))[event] if one_outcome else rng.random(len(event))
    return X, (draws < chance[event]).astype(int), p, event


def items_of(X, y, p, **given):
    return CalibrationSet.check(X, y, y_proba=p, caller="test", **given)


def agree(numbers, event):
    """Share of pairs of rows that are together, or apart, in both."""
    same, truth = (v[:, None] == v for v in (numbers, event))
    return np.mean(same == truth)


def linked(nearest):
    """Return the clusters of rows whose copies are these, -1 for none."""
    nearest = np.array(nearest)
    n_copies = (nearest >= 0).sum(axis=1)
    logs = np.zeros(nearest.shape)
    return _Neighbourhood(np.arange(len(nearest)), nearest, n_copies, 0.0, logs).linked()


def test_rows_are_one_event_where_each_is_a_copy_of_the_other():
    numbers = linked([[1, -1], [0, -1], [0, 1]])
    assert numbers[0] == numbers[1] != numbers[2]


def test_more_rows_than_an_event_has_are_a_sub_population():
    for n, n_clusters in ((_MOST_COPIES + 1, 1), (_MOST_COPIES + 2, _MOST_COPIES + 2)):
        ring = np.arange(n)
        numbers = linked(np.column_stack([(ring + 1) % n, (ring - 1) % n]))
        assert len(np.unique(numbers)) == n_clusters


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"noise": 0.005},
        {"noise": 0.1, "d": 8},
        {"sizes": (2,) * 120},
        {"sizes": tuple(range(1, 11)) * 5},
        {"sizes": (6,) * 30 + (1,) * 270},
        {"sizes": (20,) * 30},
        {"changing": 3, "d": 6},
        {"d": 80},
    ],
    ids=str,
)
def test_near_copies_are_found(kind):
    X, y, p, event = events(1, **kind)
    assert agree(group_near_copies(X), event) > 0.99
    found = find_dependence(items_of(X, y, p))
    assert found.near_copies
    assert found.columns == ()
    assert found.by_gain


def test_what_copies_share_may_be_few_columns_among_categories():
    X, y, p, event = events(2, changing=2)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X).rename(columns=str)
    table["kind"] = rng.choice(list("abcd"), 40)[event]
    table["ward"] = rng.choice(list("abcd"), len(y))  # another on every visit
    table.loc[event < 10, "0"] = np.nan
    assert find_dependence(items_of(table, y, p)).near_copies
    assert agree(group_near_copies(table), event) > 0.99


def test_an_event_of_many_classes():
    X, _, _, event = events(3, sizes=(5,) * 60)
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(6), 60)
    y = np.array([rng.choice(6, p=row) for row in truth])[event]
    assert find_dependence(items_of(X, y, truth[event], classes=np.arange(6))).near_copies


def test_copies_with_outcomes_of_their_own_are_left_in_peace():
    X, y, p, _ = events(4, sizes=(3,) * 200, one_outcome=False)
    assert find_near_copies(X) is not None
    assert find_dependence(items_of(X, y, p)) is None


def test_a_pattern_that_goes_on_beyond_the_copies_is_left_in_peace():
    """Labels of copies agree, but so do those of the rows around them: that is heterogeneity."""
    X, _, _, _ = events(5, sizes=(3,) * 200, d=3)
    y = (np.abs(X[:, 0]) > 0.7).astype(int)
    assert find_near_copies(X) is not None
    assert find_dependence(items_of(X, y, np.full(len(y), 0.5))) is None


def rounded(rng, n):
    return np.round(rng.normal(size=(n, 4)), 1)


def lattice(rng, n):
    return np.column_stack([rng.integers(0, 6, (n, 5)), rng.normal(size=n)])


def clusters(rng, n):
    return 5 * rng.normal(size=(6, 4))[rng.integers(0, 6, n)] + 0.1 * rng.normal(size=(n, 4))


def curve(rng, n):
    t = rng.uniform(0, 6, n)
    return np.column_stack([np.sin(k * t) for k in range(1, 7)])


def heavy_tails(rng, n):
    return rng.standard_cauchy((n, 5))


def categories(rng, n):
    codes = rng.integers(0, 8, (3, n))
    return np.column_stack([*(np.eye(8)[c] for c in codes), rng.normal(size=(n, 2))])


@pytest.mark.parametrize("draw", [rounded, lattice, clusters, curve, heavy_tails, categories])
@pytest.mark.parametrize("n", [300, 1000])
def test_no_copies_among_independent_rows(draw, n):
    for seed in range(3):
        assert find_near_copies(draw(np.random.default_rng(seed), n)) is None


def test_columns_without_news_are_no_copies():
    assert find_near_copies(np.ones((100, 3))) is None
    assert find_near_copies(np.full((100, 1), np.nan)) is None
    assert find_near_copies(np.random.default_rng(0).normal(size=(30, 3))) is None
    assert group_near_copies(np.ones((50, 1))).tolist() == list(range(50))


def test_known_groups_are_no_news_and_others_are():
    X, y, p, event = events(6)
    assert find_dependence(items_of(X, y, p, groups=event)) is None
    rng = np.random.default_rng(0)
    assert find_dependence(items_of(X, y, p, groups=rng.permutation(len(y)))).near_copies


def test_the_result_is_that_of_the_seed():
    X, *_ = events(7, changing=4)
    numbers = [group_near_copies(X, random_state=seed) for seed in (0, 0, 1)]
    assert np.array_equal(numbers[0], numbers[1])
    assert agree(numbers[0], numbers[2]) > 0.99


def test_advice_on_near_copies_recommends_nothing_and_then_the_right_thing():
    X, y, p, _ = events(8)
    advice = hetcal.advise(X, y, y_proba=p)
    (warning,) = [w for w in advice.warnings if w.code == "dependent-rows"]
    assert warning.text.startswith("Rows that are nearly equal in their features seem to belong")
    assert "groups=hetcal.diagnosis.group_near_copies(X)" in warning.text
    assert advice.recommended == "uncalibrated"
    assert (advice.expected_gain, advice.certainty.state) == (None, "open")
    grouped = hetcal.advise(X, y, y_proba=p, groups=group_near_copies(X))
    assert "dependent-rows" not in {w.code for w in grouped.warnings}
    assert grouped.evidence.hybrid_gain.value < 0.02  # 0.2 and more where copies were seen
    assert advice.evidence.hybrid_gain.value > 0.1


def test_a_column_that_tells_it_is_named_rather_than_the_copies():
    X, y, p, event = events(9)
    found = find_dependence(items_of(X, y, p), {"event": event})
    assert (found.columns, found.near_copies) == (("event",), False)


def test_the_command_says_what_was_measured(tmp_path):
    X, y, p, _ = events(10)
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=y, p=p)
    table.to_csv(tmp_path / "t.csv", index=False)
    roles = ["--label", "y", "--proba", "p", "--positive", "1"]
    words = ["fit", str(tmp_path / "t.csv"), *roles, "--method", "swc", "--json"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "m.hetcal")])
    assert result.exit_code == 0, result.output
    (note,) = [n for n in json.loads(result.stdout)["notes"] if "belong together" in n]
    assert note.startswith(check_dependence(find_dependence(items_of(X, y, p))).text.split(".")[0])
    assert "Fit again with --groups COLUMN" in note
    assert "group_near_copies" in note


def test_groups_keep_events_whole_where_copies_differ_more():
    """Rows without a gap behind their copies belong to the event too."""
    X, _, _, event = events(sizes=tuple(range(2, 13)) * 5, noise=0.1)
    groups = group_near_copies(X)
    split = [len(np.unique(groups[event == number])) > 1 for number in np.unique(event)]
    assert np.mean(split) <= 0.1
    assert len(np.unique(groups)) > 0.8 * len(np.unique(event))


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e300])
def test_scales_of_columns_do_not_matter(scale):
    X, _, _, event = events()
    X[:, 1] *= scale
    assert agree(group_near_copies(X), event) > 0.99
