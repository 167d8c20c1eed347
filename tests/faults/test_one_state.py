"""A fit or an extend shows in one step, or not at all; tried at chosen moments of a call."""

from __future__ import annotations

import copy
import inspect

import pytest
from tests.calibration.kinds import alike
from tests.faults.estimators import CASES, PARTS, SIMILARITIES, SLOW, extended, same
from tests.faults.moments import LAST, StoppedError, at_moments, count_moments, spread

import hetcal
from hetcal._threads import ThreadSafe
from hetcal.similarity import ForestProximity

PACKAGES = ("hetcal.calibration", "hetcal.similarity", "hetcal.heterogeneity")

pytestmark = pytest.mark.filterwarnings("ignore")
every_estimator = pytest.mark.parametrize("name", list(map(alike, CASES)))


@every_estimator
def test_a_fit_shows_when_it_is_done_and_leaves_nothing_when_it_fails(name, answers):
    case, (old, new) = CASES[name], answers(name)
    shared, trial = case.make(), case.make()
    case.fit(shared, 0)
    case.fit(trial, 0)
    n_moments = count_moments(lambda: case.fit(trial, 1)) - LAST
    chosen = spread(n_moments, 3 if name in SLOW else 8)

    def look(moment):
        if moment in chosen:
            for question, ask in case.asks.items():
                assert same(ask(shared), old[question]), question
        if moment == chosen[-1]:
            raise StoppedError

    with pytest.raises(StoppedError):
        at_moments(lambda: case.fit(shared, 1), look)
    assert all(same(ask(shared), old[question]) for question, ask in case.asks.items())
    case.fit(shared, 1)
    assert all(same(ask(shared), new[question]) for question, ask in case.asks.items())


def answer_with_a_fit_at(moment, case, ask):
    """Return an answer in the middle of which the estimator is fitted to the other set."""
    shared = case.make()
    case.fit(shared, 0)
    return at_moments(
        lambda: ask(shared), lambda now: case.fit(shared, 1) if now == moment else None
    )


@pytest.mark.parametrize("name", [alike(name) for name in CASES if name not in SLOW])
def test_a_fit_in_the_middle_of_a_prediction(name, answers):
    case, (old, new) = CASES[name], answers(name)
    fitted = case.make()
    case.fit(fitted, 0)
    for question, ask in case.asks.items():
        n_moments = count_moments(lambda ask=ask: ask(fitted))
        for moment in spread(n_moments, 4):
            answer = answer_with_a_fit_at(moment, case, ask)
            assert same(answer, old[question]) or same(answer, new[question]), (question, moment)


def test_every_public_method_is_safe():
    def all_of(cls):
        return [cls] + [inner for sub in cls.__subclasses__() for inner in all_of(sub)]

    missing = []
    for cls in all_of(ThreadSafe):
        if not cls.__module__.startswith(PACKAGES):
            continue
        for name, value in inspect.getmembers_static(cls):
            if isinstance(value, property):
                value = value.fget
            value = getattr(value, "fn", value)  # available_if
            own = inspect.isfunction(value) and value.__module__.startswith("hetcal.")
            if own and not name.startswith("_") and not hasattr(value, "__wrapped__"):
                missing.append(f"{cls.__name__}.{name}")
    assert not missing


@pytest.mark.parametrize("at", [0.2, 0.6, 1.0])
@pytest.mark.parametrize("name", ["forest", "out-of-bag", "euclidean", "combined"])
def test_an_extend_that_fails_changes_nothing(name, at):
    X, y, P = PARTS[0]
    swc = hetcal.SimilarityCalibrator(SIMILARITIES[name]).fit(X, y, y_proba=P)
    before = swc.predict_proba(X, y_proba=P), swc.out_of_sample_support()
    trial = hetcal.SimilarityCalibrator(SIMILARITIES[name]).fit(X, y, y_proba=P)
    trial.predict_proba(X, y_proba=P), trial.out_of_sample_support()
    last = int(at * (count_moments(lambda: extended(trial, slice(5))) - LAST - 1))

    def stop(moment):
        if moment == last:
            raise StoppedError

    with pytest.raises(StoppedError):
        at_moments(lambda: extended(swc, slice(5)), stop)
    assert same((swc.predict_proba(X, y_proba=P), swc.out_of_sample_support()), before)
    assert len(swc.calibration_labels()) == len(y)


def test_a_copy_is_extended_alone():
    X, y, P = PARTS[0]
    swc = hetcal.SimilarityCalibrator(ForestProximity(20)).fit(X, y, y_proba=P)
    before = swc.predict_proba(X, y_proba=P)
    extended(copy.copy(swc), slice(5))
    assert same(swc.predict_proba(X, y_proba=P), before)
