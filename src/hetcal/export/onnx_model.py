"""A global map as an ONNX model."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import numpy as np

from hetcal._typing import Matrix
from hetcal._validation.options import check_choice
from hetcal._validation.proba import LARGEST_LOGIT, ROUNDING_NOISE, SUM_TOLERANCE
from hetcal._version import __version__
from hetcal.calibration.base import GlobalCalibrator
from hetcal.export.formulas import formula
from hetcal.export.onnx_graph import Graph, Tensor
from hetcal.export.source import exported_map
from hetcal.export.values import Output

# Old enough for the runtimes of the last years, new enough for reductions over given axes.
_OPSET, _IR_VERSION = 18, 9
_LARGEST = float(np.finfo(np.float64).max)


def to_onnx(calibrator: Any, *, dtype: str = "float64") -> Any:
    """Return a fitted global map as an ONNX model.

    The model has one input, named ``y_proba`` or ``logits`` after what the map was fitted with, of
    shape (n, K), and one output ``probabilities`` of the same shape, in the order of ``classes_``
    (in the metadata as JSON, under ``classes``). A row that ``predict_proba`` would refuse (missing
    or negative values, a sum away from one, logits beyond 1e100) comes out as NaN.

    Parameters
    ----------
    calibrator : calibrator or LocallyCalibratedClassifier
        Fitted, and a global map; its input is the classifier's output, not the features.
    dtype : {"float64", "float32"}, default="float64"
        Type of input and output. Inside, everything is computed in double precision.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(model, path)`` writes it, ``model.SerializeToString()`` returns its bytes.

    Raises
    ------
    TypeError
        Where the calibrator looks at features.
    ImportError
        Without the package onnx (``pip install 'hetcal[onnx]'``).
    """
    check_choice(dtype, "dtype", ("float64", "float32"), "to_onnx")
    map_ = exported_map(calibrator, "to_onnx")
    if find_spec("onnx") is None:
        raise ImportError("to_onnx needs onnx. Install with: pip install 'hetcal[onnx]'.")
    from onnx import TensorProto, checker, helper

    outside = TensorProto.DOUBLE if dtype == "float64" else TensorProto.FLOAT
    K, graph = len(map_.classes_), Graph()
    given = Tensor(graph, graph.add("Cast", map_.input_kind_, to=TensorProto.DOUBLE), K)
    Q, readable = _calibrated(map_, given)
    answered = graph.add("Where", readable, Q.name, graph.constant(np.float64("nan")))
    graph.add("Cast", answered, name="probabilities", to=outside)
    made = helper.make_graph(
        graph.nodes,
        "hetcal",
        [helper.make_tensor_value_info(map_.input_kind_, outside, ["n", K])],
        [helper.make_tensor_value_info("probabilities", outside, ["n", K])],
        list(graph.constants.values()),
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=_IR_VERSION)
    model.producer_name, model.producer_version = "hetcal", __version__
    helper.set_model_props(model, _facts(map_))
    checker.check_model(model)
    return model


def _calibrated(map_: GlobalCalibrator, given: Tensor) -> tuple[Tensor, str]:
    """Return calibrated probabilities, and the name of a truth value per row: it can be read."""
    if map_.input_kind_ == "logits":
        log_proba = given.log_softmax()
        Q = formula(map_, _output(log_proba.exp(), log_proba))
        return Q, given.all_between(-LARGEST_LOGIT, LARGEST_LOGIT)
    total = given.sum()
    off = (total - 1.0).absolute()
    P = off.if_at_most(ROUNDING_NOISE, given, given / total)
    output = _output(P, P.clip(map_.zero_floor_, None).log())
    possible = given.all_between(0.0, _LARGEST)
    readable = given.graph.add("And", possible, off.all_between(0.0, SUM_TOLERANCE))
    return formula(map_, output), readable


def _output(P: Tensor, log_proba: Tensor) -> Output:
    return Output(P, log_proba, log_proba - log_proba.log_rest(), P.width)


def _facts(map_: GlobalCalibrator) -> dict[str, str]:
    classes: Matrix = map_.classes_
    return {
        "calibrator": type(map_).__name__,
        "classes": json.dumps(classes.tolist(), default=str),
    }
