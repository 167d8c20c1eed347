"""What the test of hidden heterogeneity is given: errors are sentences of its own."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from hetcal.data import CalibrationSet
from hetcal.heterogeneity import HiddenHeterogeneity, heterogeneity_test
from hetcal.heterogeneity.detectable import detectable_size
from hetcal.heterogeneity.feature_columns import FeatureColumns

N = 150


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    p = 1 / (1 + np.exp(-X[:, 0]))
    return X, (rng.random(N) < p).astype(int), np.column_stack([1 - p, p])


def ask(data, X=None, **options):
    given, y, P = data
    return heterogeneity_test(
        given if X is None else X, y, y_proba=P, **({"learners": []} | options)
    )


@pytest.mark.parametrize("by", [1, [1], [0, 2], np.int64(1)])
def test_columns_may_be_named_by_numbers(data, by):
    X, number = pd.DataFrame(data[0]), np.atleast_1d(by).tolist()
    named, given = ask(data, X, by=by), ask(data, X, by=X[number])
    assert (named.p_value, named.parts) == (given.p_value, given.parts)


def test_numbers_one_per_item_are_values(data):
    by = (data[0][:, 1] > 0).astype(int)
    assert ask(data, by=by.tolist()).p_value == ask(data, by=by).p_value


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (1, "by names columns that X does not have: .1.. Its columns are without names"),
        ([7], "by names columns that X does not have: .7."),
        (0.5, "by must name columns of X, or hold a value"),
        (np.zeros((N, 2, 2)), "by must name columns of X, or hold a value"),
    ],
)
def test_other_columns_are_refused(data, by, words):
    with pytest.raises(ValueError, match=words):
        ask(data, by=by)


@pytest.mark.parametrize(
    ("learners", "words"),
    [
        ([LogisticRegression()], "That is a classifier, and residuals are numbers"),
        ([make_pipeline(LogisticRegression())], "That is a classifier"),
        ([Ridge], r"That is a class: pass Ridge\(\)"),
        (Ridge, r"That is a class: pass Ridge\(\)"),
        (5, "learners must be 'auto' or a list .* got 5"),
        ([None], "learners must be 'auto' or a list .* got None"),
    ],
)
def test_learners_that_cannot_learn_residuals_are_refused(data, learners, words):
    for call in (
        ask,
        lambda data, learners: HiddenHeterogeneity(learners=learners).fit(
            *data[:2], y_proba=data[2]
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call(data, learners=learners)


def test_one_regressor_needs_no_list(data):
    assert ask(data, learners=Ridge()).p_value == ask(data, learners=[Ridge()]).p_value


@pytest.mark.parametrize("alpha", ["0.05", None, [0.05], 1, np.nan])
def test_levels_that_are_no_numbers_are_refused(data, alpha):
    with pytest.raises(ValueError, match="alpha must lie between 0 and 0.5; got"):
        ask(data, alpha=alpha)


@pytest.mark.parametrize("seed", ["a", -1, 2**32, 1.5, np.random.default_rng(0)])
def test_seeds_that_seed_nothing_are_refused(data, seed):
    words = "random_state must be an integer from 0 to 4294967295, a numpy RandomState or None"
    with pytest.raises(ValueError, match=words):
        ask(data, random_state=seed)
    with pytest.raises(ValueError, match=words):
        HiddenHeterogeneity(random_state=seed).fit(*data[:2], y_proba=data[2])


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0), np.uint8(3), np.random])
def test_seeds_of_every_kind_are_taken(data, seed):
    assert 0 <= ask(data, random_state=seed).p_value <= 1


@pytest.mark.parametrize("kind", [str, "table", "column"])
def test_numbers_as_text_are_no_levels(data, kind):
    X, words = data[0].astype(str), r"numbers as text, such as .* X.astype\(float\)"
    if kind == "table":
        X, words = pd.DataFrame(X, columns=list("abc")), "'a' of X .* numbers as text"
    if kind == "column":
        X = pd.DataFrame({"a": data[0][:, 0], "b": X[:, 1]})
        words = "'b' of X .* numbers as text"
    with pytest.raises(ValueError, match=words):
        ask(data, X)


def test_text_of_few_numbers_and_categories_are_levels(data):
    few = np.arange(N) % 3
    for column in (few.astype(str), pd.Categorical(data[0][:, 1].astype(str))):
        columns = FeatureColumns.read(pd.DataFrame({"a": column}))
        assert len(columns.categories) == 1
    words = np.column_stack([few.astype(str), np.where(few, "u", "v")])
    assert len(FeatureColumns.read(words).categories) == 2


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_complex_numbers_are_refused(data, container):
    with pytest.raises(ValueError, match=r"complex numbers.*numpy.hstack\(\[X.real, X.imag\]\)"):
        ask(data, container(data[0] + 1j))


@pytest.mark.parametrize("value", [["u", "v"], {"u": 1}, {"u"}, ("u", 1)])
def test_collections_are_no_levels(data, value):
    X = pd.DataFrame({"a": [value] * N, "b": data[0][:, 1]})
    words = "'a' of X (must hold lists of numbers only|holds .*neither numbers nor levels)"
    with pytest.raises(TypeError, match=words):
        ask(data, X)


def test_many_classes_are_no_regression():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(100), N)
    X, y = rng.normal(size=(N, 2)), np.array([rng.choice(100, p=p) for p in P])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heterogeneity_test(X, y, y_proba=P, classes=np.arange(100), learners=[])
        items = CalibrationSet.check(X, y, y_proba=P, classes=np.arange(100), caller="test")
        detectable_size(items)
