"""estimate="paper" against Algorithm 1 written plainly, and against the published moons values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors

from hetcal.datasets import make_hidden_heterogeneity, paper_classifier, paper_split
from hetcal.heterogeneity import HiddenHeterogeneity


def plain_algorithm(X, y, P, P_test, radius, n_estimators):
    """One value per distinct prediction (cut to three decimals), seven forests each."""
    known = {}
    values = []
    search = NearestNeighbors(radius=radius * np.sqrt(2)).fit(np.sqrt(P))
    for p in P_test:
        key = tuple((p * 1000).astype(int))
        if key not in known:
            # Bootstraps draw positions, so the order in which neighbours are returned matters.
            near = search.radius_neighbors([np.sqrt(p)], return_distance=False)[0]
            known[key] = neighbourhood_value(X[near], y[near], P[near], n_estimators)
        values.append(known[key])
    return np.array(values)


def neighbourhood_value(X, y, P, n_estimators):
    if len(X) == 0 or len(np.unique(y)) == 1:
        return 0.0
    best, best_score = None, 0.0
    for alpha in np.linspace(0, 0.03, 7):
        forest = RandomForestClassifier(
            n_estimators, max_features=None, ccp_alpha=alpha, oob_score=True, random_state=0
        ).fit(X, y)
        if forest.oob_score_ > best_score:
            best, best_score = forest, forest.oob_score_
    if best is None:
        return 0.0
    one_hot = np.eye(P.shape[1])[y]
    local = np.zeros_like(P)
    local[:, best.classes_] = best.predict_proba(X)
    return max(0.0, ((P - one_hot) ** 2).sum(1).mean() - ((local - one_hot) ** 2).sum(1).mean())


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("K", [2, 3])
def test_it_is_algorithm_1(K):
    data = make_hidden_heterogeneity(200, n_classes=K, random_state=0)
    test = data.sample(4, random_state=1)
    X = data.X.astype(np.float32)
    hidden = HiddenHeterogeneity(estimate="paper", n_estimators=10, radius=0.15)
    hidden.fit(X, data.y, y_proba=data.y_proba)
    expected = plain_algorithm(X, data.y, data.y_proba, test.y_proba, 0.15, 10)
    np.testing.assert_allclose(hidden.score_samples(test.y_proba), expected, atol=1e-9)
    table = hidden.frame(test.y_proba)
    np.testing.assert_allclose(table["hh"], table["hh_raw"].clip(lower=0).fillna(0))
    assert table["p_value"].isna().all()


@pytest.mark.parametrize(("name", "published"), [("SVM", 0.1305), ("DT", 0.0921), ("RF", 0.0959)])
def test_published_moons_values(name, published):
    split = paper_split("moons", seed=0, n_cal=1000)
    model = paper_classifier(name).fit(split.X_train, split.y_train)
    hidden = HiddenHeterogeneity(estimate="paper")
    hidden.fit(split.X_cal, split.y_cal, y_proba=model.predict_proba(split.X_cal))
    hh = hidden.score_samples(model.predict_proba(split.X_test))
    assert hh.mean() == pytest.approx(published, abs=5e-5)


def test_shared_neighbourhoods_stay_close_and_lose_the_order():
    split = paper_split("moons", seed=0, n_cal=1000)
    model = paper_classifier("SVM").fit(split.X_train, split.y_train)
    P = model.predict_proba(split.X_cal)
    P_test = model.predict_proba(split.X_test)
    shared = HiddenHeterogeneity(estimate="paper", neighborhoods="net")
    shared.fit(split.X_cal, split.y_cal, y_proba=P)
    hh = shared.score_samples(P_test)
    assert hh.mean() == pytest.approx(0.1305, abs=0.005)
    np.testing.assert_array_equal(shared.score_samples(P_test[::-1]), hh[::-1])


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(2, 4))
def test_values_lie_between_0_and_2(seed, K):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), 40)
    y = np.concatenate([[0, 1], rng.integers(0, K, 38)])
    hidden = HiddenHeterogeneity(
        estimate="paper", n_estimators=5, radius=0.3, classes=np.arange(K)
    ).fit(rng.normal(size=(40, 2)), y, y_proba=P)
    hh = hidden.score_samples(rng.dirichlet(np.ones(K), 10))
    assert ((hh >= 0) & (hh <= 2)).all()
