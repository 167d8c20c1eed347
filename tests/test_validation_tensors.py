"""Tensors: whatever has `__array__` or `__dlpack__`, wherever an array may stand."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import hetcal
from hetcal._validation.containers import number_of_rows, take_rows, without_tensor
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis.inputs import named
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.similarity import ForestProximity

N = 80


class ByDLPack:
    """A tensor that only knows `__dlpack__`."""

    def __init__(self, values):
        self._values = np.array(values)

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


class ByArray:
    """A tensor that only knows `__array__`."""

    def __init__(self, values):
        self._values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return self._values if dtype is None else self._values.astype(dtype)


class OnAnotherDevice(ByArray):
    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


class LikeTorch(ByDLPack):
    """What torch adds: tensors with gradients, and a type of numbers that NumPy lacks."""

    dtype, read_as = "torch.bfloat16", "torch.bfloat16"

    def __dlpack__(self, **options):
        assert (self.dtype, self.read_as) == ("torch.float32", "cpu"), "not readable as it is"
        return super().__dlpack__(**options)

    def detach(self):
        return self

    def cpu(self):
        self.read_as = "cpu"
        return self

    def float(self):
        self.dtype = "torch.float32"
        return self


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(N, random_state=0)


def predictions(X, y, P, w, L):
    """Return numbers from everything that takes arrays."""
    fit = {"y_proba": P, "sample_weight": w}
    logits = hetcal.TemperatureScaling().fit(None, y, logits=L)
    yield logits.predict_proba(logits=L)
    swc = hetcal.SimilarityCalibrator(ForestProximity(n_estimators=20)).fit(X, y, **fit)
    yield swc.predict_proba(X, y_proba=P)
    hybrid = hetcal.HybridCalibrator(["proximity"], n_estimators=20).fit(X, y, **fit)
    yield hybrid.predict_proba(X, y_proba=P)
    monitor = hetcal.SupportMonitor(swc, reference="split").fit(X, y_proba=P)
    yield monitor.update(X, y_proba=P, y=y)["p"]
    yield monitor.what_changed(X, X, y_proba=P)["distance"]
    yield hetcal.metrics.brier_score(y, P, sample_weight=w)
    yield FeatureColumns.read(X).values  # what a test of heterogeneity sees


@pytest.mark.parametrize("tensor", [ByDLPack, ByArray])
def test_tensors_give_what_arrays_give(data, tensor):
    arrays = (data.X, data.y, data.y_proba, np.linspace(1, 2, N), np.log(data.y_proba))
    tensors = map(tensor, arrays)
    for one, other in zip(predictions(*arrays), predictions(*tensors), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("tensor", [ByDLPack, ByArray])
def test_a_diagnosis_reads_tensors(data, tensor):
    X, y, P = map(tensor, (data.X, data.y, data.y_proba))
    items = CalibrationSet.check(X, y, y_proba=P, caller="diagnose")
    np.testing.assert_array_equal(items.take(np.array([5, 3])).X, data.X[[5, 3]])
    np.testing.assert_array_equal(named(X, list("abcdef"))["b"], data.X[:, 1])


@pytest.mark.parametrize("tensor", [ByDLPack, ByArray])
def test_rows_of_tensors(tensor):
    assert number_of_rows(tensor(np.ones((3, 2)))) == 3
    np.testing.assert_array_equal(take_rows(tensor([[1], [2], [3]]), np.array([2, 0])), [[3], [1]])
    with pytest.raises(ValueError, match="y is a single value"):
        number_of_rows(tensor(1.0))


def test_gradients_and_types_that_numpy_lacks():
    np.testing.assert_array_equal(without_tensor(LikeTorch([1.5, 2.0]), "X"), [1.5, 2.0])


def test_a_tensor_that_cannot_be_read_is_named():
    with pytest.raises(TypeError, match="y_proba is a OnAnotherDevice .*cuda:0.*main memory"):
        hetcal.TemperatureScaling().fit(None, [0, 1], y_proba=OnAnotherDevice([0.2, 0.7]))


@pytest.mark.parametrize(
    "known",
    [[1.0], np.ones(1), np.ma.ones(1), pd.Series([1.0]), pd.DataFrame({"a": [1]}), "text", None],
)
def test_all_else_stays_as_it_is(known):
    assert without_tensor(known, "X") is known
    thin = sparse.coo_array(np.eye(2))
    assert without_tensor(thin, "X") is thin


def test_torch(data):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    P = data.y_proba
    arrays = (data.X.astype(np.float32), data.y, P, np.ones(N), np.log(P))
    tensors = [torch.tensor(part, requires_grad=part.dtype.kind == "f") for part in arrays]
    for one, other in zip(predictions(*arrays), predictions(*tensors), strict=True):
        np.testing.assert_array_equal(one, other)
    X = torch.tensor([[1.5], [2.0]], dtype=torch.bfloat16)
    np.testing.assert_array_equal(without_tensor(X, "X"), [[1.5], [2.0]])
    with pytest.raises(TypeError, match="X is a Tensor that cannot be read"):
        without_tensor(X.float().to_sparse(), "X")
