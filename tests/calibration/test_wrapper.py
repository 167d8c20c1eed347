"""LocallyCalibratedClassifier: frozen and cross-fitted models, inside scikit-learn's machinery."""

from __future__ import annotations

import pickle
import warnings
from operator import methodcaller

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from hetcal._exceptions import (
    ColumnOrderWarning,
    HetcalWarning,
    RefitWarning,
    TrainingSetWarning,
)
from hetcal._validation import find_column_order
from hetcal.calibration.base import BaseCalibrator
from hetcal.calibration.hybrid import HybridCalibrator
from hetcal.calibration.precomputed import PrecomputedProba
from hetcal.calibration.registry import get_calibrator
from hetcal.calibration.wrapper import LocallyCalibratedClassifier


class _Numbers(TransformerMixin, BaseEstimator):
    """Selects the columns that the model knows, as pipelines of deployed models do."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X[["x0", "x1"]])

    def __sklearn_is_fitted__(self):
        return True


class Recorder(BaseCalibrator):
    """A calibrator that changes nothing and remembers what it was given."""

    def __init__(self, shrink=0.0, classes=None, random_state=None):
        self.shrink = shrink
        self.classes = classes
        self.random_state = random_state

    def fit(self, X, y, *, y_proba=None, logits=None, sample_weight=None, groups=None):
        items = self._checked(X, y, y_proba=y_proba, logits=logits)
        self._remember(items)
        self.scores_, self.codes_ = items.scores, items.codes
        self.X_, self.weight_, self.groups_ = X, sample_weight, groups
        return self

    def predict_proba(self, X, *, y_proba=None, logits=None, return_support=False):
        self.new_X_ = X
        P = self._new_scores(X, y_proba, logits).proba
        Q = (1 - self.shrink) * P + self.shrink / P.shape[1]
        return (Q, np.full(P.shape[0], 7.0)) if return_support else Q


@pytest.fixture
def data():
    return make_classification(
        240, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0
    )


def test_frozen_model_calibrates_on_every_row(data):
    X, y = data
    model = GaussianNB().fit(X[:100], y[:100])
    clf = LocallyCalibratedClassifier(FrozenEstimator(model), Recorder()).fit(X[100:], y[100:])
    np.testing.assert_allclose(clf.calibrator_.scores_.proba, model.predict_proba(X[100:]))
    np.testing.assert_allclose(clf.predict_proba(X[:100]), model.predict_proba(X[:100]))
    assert clf.calibrator_.X_.shape == (140, 6)


def test_cross_fitted_like_cross_val_predict(data):
    X, y = data
    cv = StratifiedKFold(4, shuffle=True, random_state=3)
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), cv=cv).fit(X, y)
    expected = cross_val_predict(GaussianNB(), X, y, cv=cv, method="predict_proba")
    np.testing.assert_allclose(clf.calibrator_.scores_.proba, expected)
    np.testing.assert_allclose(clf.out_of_fold_output_, expected)
    # The model that predicts has seen every row.
    np.testing.assert_allclose(clf.predict_proba(X), GaussianNB().fit(X, y).predict_proba(X))


def test_default_folds_are_stratified_and_seeded(data):
    X, y = data
    one, two = (
        LocallyCalibratedClassifier(GaussianNB(), Recorder(), random_state=5).fit(X, y)
        for _ in range(2)
    )
    cv = StratifiedKFold(5, shuffle=True, random_state=5)
    expected = cross_val_predict(GaussianNB(), X, y, cv=cv, method="predict_proba")
    np.testing.assert_allclose(one.out_of_fold_output_, expected)
    np.testing.assert_array_equal(one.out_of_fold_output_, two.out_of_fold_output_)
    assert one.calibrator_.random_state == 5


def test_the_calibrators_own_seed_is_kept(data):
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(random_state=9), random_state=5)
    assert clf.fit(*data).calibrator_.random_state == 9


@pytest.mark.parametrize("estimator", [RandomForestClassifier(5, random_state=0), GaussianNB()])
def test_the_same_result_for_any_n_jobs(data, estimator):
    X, y = data
    clf = LocallyCalibratedClassifier(estimator, get_calibrator("temperature"), random_state=0)
    with joblib.parallel_config(backend="threading"):
        one, two = (clone(clf).set_params(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_groups_stay_together():
    """A model that knows patients by heart looks perfect, unless patients are kept together."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 4)
    X, y = rng.normal(size=(60, 3))[patient], rng.integers(2, size=60)[patient]
    clf = LocallyCalibratedClassifier(KNeighborsClassifier(1), Recorder(), random_state=0)
    grouped = clone(clf).fit(X, y, groups=[f"patient {i}" for i in patient])
    leaking = clf.fit(X, y)
    rows = np.arange(240)
    assert leaking.out_of_fold_output_[rows, y].mean() > 0.95
    assert grouped.out_of_fold_output_[rows, y].mean() < 0.7
    assert len(np.unique(grouped.calibrator_.groups_)) == 60


def test_a_splitter_that_breaks_groups_is_refused(data):
    X, y = data
    groups = np.arange(len(y)) // 2
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), cv=KFold(3, shuffle=True))
    with pytest.raises(ValueError, match="both sides of a split.*StratifiedGroupKFold"):
        clf.fit(X, y, groups=groups)
    clf.set_params(cv=GroupKFold(3)).fit(X, y, groups=groups)


def test_rows_that_are_never_tested_do_not_calibrate(data):
    X, y = data
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), cv=TimeSeriesSplit(3)).fit(X, y)
    assert clf.calibration_rows_.tolist() == list(range(60, 240))
    np.testing.assert_array_equal(clf.calibrator_.X_, X[60:])


def test_rows_that_are_tested_twice_are_refused(data):
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), cv=RepeatedStratifiedKFold())
    with pytest.raises(ValueError, match="more than one split.*StratifiedKFold"):
        clf.fit(*data)


@pytest.mark.parametrize("cv", [1, 1000])
def test_impossible_number_of_folds(data, cv):
    with pytest.raises(ValueError, match=f"cv={cv} folds cannot.*Pass 2 <= cv <= 240"):
        LocallyCalibratedClassifier(GaussianNB(), Recorder(), cv=cv).fit(*data)


@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC()])
def test_a_class_missing_from_a_fold_keeps_its_column(data, estimator):
    X, y = data
    y = y.copy()
    y[y == 2] = 0
    y[7] = 2
    clf = LocallyCalibratedClassifier(estimator, get_calibrator("temperature"), random_state=0)
    with pytest.warns(HetcalWarning, match=r"1 row\(s\) belong to a class.*rare classes"):
        clf.fit(X, y)
    assert clf.out_of_fold_output_.shape == (240, 3)
    P = clf.out_of_fold_output_
    P = P if clf.output_kind_ == "y_proba" else softmax(P, axis=1)
    assert P[7, 2] < 1e-9
    Q = clf.predict_proba(X)
    assert Q.shape == (240, 3)
    np.testing.assert_allclose(Q.sum(axis=1), 1)


def test_a_training_fold_with_one_class(data):
    X, y = data
    y = (np.arange(240) < 239).astype(int)
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder())
    with pytest.raises(ValueError, match="one class only.*FrozenEstimator"):
        clf.fit(X, y)


def test_rare_classes_need_no_remark(data):
    X, y = data
    y = y.copy()
    y[y == 2] = 0
    y[[7, 9, 30]] = 2
    LocallyCalibratedClassifier(GaussianNB(), Recorder(), random_state=0).fit(X, y)


def test_a_class_of_the_frozen_model_that_was_not_observed(data):
    X, y = data
    names = np.array(["ant", "bee", "cat"])[y]
    model = GaussianNB().fit(X, names)
    seen = names != "bee"
    clf = LocallyCalibratedClassifier(FrozenEstimator(model), get_calibrator("temperature"))
    clf.fit(X[seen], names[seen])
    assert clf.classes_.tolist() == ["ant", "bee", "cat"]
    assert clf.predict_proba(X).shape == (240, 3)
    assert clf.score(X, names) > 0.7


def test_a_label_that_the_frozen_model_does_not_know(data):
    X, y = data
    model = GaussianNB().fit(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match=r"not in classes: \[2\].*knows.*as it was trained with"):
        LocallyCalibratedClassifier(FrozenEstimator(model), Recorder()).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [LinearSVC(), RidgeClassifier()])
def test_decision_values_are_logits(data, n_classes, estimator):
    X, y = (array[data[1] < n_classes] for array in data)
    model = estimator.fit(X, y)
    clf = LocallyCalibratedClassifier(FrozenEstimator(model), Recorder()).fit(X, y)
    values = model.decision_function(X)
    if n_classes == 2:
        values = np.column_stack([np.zeros(len(values)), values])
    np.testing.assert_allclose(clf.predict_proba(X), softmax(values, axis=1))


def test_pairwise_decision_values_are_refused():
    X, y = make_classification(80, 6, n_informative=4, n_classes=4, random_state=0)
    model = SVC(decision_function_shape="ovo").fit(X, y)
    with pytest.raises(ValueError, match="6 columns but 4 classes"):
        LocallyCalibratedClassifier(FrozenEstimator(model), Recorder()).fit(X, y)


def test_neither_probabilities_nor_decision_values(data):
    class Mute(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return self.classes_[np.zeros(len(X), dtype=int)]

    with pytest.raises(TypeError, match="neither predict_proba nor decision_function"):
        LocallyCalibratedClassifier(Mute(), Recorder()).fit(*data)


def test_weights_reach_both(data):
    X, y = data
    weight = np.linspace(0.1, 2, 240)
    cv = StratifiedKFold(4)
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), cv=cv)
    clf.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(clf.calibrator_.weight_, weight)
    direct = GaussianNB().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(clf.predict_proba(X), direct.predict_proba(X))
    train, test = next(cv.split(X, y))
    fold = GaussianNB().fit(X[train], y[train], sample_weight=weight[train])
    np.testing.assert_allclose(clf.out_of_fold_output_[test], fold.predict_proba(X[test]))


def test_weights_reach_the_last_step_of_a_pipeline(data):
    X, y = data
    weight = np.linspace(0.1, 2, 240)
    pipe = make_pipeline(StandardScaler(), GaussianNB())
    clf = LocallyCalibratedClassifier(pipe, Recorder()).fit(X, y, sample_weight=weight)
    direct = clone(pipe).fit(X, y, gaussiannb__sample_weight=weight)
    np.testing.assert_allclose(clf.predict_proba(X), direct.predict_proba(X))


def test_a_model_without_weights_is_told(data):
    X, y = data
    clf = LocallyCalibratedClassifier(KNeighborsClassifier(), Recorder())
    with pytest.warns(HetcalWarning, match="KNeighborsClassifier does not take sample_weight"):
        clf.fit(X, y, sample_weight=np.ones(240))


def test_global_calibrators_never_see_the_features(data):
    X, y = data
    table = pd.DataFrame(X).assign(note=[f"free text {i}" for i in range(240)])
    table.columns = [str(name) for name in table.columns]
    numbers = [str(j) for j in range(6)]

    class OnNumbers(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X[numbers], y, sample_weight)

        def predict_proba(self, X):
            return super().predict_proba(X[numbers])

    clf = LocallyCalibratedClassifier(OnNumbers(), "temperature").fit(table, y)
    assert clf.predict_proba(table).shape == (240, 3)


def test_text_documents():
    from sklearn.feature_extraction.text import CountVectorizer

    documents = ["good film", "bad film", "good book", "bad book"] * 10
    labels = ["up", "down"] * 20
    pipe = make_pipeline(CountVectorizer(), LogisticRegression())
    clf = LocallyCalibratedClassifier(pipe, "temperature").fit(documents, labels)
    assert clf.predict(["good good", "bad bad"]).tolist() == ["up", "down"]


@pytest.mark.parametrize("texts", [list, np.array, pd.Series])
def test_texts_are_compared_by_features_as_the_error_says(texts):
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    documents = texts(["good film", "bad film", "good book", "bad book"] * 10)
    labels = ["up", "down"] * 20
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(documents, labels)
    clf = LocallyCalibratedClassifier(FrozenEstimator(pipe), "swc")
    remedy = r"40 texts such as 'good film'. Pass features=FrozenEstimator\(make_pipeline\("
    with pytest.raises(ValueError, match=remedy):
        clf.fit(documents, labels)
    features = FrozenEstimator(make_pipeline(TfidfVectorizer(), TruncatedSVD(2)).fit(documents))
    clf.set_params(features=features).fit(documents, labels)
    assert clf.predict_proba(documents).shape == (40, 2)


def test_a_pipeline_that_makes_sparse_columns_is_followed_as_the_error_says(data):
    y = data[1]
    table = pd.DataFrame({"region": np.where(data[0][:, 0] > 0, "north", "south")})
    pipe = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(table, y)
    encode = FrozenEstimator(pipe[:-1])
    with pytest.raises(TypeError, match=r"FunctionTransformer\(methodcaller\('toarray'\)\)"):
        LocallyCalibratedClassifier(FrozenEstimator(pipe), "swc", features=encode).fit(table, y)
    features = make_pipeline(encode, FunctionTransformer(methodcaller("toarray")))
    clf = LocallyCalibratedClassifier(FrozenEstimator(pipe), "swc", features=features)
    assert clf.fit(table, y).calibrator_.n_features_in_ == 2


@pytest.mark.parametrize("wrapped", [lambda model: model, FrozenEstimator])
def test_a_model_that_is_no_estimator_is_sent_to_the_calibrator(data, wrapped):
    class Booster:
        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    clf = LocallyCalibratedClassifier(wrapped(Booster()), "platt")
    with pytest.raises(TypeError, match=r"Booster is no scikit-learn.*get_calibrator\('platt'\)"):
        clf.fit(*data)


def test_features_choose_the_representation(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), PCA(2), GaussianNB()).fit(X[:100], y[:100])
    features = FrozenEstimator(pipe[:-1])
    clf = LocallyCalibratedClassifier(FrozenEstimator(pipe), Recorder(), features=features)
    clf.fit(X[100:], y[100:])
    np.testing.assert_allclose(clf.calibrator_.X_, pipe[:-1].transform(X[100:]))
    clf.predict_proba(X[:5])
    np.testing.assert_allclose(clf.calibrator_.new_X_, pipe[:-1].transform(X[:5]))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("columns", [["x1", "x0"], [2, 1], ("x1", np.int64(1)), "x1"])
def test_features_name_the_columns_to_compare_by(data, library, columns):
    X, y = data
    ids = [f"customer {i}" for i in range(len(y))]
    table = library({"id": ids} | {f"x{j}": X[:, j] for j in range(2)})
    pipe = make_pipeline(_Numbers(), GaussianNB()).fit(table, y)
    clf = LocallyCalibratedClassifier(FrozenEstimator(pipe), Recorder(), features=columns)
    assert "Recorder" in clf._repr_html_()
    clf.fit(table, y)
    chosen = ["x1"] if columns == "x1" else ["x1", "x0"]
    assert isinstance(clf.calibrator_.X_, library)
    assert list(clf.calibrator_.X_.columns) == chosen
    assert clf.predict_proba(table[:3]).shape == (3, len(np.unique(y)))


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
def test_features_number_the_columns_of_an_array(data, as_given):
    X, y = data
    frozen = FrozenEstimator(LogisticRegression(max_iter=1000).fit(as_given(X), y))
    clf = LocallyCalibratedClassifier(frozen, "sbaw", features=[1, 0]).fit(as_given(X), y)
    assert clf.calibrator_.n_features_in_ == 2
    alone = get_calibrator("sbaw", features=[1, 0]).fit(
        as_given(X), y, y_proba=frozen.predict_proba(as_given(X))
    )
    np.testing.assert_allclose(
        alone.predict_proba(as_given(X), y_proba=frozen.predict_proba(as_given(X))),
        clf.predict_proba(as_given(X)),
        atol=1e-9,
    )


@pytest.mark.parametrize(
    ("columns", "names", "chosen"),
    [
        ([0, 1], range(6), [0, 1]),
        (range(1, 3), range(6), [1, 2]),
        ([5, 0], [5, 4, 3, 2, 1, 0], [0, 5]),
        ([4, 9], [9, 8, 7, 6, 5, 10], [4, 0]),
        (pd.Index(["c", "a"]), list("abcdef"), [2, 0]),
        (pd.Series(["c", "a"], index=[7, 3]), list("abcdef"), [2, 0]),
    ],
    ids=["default", "range", "names-first", "names-and-places", "index", "series"],
)
def test_features_of_tables_with_names_of_any_kind(data, columns, names, chosen):
    X, y = data
    table = pd.DataFrame(X).set_axis(list(names), axis=1)
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), features=columns).fit(table, y)
    np.testing.assert_array_equal(clf.calibrator_.X_, X[:, chosen])


@pytest.mark.parametrize(
    ("features", "error", "said"),
    [
        (["x00"], ValueError, r"does not have: \['x00'\]\. Did you mean 'x0'\? X has"),
        ([7], ValueError, r"does not have: \[7\]"),
        (["x1", "x1"], ValueError, r"more than once: \['x1', 'x1'\]\. Name each once"),
        ([1, 0, 1], ValueError, r"more than once: \[1, 1\]"),
        (["x1", 0, 1], ValueError, r"more than once: \['x1', 1\]"),
        ([], TypeError, r"names, such as \['age', 'income'\], or numbers of columns"),
        ([True, False, True], TypeError, "numbers of columns"),
        (max, TypeError, "a transformer with fit and transform, or None; got <built-in"),
    ],
    ids=["name", "number", "twice", "number-twice", "name-and-number", "none", "mask", "function"],
)
def test_features_that_are_neither_columns_nor_a_transformer(data, features, error, said):
    X, y = data
    table = pd.DataFrame({f"x{j}": X[:, j] for j in range(3)})
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), features=features)
    with pytest.raises(error, match=said):
        clf.fit(table, y)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ({"method": "sigmoid"}, r"'method'\. Name the method as calibrator.*'platt'"),
        ({"ensemble": False}, "as with ensemble=False. Leave it out"),
        ({"calibratr": "swc"}, "unexpected keyword argument 'calibratr'"),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else "",
)
def test_arguments_of_calibrated_classifier_cv_have_a_hint(argument, said):
    with pytest.raises(TypeError, match=said):
        LocallyCalibratedClassifier(GaussianNB(), **argument)


def test_unfitted_features_are_fitted_on_the_calibration_rows(data):
    X, y = data
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), features=StandardScaler())
    clf.fit(X, y)
    np.testing.assert_allclose(clf.calibrator_.X_, StandardScaler().fit_transform(X))


def test_freezing_the_wrong_way_round_is_not_frozen(data):
    """The docstring's warning: FrozenEstimator(pipe)[:-1] is a plain pipeline."""
    X, y = data
    pipe = make_pipeline(StandardScaler(), GaussianNB()).fit(X, y)
    assert not isinstance(FrozenEstimator(pipe)[:-1], FrozenEstimator)


def test_precomputed_probabilities_use_the_other_columns(data):
    X, y = data
    P = GaussianNB().fit(X[:100], y[:100]).predict_proba(X)
    table = pd.DataFrame(X, columns=list("abcdef")).assign(p_2=P[:, 2], p_0=P[:, 0], p_1=P[:, 1])
    clf = LocallyCalibratedClassifier(PrecomputedProba("p_*"), Recorder()).fit(table, y)
    assert list(clf.calibrator_.X_.columns) == list("abcdef")
    np.testing.assert_allclose(clf.predict_proba(table), P)
    assert list(clf.calibrator_.new_X_.columns) == list("abcdef")
    scaled = clone(clf).set_params(features=StandardScaler()).fit(table, y)
    assert scaled.calibrator_.X_.shape == (240, 6)


@pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")  # any columns will do
def test_precomputed_logits_reach_the_calibrator_as_logits(data):
    X, y = data
    clf = LocallyCalibratedClassifier(PrecomputedProba([0, 1, 2], kind="logits"), Recorder())
    clf.fit(X, y)
    assert clf.calibrator_.input_kind_ == "logits"
    np.testing.assert_allclose(clf.predict_proba(X), softmax(X[:, :3], axis=1))
    np.testing.assert_array_equal(clf.calibrator_.X_, X[:, 3:])


@pytest.mark.parametrize("labels", [["no", "yes"], [7, 3], [True, False], [1.0, -1.0]])
def test_labels_of_any_kind(data, labels):
    X, y = (array[data[1] < 2] for array in data)
    named = np.array(labels)[y]
    clf = LocallyCalibratedClassifier(GaussianNB(), "temperature", random_state=0).fit(X, named)
    assert clf.classes_.tolist() == sorted(labels)
    assert set(clf.predict(X).tolist()) <= set(labels)
    assert clf.score(X, named) > 0.7


@pytest.mark.parametrize(
    "table", [pd.DataFrame, lambda X: pl.DataFrame(X, schema=list("abcdef"), orient="row")]
)
def test_tables_give_what_arrays_give(data, table):
    X, y = data
    expected = LocallyCalibratedClassifier(GaussianNB(), Recorder(), random_state=0).fit(X, y)
    frame = table(X) if table is not pd.DataFrame else pd.DataFrame(X, columns=list("abcdef"))
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), random_state=0).fit(frame, y)
    np.testing.assert_array_equal(clf.out_of_fold_output_, expected.out_of_fold_output_)
    np.testing.assert_array_equal(clf.predict_proba(frame), expected.predict_proba(X))
    assert clf.feature_names_in_.tolist() == list("abcdef")
    assert clf.n_features_in_ == 6
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict_proba(frame[list("bacdef")])


def test_polars_labels_weights_and_groups(data):
    X, y = data
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder(), random_state=0)
    frame = pl.DataFrame(X, schema=list("abcdef"), orient="row")
    clf.fit(frame, pl.Series(y), pl.Series(np.ones(240)), pl.Series(np.arange(240) // 2))
    assert clf.predict_proba(frame).shape == (240, 3)


def test_sparse_features(data):
    X, y = data
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense, thin = (
        LocallyCalibratedClassifier(LogisticRegression(), "temperature", random_state=0).fit(A, y)
        for A in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(
        dense.predict_proba(X), thin.predict_proba(sparse.csc_array(X)), rtol=1e-3, atol=1e-5
    )


def test_support_comes_from_the_calibrator(data):
    clf = LocallyCalibratedClassifier(GaussianNB(), Recorder()).fit(*data)
    Q, support = clf.predict_proba(data[0], return_support=True)
    assert Q.shape == (240, 3)
    assert support.tolist() == [7.0] * 240
    clf = LocallyCalibratedClassifier(GaussianNB(), "temperature").fit(*data)
    with pytest.raises(ValueError, match="no support. Use a similarity calibrator"):
        clf.predict_proba(data[0], return_support=True)
    assert not hasattr(clf, "evidence")


def test_inside_pipeline_and_grid_search(data):
    X, y = data
    names = np.array(["x", "y", "z"])[y]
    pipe = make_pipeline(
        StandardScaler(), LocallyCalibratedClassifier(GaussianNB(), Recorder(), random_state=0)
    )
    grid = GridSearchCV(
        pipe,
        {
            "locallycalibratedclassifier__calibrator__shrink": [0.0, 0.9],
            "locallycalibratedclassifier__estimator__var_smoothing": [1e-9, 1e-3],
        },
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, names)
    assert grid.best_params_["locallycalibratedclassifier__calibrator__shrink"] == 0.0
    assert grid.predict_proba(X).shape == (240, 3)


def test_cross_val_score(data):
    clf = LocallyCalibratedClassifier(GaussianNB(), "temperature", random_state=0)
    scores = cross_val_score(clf, *data, scoring="neg_log_loss", cv=3)
    plain = cross_val_score(GaussianNB(), *data, scoring="neg_log_loss", cv=3)
    assert np.isfinite(scores).all()
    assert scores.mean() > plain.mean() - 0.05


def test_parameters_are_left_alone(data):
    model, calibrator = GaussianNB(), Recorder()
    LocallyCalibratedClassifier(model, calibrator).fit(*data)
    assert not hasattr(model, "classes_")
    assert not hasattr(calibrator, "classes_")
    assert calibrator.classes is None


@pytest.mark.parametrize("store", [pickle, joblib])
def test_stored_and_read_back(data, store, tmp_path):
    X, y = data
    clf = LocallyCalibratedClassifier(GaussianNB(), "temperature", random_state=0).fit(X, y)
    path = tmp_path / "clf"
    if store is joblib:
        joblib.dump(clf, path)
        back = joblib.load(path)
    else:
        back = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(back.predict_proba(X), clf.predict_proba(X))


def test_mixed_columns(data):
    X, y = data
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down")})
    pipe = make_pipeline(OrdinalEncoder(), RandomForestClassifier(5, random_state=0))
    model = pipe.fit(table, y)
    clf = LocallyCalibratedClassifier(FrozenEstimator(model), Recorder()).fit(table, y)
    assert list(clf.calibrator_.X_.columns) == ["a", "b"]


def test_unknown_calibrator(data):
    with pytest.raises((ValueError, KeyError), match="magic"):
        LocallyCalibratedClassifier(GaussianNB(), "magic").fit(*data)


@pytest.mark.filterwarnings("ignore:The calibration set has become a training set")
def test_the_default_is_the_hybrid():
    X, y = make_classification(300, random_state=0)
    model = GaussianNB().fit(X[:100], y[:100])
    clf = LocallyCalibratedClassifier(FrozenEstimator(model)).fit(X[100:], y[100:])
    assert isinstance(clf.calibrator_, HybridCalibrator)
    Q, support = clf.predict_proba(X, return_support=True)
    assert Q.shape == (300, 2)
    assert (support > 0).all()


def test_a_cross_fitted_model_is_not_told_to_learn_from_its_own_rows():
    """The hybrid warns where features alone would do; only a frozen model could be retrained."""
    X, y = make_classification(300, 4, random_state=0)
    hybrid = HybridCalibrator("forests", n_estimators=20)
    useless = RidgeClassifier(alpha=1e9)
    frozen = FrozenEstimator(clone(useless).fit(X, np.random.default_rng(0).permutation(y)))
    with pytest.warns(TrainingSetWarning, match="has become a training set"):
        LocallyCalibratedClassifier(frozen, hybrid).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HetcalWarning)
        LocallyCalibratedClassifier(KNeighborsClassifier(1), hybrid).fit(X[:, :1], y)
        LocallyCalibratedClassifier(useless, hybrid).fit(X, y)


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_two_fits_are_the_same_by_default(data, estimator):
    X, y = data
    one, two = (
        LocallyCalibratedClassifier(estimator, "isotonic", n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.out_of_fold_output_, two.out_of_fold_output_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    sparse_fit = LocallyCalibratedClassifier(LogisticRegression(), "isotonic")
    dense, thin = (clone(sparse_fit).fit(Z, y).predict_proba(Z) for Z in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(dense, thin, atol=1e-3)


def test_a_model_that_is_trained_here_has_its_columns_in_order():
    X, y = np.zeros((60, 1)), np.arange(60) % 2
    # Without its own label each item gets a little less of its class than of the other one.
    clf = LocallyCalibratedClassifier(DummyClassifier(), Recorder(), cv=LeaveOneOut()).fit(X, y)
    assert find_column_order(y, clf.out_of_fold_output_) is not None
    # A frozen one may have been trained on labels that were numbered otherwise.
    model = GaussianNB().fit(y[:, None], 1 - y)
    with pytest.warns(ColumnOrderWarning, match="the wrong way round"):
        LocallyCalibratedClassifier(FrozenEstimator(model), Recorder()).fit(y[:, None], y)


# -- a fitted model that is not frozen -------------------------------------------------------------


def makers():
    """Return models that are fitted, or not, by name."""
    return {
        "plain": GaussianNB(),
        "pipeline": make_pipeline(StandardScaler(), GaussianNB()),
        "search": GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, cv=2),
        "meta": CalibratedClassifierCV(GaussianNB(), cv=2),
    }


@pytest.mark.parametrize("name", makers())
def test_a_fitted_model_that_is_not_frozen_is_refitted_with_a_warning(data, name):
    X, y = data
    model = makers()[name].fit(X[:60], y[:60])
    with pytest.warns(RefitWarning, match=r"freeze it: FrozenEstimator\(model\)") as caught:
        LocallyCalibratedClassifier(model, Recorder(), cv=2).fit(X, y)
    assert caught[0].filename == __file__
    # Neither unfitted, nor cloned, nor frozen: warnings are errors here.
    for other in (makers()[name], clone(model), FrozenEstimator(model)):
        LocallyCalibratedClassifier(other, Recorder(), cv=2).fit(X, y)


def test_a_pipeline_with_a_fitted_first_step_is_refitted_with_a_warning(data):
    X, y = data
    scaler = StandardScaler().fit(10 * X)
    half = make_pipeline(scaler, "passthrough", GaussianNB())
    with pytest.warns(
        RefitWarning, match=r"'standardscaler' of its steps is.*FrozenEstimator\(step"
    ):
        LocallyCalibratedClassifier(half, Recorder(), cv=2).fit(X, y)
    kept = make_pipeline(FrozenEstimator(scaler), GaussianNB())
    for other in (clone(half), kept):
        LocallyCalibratedClassifier(other, Recorder(), cv=2).fit(X, y)


class AlwaysFitted(GaussianNB):
    """Learns in fit, but says that nothing has to be learned."""

    def __sklearn_is_fitted__(self):
        return True


class NeverSays(ClassifierMixin, BaseEstimator):
    """Keeps nothing in attributes that end in an underscore."""

    def fit(self, X, y):
        self._classes = np.unique(y)
        return self

    @property
    def classes_(self):
        return self._classes

    def predict_proba(self, X):
        return np.full((len(X), len(self._classes)), 1 / len(self._classes))


def test_models_that_look_the_same_fitted_and_not_are_no_reason_to_warn(data):
    X, y = data
    frozen_inside = make_pipeline(StandardScaler(), FrozenEstimator(GaussianNB().fit(X, y)))
    for model in (AlwaysFitted().fit(X, y), NeverSays().fit(X, y), frozen_inside):
        LocallyCalibratedClassifier(model, Recorder(), cv=2).fit(X, y)


def test_a_grid_search_over_the_wrapper_does_not_warn(data):
    clf = LocallyCalibratedClassifier(GaussianNB(), "temperature", cv=2)
    GridSearchCV(clf, {"preserve": [None, "label"]}, cv=2).fit(*data).best_estimator_.fit(*data)


def test_fitted_features_that_are_not_frozen_are_refitted_with_a_warning(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), GaussianNB()).fit(X, y)
    frozen = FrozenEstimator(pipe)
    with pytest.warns(RefitWarning, match=r"FrozenEstimator\(features\)"):
        LocallyCalibratedClassifier(frozen, Recorder(), features=pipe[:-1]).fit(X, y)
    LocallyCalibratedClassifier(frozen, Recorder(), features=FrozenEstimator(pipe[:-1])).fit(X, y)


class Careless(LogisticRegression):
    """A classifier that answers for the first items only, or knows a class too many."""

    def __init__(self, fault="rows"):
        super().__init__()
        self.fault = fault

    def fit(self, X, y):
        super().fit(X, y)
        if self.fault == "classes":
            self.classes_ = np.append(self.classes_, self.classes_.max() + 1)
        return self

    def predict_proba(self, X):
        P = np.full((len(X), len(self.classes_)), 1 / len(self.classes_))
        return P[:5] if self.fault == "rows" else P


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("rows", "Careless's output has 5 rows for .* items"),
        ("classes", r"classes that y does not hold: \[2\].*freeze it"),
    ],
)
def test_a_classifier_that_answers_something_else_is_told(fault, words):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match=words):
        LocallyCalibratedClassifier(Careless(fault), "platt", cv=3).fit(X, np.arange(60) % 2)
