"""scikit-learn's own tests of ``CalibratedClassifierCV``, run against our wrapper.

Its test functions are taken from the installed scikit-learn and see a thin adaptor under the name
``CalibratedClassifierCV``. New ones run by themselves; what does not concern us is listed below.
"""

from __future__ import annotations

import importlib
import inspect
import types

import pytest
from sklearn.model_selection import StratifiedKFold

from hetcal import LocallyCalibratedClassifier, TemperatureScaling

try:
    theirs = importlib.import_module("sklearn.tests.test_calibration")
except ImportError:
    pytest.skip("this scikit-learn was installed without its tests", allow_module_level=True)

_ARRAY_API = "our calibrators compute with numpy arrays, whatever they are given"
NOT_APPLICABLE = {
    "test_calibration_default_estimator": "our default model is a logistic regression",
    "test_calibration_cv_nfold": "leave-one-out is refused for the sake of an ensemble; our own "
    "test_more_folds_than_members_of_a_class has the rest",
    "test_calibration_ensemble_false": "compares with scikit-learn's maps, which count no "
    "pseudo-items or others",
    "test_temperature_scaling_array_api_compliance": _ARRAY_API,
    "test_temperature_scaling_array_api_with_str_y_estimator_not_prefit": _ARRAY_API,
}
pytestmark = [
    # Fitted models are fitted again on purpose there, and rare classes occur.
    pytest.mark.filterwarnings("ignore::hetcal.HetcalWarning"),
    # Of LinearSVC on purpose-built data; scikit-learn's settings let it pass.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
CALIBRATORS = {
    "sigmoid": "platt",
    "isotonic": "isotonic",
    "temperature": TemperatureScaling(smoothing=False),
}
# One of several ways that make no difference here, or say nothing new.
ONCE = {"ensemble": [False], "seed": [0], "csr_container": theirs.CSR_CONTAINERS[:1]}


class AsCalibratedClassifierCV(LocallyCalibratedClassifier):
    """Our wrapper with scikit-learn's names of parameters and attributes.

    A number of folds makes scikit-learn's unshuffled ones; there is one model instead of an
    ensemble.
    """

    def __init__(self, estimator=None, *, method="sigmoid", cv=None, n_jobs=None, ensemble="auto"):
        super().__init__(estimator, cv=cv, n_jobs=n_jobs)
        self.method = method
        self.ensemble = ensemble

    def fit(self, X, y, sample_weight=None, **fit_params):
        inner = LocallyCalibratedClassifier(
            self.estimator,
            CALIBRATORS.get(self.method, self.method),
            cv=StratifiedKFold(self.cv) if isinstance(self.cv, int) else self.cv,
            n_jobs=self.n_jobs,
        )
        inner.fit(X, y, sample_weight=sample_weight, **fit_params)
        vars(self).update({k: v for k, v in vars(inner).items() if k.endswith("_")})
        if self.method == "temperature":
            self.calibrator_.beta_ = self.calibrator_.inverse_temperature_
        return self

    @property
    def calibrated_classifiers_(self):
        return [
            types.SimpleNamespace(
                estimator=self.estimator_,
                calibrators=[self.calibrator_],
                predict_proba=self.predict_proba,
            )
        ]


@pytest.fixture
def global_random_seed():
    return 42


def against_ours(function):
    """Return the test with the adaptor in place."""
    function = inspect.unwrap(function)
    names = vars(theirs) | {"CalibratedClassifierCV": AsCalibratedClassifierCV}
    copied = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    copied.pytestmark = [
        pytest.mark.parametrize(mark.args[0], ONCE[mark.args[0]]).mark
        if mark.name == "parametrize" and mark.args[0] in ONCE
        else mark
        for mark in getattr(function, "pytestmark", [])
        if mark.name != "thread_unsafe"
    ]
    return copied


def _collected():
    for name, function in vars(theirs).items():
        if not name.startswith("test_") or name in NOT_APPLICABLE:
            continue
        source = inspect.getsource(function)
        # cv="prefit" is of versions before 1.8; FrozenEstimator took its place.
        if "CalibratedClassifierCV(" in source and '"prefit"' not in source:
            yield name, against_ours(function)


def test_what_is_listed_as_not_applicable_exists():
    array_api = {name for name in NOT_APPLICABLE if "array_api" in name}  # since 1.8
    assert set(NOT_APPLICABLE) - array_api <= set(vars(theirs))


globals().update(_collected())
data, dict_data, dict_data_pipeline = theirs.data, theirs.dict_data, theirs.dict_data_pipeline
