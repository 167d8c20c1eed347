"""Every parameter of every calibrator changes what it predicts; data reach the parts inside."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import hetcal
from hetcal import LabelPreserving, LocallyCalibratedClassifier, SimilarityCalibrator
from hetcal.calibration import blend, get_calibrator, list_calibrators
from hetcal.calibration.augment import AugmentedSpace
from hetcal.data import CalibrationSet, Folds
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.similarity import ForestProximity, IsolationProximity, RBFSimilarity

OTHER = {
    "monotone": False,
    "prior_mass": 30.0,
    "score": {"temperature": "log_odds", "platt": "proba", "isotonic": "proba"},
    "targets": "platt",
    "bounds": (2.0, 5.0),
    "smoothing": False,
    "bias_penalty": 100.0,
    "scale_penalty": 500.0,
    "shrinkage": 30.0,
    "n_knots": 9,
    "roughness": 300.0,
    "pseudo_errors": 20.0,
    "cut": "runs",
    "n_bins": 3,
    "normalize": False,
    "n_folds": 4,
    "random_state": 5,
    "augment": None,
    "features": [0, 1],
    "n_neighbors": 7,
    "power": 3.0,
    "similarity": "rbf",
    "weights": {"sbaw": "uniform", "sba": "similarity"},
}
#: Without effect by design: of everyone's uniform vote the power is one, of a search the seed none.
NO_EFFECT = {
    *(("sba", name) for name in ("power", "random_state")),
    ("sbaw", "random_state"),
    ("histogram", "score"),  # the same order, and so the same bins
    ("swc", "weights"),  # a uniform vote of everyone: see sba
    ("sba", "similarity"),  # the same neighbours
}


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(90, n_classes=3, heterogeneity=1.0, random_state=0)


def asked():
    for name in list_calibrators():
        if name in ("swc-hh", "quadratic", "global", "hybrid"):  # as swc and spline; too slow
            continue
        for parameter in get_calibrator(name).get_params(deep=False):
            if (
                parameter in ("classes", "n_jobs", "heterogeneity")
                or (name, parameter) in NO_EFFECT
            ):
                continue
            yield name, parameter


def small(name):
    calibrator = get_calibrator(name)
    return calibrator.set_params(similarity=ForestProximity(5)) if name == "swc" else calibrator


@pytest.mark.filterwarnings("ignore:y_proba ranks the labels the wrong way round")
@pytest.mark.parametrize(("name", "parameter"), list(asked()))
def test_a_parameter_changes_the_prediction(data, name, parameter):
    other = OTHER[parameter]
    if isinstance(other, dict):
        other = other.get(name)
    base = small(name)
    if (name, parameter) == ("swc", "random_state"):
        base.set_params(similarity="forest")
    # Where each column ranks its own class it does not matter whether a map must rise.
    P = data.y_proba[:, [1, 2, 0]] if parameter == "monotone" else data.y_proba
    new, said = data.sample(60, random_state=1), []
    for settings in ({}, {parameter: other}):
        calibrator = base.__class__(**(base.get_params(deep=False) | settings))
        calibrator.fit(data.X, data.y, y_proba=P)
        said.append(calibrator.predict_proba(new.X, y_proba=new.y_proba))
    assert np.abs(said[0] - said[1]).max() > 1e-4


@pytest.mark.parametrize(
    ("similarity", "parameter", "other"),
    [
        (ForestProximity(20), "n_estimators", 5),
        (ForestProximity(20), "max_features", None),
        (ForestProximity(20), "min_samples_leaf", 9),
        (ForestProximity(20), "random_state", 3),
        (ForestProximity(20), "trees", "extra"),
        (ForestProximity(20), "voters", "out-of-bag"),
        (IsolationProximity(20), "random_state", 3),
        (RBFSimilarity(), "bandwidth", 0.3),
        (RBFSimilarity(), "scale", False),
    ],
)
def test_a_parameter_changes_the_similarity(data, similarity, parameter, other):
    scale, new = np.array([1, 5, 1, 1, 9, 1]), data.sample(60, random_state=1)
    known = similarity.get_params(deep=False)
    said = []
    for settings in ({}, {parameter: other}):
        kind = type(similarity)(**(known | settings))
        calibrator = SimilarityCalibrator(kind).fit(data.X * scale, data.y, y_proba=data.y_proba)
        said.append(calibrator.predict_proba(new.X * scale, y_proba=new.y_proba))
    assert np.abs(said[0] - said[1]).max() > 1e-4


class Measured(BaseEstimator):
    """Stands for an estimator of hidden heterogeneity and remembers what it was given."""

    given = None

    def __init__(self, classes=None):
        self.classes = classes

    def fit(self, X, y, y_proba=None, **more):
        Measured.given = {"X": X, "y": y, "y_proba": y_proba, "classes": self.classes, **more}
        return self

    def score_samples(self, y_proba):
        return np.where(np.arange(len(y_proba)) % 3 == 0, np.nan, 0.4)


def test_heterogeneity_gets_features_weights_and_groups_and_is_halved(data):
    weight = np.random.default_rng(0).uniform(1, 9, 90)
    weight[:5] = 0
    swc = SimilarityCalibrator(RBFSimilarity(), heterogeneity=Measured())
    swc.fit(data.X, data.y, y_proba=data.y_proba, sample_weight=weight, groups=np.arange(90) // 2)
    given = Measured.given
    assert given["X"].shape == data.X.shape
    np.testing.assert_array_equal(given["y_proba"], data.y_proba)
    np.testing.assert_allclose(given["sample_weight"], weight / weight[5:].mean())
    assert len(np.unique(given["groups"])) == 45
    np.testing.assert_array_equal(given["classes"], [0, 1, 2])
    Q = swc.predict_proba(data.X, y_proba=data.y_proba)
    known = np.where(np.arange(90) % 3 == 0, 0.0, 0.4)
    by_hand = swc.predict_proba(data.X, y_proba=data.y_proba, heterogeneity=known)
    np.testing.assert_array_equal(Q, by_hand)
    # Who is less alike than half of it does not vote.
    table = swc.evidence(data.X, y_proba=data.y_proba, heterogeneity=known, top=90)
    voters = table[table["item"] % 3 != 0]["similarity"]
    assert 0.2 <= voters.min() < 0.3


class Remembering(hetcal.Uncalibrated):
    """A calibrator that remembers what it was fitted with."""

    given = None

    def fit(self, X, y, *, y_proba=None, logits=None, sample_weight=None, groups=None):
        Remembering.given = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
        return super().fit(X, y, y_proba=y_proba)


def test_weights_and_groups_of_its_rows_reach_the_calibrator(data):
    model = FrozenEstimator(LogisticRegression(max_iter=500).fit(data.X, data.y))
    weight, groups = np.arange(90) + 1.0, np.arange(90) // 3
    wrapped = LocallyCalibratedClassifier(model, Remembering())
    wrapped.fit(data.X, data.y, sample_weight=weight, groups=groups)
    np.testing.assert_array_equal(Remembering.given["sample_weight"], weight)
    pairs = zip(groups.tolist(), np.asarray(Remembering.given["groups"]).tolist(), strict=True)
    assert len(set(pairs)) == 30


def test_changed_decisions_and_their_price_are_counted_by_weight(data, monkeypatch):
    """Weight two is a row twice."""
    P, Q = np.random.default_rng(0).dirichlet(np.ones(3), (2, 90))
    weight = np.where(data.y == 0, 3, 1)
    rows = np.repeat(np.arange(90), weight)
    found = []
    for take, given in ((np.arange(90), weight.astype(float)), (rows, None)):
        with monkeypatch.context() as patch:
            patch.setattr("hetcal.calibration.preserving.out_of_sample_proba", lambda *_: Q[take])  # noqa: B023
            keeps = LabelPreserving(get_calibrator("vector"))
            keeps.fit(None, data.y[take], y_proba=P[take], sample_weight=given)
        found.append((keeps.changed_, keeps.price_))
    assert found[0] == pytest.approx(found[1])
    changed = Q.argmax(axis=1) != P.argmax(axis=1)
    assert found[0][0] == pytest.approx(np.average(changed, weights=weight))


def test_maps_of_the_average_are_those_of_weighted_items(data):
    weight = np.random.default_rng(0).uniform(0.1, 9, 90)
    items = CalibrationSet.check(
        None, data.y, y_proba=data.y_proba, sample_weight=weight, caller="test"
    )
    Q = blend._fitted(get_calibrator("bcts"), items)._apply_map(items.scores)
    np.testing.assert_allclose(Q, get_calibrator("bcts").fit_set(items).predict_set(items))


def test_more_classes_imagine_twice_as_many_items_without_a_map(monkeypatch):
    seen, rng = [], np.random.default_rng(0)

    def weights(said, counted):
        seen.append(counted[-1])
        return np.full(len(said), 1 / len(said))

    monkeypatch.setattr(blend, "mixture_weights", weights)
    for K in (2, 3, 5):
        P = rng.dirichlet(np.ones(K), (4, 60))
        items = CalibrationSet.check(None, np.arange(60) % K, y_proba=P[0], caller="test")
        blend.GlobalBlend(prior_items=4.0)._weigh(P, items)
    assert seen == [4.0, 8.0, 8.0]


def test_weight_two_is_the_row_twice_in_the_scale_of_probabilities(data):
    weight = np.random.default_rng(0).integers(1, 4, 90)
    rows = np.repeat(np.arange(90), weight)
    scales = []
    for take, given in ((np.arange(90), weight.astype(float)), (rows, None)):
        items = CalibrationSet.check(
            data.X[take], data.y[take], y_proba=data.y_proba[take], sample_weight=given, caller="t"
        )
        space = AugmentedSpace(None, "log-proba-scaled")
        space.fit_transform(items)
        scales.append([space.center_, space.spread_])
    np.testing.assert_allclose(*scales)


def test_every_part_has_a_say_in_the_ends_of_cross_venn_abers():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 90)
    y = (rng.random(90) < p).astype(int)
    part = Folds.make(90, 3, seed=0).number
    ends = []
    for flipped in (-1, 0, 1, 2):
        labels = np.where(part == flipped, 1 - y, y)
        fitted = hetcal.VennAbersCalibration(n_folds=3).fit(None, labels, y_proba=p)
        ends.append(np.stack(fitted.predict_venn_abers_pair(y_proba=p)))
    assert all(not np.allclose(other, ends[0]) for other in ends[1:])
