"""FeatureEncoder: tables of any kind to numbers, by an encoding that is checked at predict."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from hetcal import HybridCalibrator, SimilarityCalibrator, advise, get_calibrator
from hetcal._exceptions import HetcalWarning, SlowFitWarning, UnknownCategoryWarning
from hetcal._validation import FeatureEncoder, check_labels
from hetcal.calibration.chosen_columns import as_transformer
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.heterogeneity import heterogeneity_test
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.similarity import ForestProximity

NAN = np.nan
TABLE = {
    "age": [31.0, 58.0, 44.0],
    "region": ["north", "south", "north"],
    "member": [True, False, True],
}
ENCODED = np.array([[31.0, 1.0, 0.0, 1.0], [58.0, 0.0, 1.0, 0.0], [44.0, 1.0, 0.0, 1.0]])


def _categorical(dtype):
    return pl.DataFrame(TABLE, schema_overrides={"region": dtype})


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(TABLE),
        pl.DataFrame(TABLE),
        pd.DataFrame(TABLE).astype({"region": "category"}),
        pd.DataFrame(TABLE).astype({"region": object}),
        pd.DataFrame(TABLE).astype({"region": "string", "age": "Float64", "member": "boolean"}),
        _categorical(pl.Categorical),
        _categorical(pl.Enum(["south", "north", "west"])),
    ],
    ids=["pandas", "polars", "category", "object", "nullable", "Categorical", "Enum"],
)
def test_containers_agree(table):
    encoder = FeatureEncoder().fit(table)
    assert encoder.feature_names_out_ == ["age", "region=north", "region=south", "member"]
    np.testing.assert_array_equal(encoder.transform(table), ENCODED)
    assert encoder.n_features_in_ == 3
    assert encoder.feature_names_in_.tolist() == ["age", "region", "member"]


def test_levels_of_one_library_are_those_of_the_other():
    encoder = FeatureEncoder().fit(pd.DataFrame(TABLE))
    np.testing.assert_array_equal(encoder.transform(pl.DataFrame(TABLE)), ENCODED)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, object])
def test_arrays(dtype):
    X = np.array([[0, 1], [1, 1]], dtype=dtype)
    X.setflags(write=False)
    result = FeatureEncoder().fit_transform(X)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, [[0, 1], [1, 1]])


def test_lists():
    np.testing.assert_array_equal(
        FeatureEncoder().fit_transform([[1, 2], [3, 4]]), [[1, 2], [3, 4]]
    )


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1.0, NAN, 3.0, 7.0]}),
        pd.DataFrame({"a": pd.array([1, None, 3, 7], dtype="Int64")}),
        pd.DataFrame({"a": np.array([1, None, 3, 7], dtype=object)}),
        pl.DataFrame({"a": [1, None, 3, 7]}),
        pl.DataFrame({"a": [1.0, NAN, 3.0, 7.0]}),
        np.array([[1.0], [NAN], [3.0], [7.0]]),
    ],
    ids=["nan", "Int64", "object", "polars-null", "polars-nan", "array"],
)
def test_missing_numbers_stay_or_become_the_median(table):
    kept = FeatureEncoder().fit_transform(table)
    np.testing.assert_array_equal(kept[:, 0], [1, NAN, 3, 7])
    filled = FeatureEncoder(missing="impute").fit_transform(table)
    np.testing.assert_array_equal(filled[:, 0], [1, 3, 3, 7])


def test_a_column_without_any_number_is_filled_with_zero():
    X = np.array([[NAN, 1.0], [NAN, 2.0]])
    np.testing.assert_array_equal(FeatureEncoder(missing="impute").fit_transform(X)[:, 0], [0, 0])


def test_the_median_is_that_of_fit():
    encoder = FeatureEncoder(missing="impute").fit(np.array([[1.0], [2.0], [9.0]]))
    np.testing.assert_array_equal(encoder.transform(np.array([[NAN], [100.0]])), [[2], [100]])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("missing", ["keep", "impute"])
def test_a_missing_category_is_none_of_the_levels(library, missing):
    table = library({"region": ["north", None, "south"]})
    result = FeatureEncoder(missing=missing).fit_transform(table)
    np.testing.assert_array_equal(result, [[1, 0], [0, 0], [0, 1]])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_unknown_levels_are_counted(library):
    encoder = FeatureEncoder().fit(library({"region": ["north", "south"]}))
    new = library({"region": ["west", "north", "west", "east", None]})
    with pytest.warns(UnknownCategoryWarning, match=r"'region' holds 3 value\(s\).*\(east, west\)"):
        result = encoder.transform(new)
    np.testing.assert_array_equal(result, [[0, 0], [1, 0], [0, 0], [0, 0], [0, 0]])


def test_many_levels_are_text_unless_they_are_declared():
    table = pd.DataFrame({"note": [f"note {i}" for i in range(101)]})
    with pytest.raises(ValueError, match=r"'note' of X is text with 101 distinct.*Drop it, encode"):
        FeatureEncoder().fit(table)
    declared = table.astype({"note": "category"})
    assert FeatureEncoder().fit_transform(declared).shape == (101, 101)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "values",
    [
        [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
        [datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)],
        [datetime.timedelta(1), datetime.timedelta(2)],
    ],
    ids=["date", "datetime", "duration"],
)
def test_dates_are_refused(library, values):
    with pytest.raises(TypeError, match=r"'when'.*(Leave it out|Encode it)"):
        FeatureEncoder().fit(library({"when": values, "x": [1.0, 2.0]}))


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"x": [[1, 2], [3]]}),
        pl.DataFrame({"x": [{"a": 1}, {"a": 2}]}),
        pl.DataFrame({"x": [None, None]}, schema={"x": pl.List(pl.Float64)}),
        pd.DataFrame({"x": [[1, 2], ["a", 3]]}),
        pd.DataFrame({"x": [[1, 2], [3]]}),
        pd.DataFrame({"x": [{"a": 1}, {"a": 2}]}),
    ],
    ids=["polars-list", "polars-struct", "polars-empty", "texts", "pandas-list", "pandas-dict"],
)
def test_nested_columns_are_refused(table):
    with pytest.raises(TypeError, match=r"'x'.*(Leave it out|Encode it)"):
        FeatureEncoder().fit(table)


EMBEDDED = {"age": [31.0, 58.0, 44.0], "text": [[0.1, 0.2], [0.3, 0.4], None]}


def _stacked():
    vectors = np.empty(3, dtype=object)
    vectors[:] = [[0.1, 0.2], np.array([0.3, 0.4]), None]
    return vectors


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(EMBEDDED, index=[7, 5, 3]),
        pd.DataFrame(EMBEDDED | {"text": _stacked()}),
        pl.DataFrame(EMBEDDED),
        pl.DataFrame(EMBEDDED, schema_overrides={"text": pl.Array(pl.Float64, 2)}),
        pa.table(EMBEDDED),
    ],
    ids=["pandas", "arrays", "polars-list", "polars-array", "arrow"],
)
def test_vectors_become_a_column_per_component(table):
    encoder = FeatureEncoder().fit(table)
    assert encoder.feature_names_out_ == ["age", "text[0]", "text[1]"]
    expected = [[31, 0.1, 0.2], [58, 0.3, 0.4], [44, NAN, NAN]]
    np.testing.assert_allclose(encoder.transform(table), expected)
    np.testing.assert_allclose(encoder.transform(pl.DataFrame(EMBEDDED)), expected)


def test_an_array_of_vectors_is_one_array():
    for vectors in (_stacked(), pd.Series(_stacked())):
        encoded = FeatureEncoder().fit_transform(vectors)
        np.testing.assert_array_equal(encoded, [[0.1, 0.2], [0.3, 0.4], [NAN, NAN]])


LIBRARIES = pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"]
)


@LIBRARIES
def test_vectors_may_all_be_missing_in_a_batch(library):
    encoder = FeatureEncoder().fit(library(EMBEDDED))
    part = pl.DataFrame(EMBEDDED)[2:]  # which knows that these are lists
    for batch in (library({"age": [44], "text": [None]}), part, part.to_arrow()):
        np.testing.assert_array_equal(encoder.transform(batch), [[44, NAN, NAN]])


def test_an_array_of_missing_vectors():
    encoder = FeatureEncoder().fit(_stacked())
    np.testing.assert_array_equal(encoder.transform(_stacked()[2:]), [[NAN, NAN]])
    with pytest.raises(ValueError, match="Expected 2D array"):
        FeatureEncoder().fit(np.ones((3, 2))).transform(np.array([NAN, NAN]))


@pytest.mark.parametrize("missing", [None, NAN, pd.NA, pd.NaT], ids=repr)
def test_a_missing_vector_may_come_first(missing):
    table = pd.DataFrame({"text": [missing, [0.1, 0.2], (0.3, None)]})
    expected = [[NAN, NAN], [0.1, 0.2], [0.3, NAN]]
    np.testing.assert_array_equal(FeatureEncoder().fit_transform(table), expected)


@LIBRARIES
def test_vectors_hold_numbers_or_flags(library):
    flags = library({"text": [[True, False], None]})
    np.testing.assert_array_equal(FeatureEncoder().fit_transform(flags), [[1, 0], [NAN, NAN]])
    for text in ([["1", "2"], ["3", "4"]], [["a"], ["b"]], [[[1.0]], [[2.0]]]):
        with pytest.raises(TypeError, match="Column 'text' of X"):
            FeatureEncoder().fit(library({"text": text}))


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        (
            {"e": [[1.0, 2.0], 1.5]},
            TypeError,
            r"'e' of X must hold lists .* only; got 1\.5",
        ),
        ({"e": [[1.0, 2.0], "ab"]}, TypeError, "lists of numbers only; got 'ab'"),
        ({"e": [np.array(1.0)] * 2}, TypeError, r"lists of numbers only; got array\(1"),
        ({"e": [[], []], "a": [1, 2]}, TypeError, "vectors of 0 to 0 numbers"),
        ({"e": [[1.0], [1.0, 2.0]]}, TypeError, "vectors of 1 to 2 numbers"),
        ({"e": [[1.0], [2.0]], "e[0]": [1, 2]}, ValueError, r"X has \['e\[0\]'\] already\. Rename"),
    ],
    ids=["number", "text", "no-axis", "empty", "lengths", "name-taken"],
)
def test_vectors_that_are_none(columns, error, said):
    with pytest.raises(error, match=said):
        FeatureEncoder().fit(pd.DataFrame(columns))


def test_a_row_with_a_long_vector_is_encoded_at_once(monkeypatch):
    table = pd.DataFrame({"text": list(np.arange(600.0).reshape(2, 300))})
    encoder = FeatureEncoder().fit(table)
    monkeypatch.setattr("hetcal._validation.features._numeric_column", None)
    np.testing.assert_array_equal(encoder.transform(table[1:]), [np.arange(300.0, 600.0)])


def test_vectors_serve_everywhere():
    data = make_hidden_heterogeneity(80, heterogeneity=1.0, random_state=0)
    table = pd.DataFrame({"embedding": list(data.X)})
    plain = pd.DataFrame(data.X, columns=[f"embedding[{j}]" for j in range(data.X.shape[1])])
    found = []
    for X in (table, plain):
        sbaw = get_calibrator("sbaw").fit(X, data.y, y_proba=data.y_proba)
        tested = heterogeneity_test(X, data.y, y_proba=data.y_proba, learners=[])
        found.append((sbaw.predict_proba(X, y_proba=data.y_proba)[:, 0], tested.p_value))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_all_columns_without_encoding_are_named_and_those_that_can_be_used():
    table = pd.DataFrame(TABLE).assign(
        when=pd.Timestamp("2024-01-01"), name=["a", "b", "c"], note=["d", "e", "f"]
    )
    with pytest.raises(TypeError) as caught:
        FeatureEncoder(max_levels=2).fit(table)
    said = str(caught.value)
    assert said.startswith("Column 'when' of X has type Datetime")
    assert "Nor have ['name', 'note']" in said
    assert "features=['age', 'region', 'member'])" in said


class _Unsortable:
    def __lt__(self, other):
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "made up")


def test_columns_are_refused_by_errors_that_are_made_from_more_than_a_text():
    levels = pd.Categorical.from_codes([0, 1], categories=[_Unsortable(), _Unsortable()])
    with pytest.raises(ValueError, match=r"made up Of X, \['age'\] can be used"):
        FeatureEncoder().fit(pd.DataFrame({"level": levels, "age": [31, 58]}))


@pytest.mark.parametrize(
    "ask",
    [
        lambda X, **given: get_calibrator("sbaw").fit(X, **given),
        lambda X, **given: heterogeneity_test(X, **given),
        lambda X, **given: advise(X, **given),
    ],
    ids=["calibrator", "test", "advise"],
)
def test_texts_are_no_features(ask):
    y, y_proba = [0, 1] * 30, [[0.6, 0.4], [0.3, 0.7]] * 30
    with pytest.raises(ValueError, match=r"got 60 texts such as 'a text'.*an embedding, or TF-IDF"):
        ask(["a text"] * 60, y=y, y_proba=y_proba)


@pytest.mark.parametrize("part", ["X", "y_proba", "groups"])
def test_columns_of_the_same_name(part):
    twice = pd.DataFrame([[0.6, 0.4], [0.3, 0.7]] * 4, columns=["a", "a"])
    given = {"X": [[1.0]] * 8, "y": [0, 1] * 4, "y_proba": twice.to_numpy(), part: twice}
    with pytest.raises(ValueError, match=r"several that are named \['a'\]. Give each column"):
        get_calibrator("sbaw").fit(**given)


def test_text_in_an_array():
    with pytest.raises(ValueError, match=r"text such as 'red'.*Pass a pandas or polars table"):
        FeatureEncoder().fit(np.array([["red", "1"], ["blue", "2"]], dtype=object))


@pytest.mark.parametrize("X", [np.array([[1.0], [np.inf]]), pd.DataFrame({"a": [1.0, -np.inf]})])
def test_infinity(X):
    with pytest.raises(ValueError, match=r"infinity in row 1, column 0.*Clip such values"):
        FeatureEncoder().fit(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), "Expected 2D array.*Reshape"),
        (np.zeros((3, 2, 2)), r"Expected 2D array.*reshape\(len\(X\), -1\)"),
        (np.zeros((0, 2)), r"0 sample\(s\).*at least one row"),
        (np.zeros((2, 0)), r"0 feature\(s\).*at least one feature"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\).*at least one row"),
        (np.zeros((2, 2), dtype=complex), "Complex data not supported"),
    ],
    ids=["1d", "3d", "no rows", "no columns", "empty table", "complex"],
)
def test_shapes(X, message):
    with pytest.raises(ValueError, match=message):
        FeatureEncoder().fit(X)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_other_columns_at_predict(library):
    encoder = FeatureEncoder().fit(library({"a": [1.0], "b": [2.0]}))
    with pytest.raises(ValueError, match=r"missing: \['b'\]; unexpected: \['c'\].*same columns"):
        encoder.transform(library({"a": [1.0], "c": [2.0]}))
    with pytest.raises(ValueError, match=r"column 0 was 'a' and is 'b'. Reorder"):
        encoder.transform(library({"b": [1.0], "a": [2.0]}))
    with pytest.raises(ValueError, match=r"unexpected: \['c'\]"):
        encoder.transform(library({"a": [1.0], "b": [2.0], "c": [3.0]}))


def test_other_width_at_predict():
    encoder = FeatureEncoder().fit(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="has 2 features, but .* expecting 3.*same columns"):
        encoder.transform(np.zeros((2, 2)))


def test_an_array_after_a_table_with_categories():
    encoder = FeatureEncoder().fit(pd.DataFrame(TABLE))
    with pytest.raises(ValueError, match="plain array now. Pass a table"):
        encoder.transform(np.zeros((1, 3)))


def test_text_where_numbers_were():
    encoder = FeatureEncoder().fit(pd.DataFrame({"a": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="numeric at fit .* Convert it to numbers"):
        encoder.transform(pd.DataFrame({"a": ["x", "y"]}))
    with pytest.raises(ValueError, match="numeric at fit .* Convert it to numbers"):
        encoder.transform(pd.DataFrame({"a": ["x", "y"]}, dtype=object))


def test_numbers_where_categories_were():
    encoder = FeatureEncoder().fit(pd.DataFrame({"a": ["1", "2"]}))
    with pytest.warns(UnknownCategoryWarning, match=r"holds 2 value\(s\)"):
        encoder.transform(pd.DataFrame({"a": [1.0, 2.0]}))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_only_where_allowed(kind):
    X = kind(np.eye(3))
    with pytest.raises(TypeError, match=r"sparse.*X.toarray\(\)"):
        FeatureEncoder().fit(X)
    encoder = FeatureEncoder(allow_sparse=True).fit(X)
    assert sparse.issparse(encoder.transform(X))
    np.testing.assert_array_equal(encoder.transform(X).toarray(), np.eye(3))
    with pytest.raises(ValueError, match="expecting 3 features"):
        encoder.transform(sparse.csr_array(np.eye(4)))
    with pytest.raises(ValueError, match="infinity"):
        encoder.transform(kind(np.full((1, 3), np.inf)))


def entries_twice(kind, indices=(2, 0, 2)):
    return kind(
        (np.array([1.0, 5.0, 2.0]), np.array(indices), np.array([0, 3, 3, 3])), shape=(3, 3)
    )


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix])
def test_a_sparse_entry_in_several_parts_is_their_sum_and_stays_as_it_is(kind):
    twice = entries_twice(kind)
    found = FeatureEncoder(allow_sparse=True).fit_transform(twice)
    assert sorted(found.data.tolist()) == [3.0, 5.0]
    np.testing.assert_array_equal(found.toarray(), twice.toarray())
    assert twice.data.tolist() == [1.0, 5.0, 2.0]
    assert twice.indices.tolist() == [2, 0, 2]


def test_similarities_know_sparse_entries_in_several_parts():
    X, y = np.random.default_rng(0).poisson(1.0, (40, 5)) + 0.0, np.arange(40) % 2
    P = np.where(y[:, None] == [0, 1], 0.6, 0.4)
    rows, columns = np.nonzero(X)
    order = np.repeat(np.arange(len(rows)), 2)
    starts = 2 * np.append(0, np.cumsum(np.count_nonzero(X, axis=1)))
    halves = sparse.csr_array((X[rows, columns][order] / 2, columns[order], starts), shape=X.shape)
    dense, parted = (
        SimilarityCalibrator("cosine").fit(data, y, y_proba=P).predict_proba(data, y_proba=P)
        for data in (X, halves)
    )
    np.testing.assert_allclose(parted, dense, rtol=1e-12)


@pytest.mark.parametrize("indices", [(2, 0, 3), (2, 0, -1)])
def test_sparse_parts_that_do_not_fit_together(indices):
    X = entries_twice(sparse.csr_array)
    X.indices[:] = indices
    with pytest.raises(ValueError, match="parts do not fit together.*Make it again"):
        FeatureEncoder(allow_sparse=True).fit(X)


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[D]"])
def test_arrays_of_dates_are_refused(dtype):
    dates = np.array([[1, 2], [3, "NaT"]], dtype=dtype)
    with pytest.raises(TypeError, match="(datetime|timedelta)64.*has no encoding.*an age in days"):
        FeatureEncoder().fit(dates)
    encoder = FeatureEncoder().fit([[1, 2]])
    with pytest.raises(TypeError, match="(datetime|timedelta)64"):
        encoder.transform(dates)


def test_the_test_of_heterogeneity_takes_no_date_for_a_missing_one():
    dates = np.array([["2024-05-01"], ["2024-05-03"], ["NaT"], ["2024-05-02"]], dtype="M8[D]")
    of_array, of_table = (
        FeatureColumns.read(X) for X in (dates, pd.DataFrame({"x0": dates[:, 0]}))
    )
    assert of_array.missing_names == of_table.missing_names == ["x0"]
    np.testing.assert_array_equal(of_array.ranks, of_table.ranks)


def test_complex_sparse_matrices():
    with pytest.raises(ValueError, match="Complex data not supported"):
        FeatureEncoder(allow_sparse=True).fit(sparse.csr_array(np.eye(2) * 1j))


def test_refit_forgets():
    encoder = FeatureEncoder(missing="impute").fit(pd.DataFrame(TABLE))
    encoder.fit(np.zeros((2, 2)))
    assert encoder.feature_names_in_ is None
    assert encoder.feature_names_out_ == ["x0", "x1"]


@pytest.mark.parametrize("dtype", [object, "string", "Int64"])
def test_a_column_of_nulls_is_numeric_and_empty(dtype):
    table = pd.DataFrame({"t": ["a", "b", "a"], "e": pd.Series([pd.NA] * 3, dtype=dtype)})
    encoded = FeatureEncoder(missing="keep").fit(table).transform(table)
    assert np.isnan(encoded).all(axis=0).sum() == 1
    later = table.assign(e=pd.Series([1.5, 2.5, pd.NA], dtype=object))
    FeatureEncoder(missing="keep").fit(table).transform(later)


def test_a_polars_column_without_a_type_is_like_one_of_pandas():
    import polars as pl

    table = pl.DataFrame({"a": [1.0, 2.0], "note": [None, None]})
    assert table["note"].dtype == pl.Null
    encoder = FeatureEncoder(missing="keep").fit(table)
    same = pd.DataFrame({"a": [1.0, 2.0], "note": [None, None]})
    np.testing.assert_array_equal(encoder.transform(table), encoder.transform(same))
    np.testing.assert_array_equal(encoder.transform(table)[:, 1], np.nan)


def test_text_where_nothing_was_is_told_apart_from_numbers():
    encoder = FeatureEncoder().fit(pd.DataFrame({"a": [1.0, 2.0], "note": [None, None]}))
    with pytest.raises(ValueError, match="'note' of X was empty or .* pass it empty again"):
        encoder.transform(pd.DataFrame({"a": [1.0, 2.0], "note": ["x", "y"]}))


def test_lists_say_how_many_names_they_leave_out():
    names = [f"c{j}" for j in range(25)]
    table = pd.DataFrame(np.arange(50.0).reshape(2, 25), columns=names)
    encoder = FeatureEncoder().fit(table[["c0"]])
    with pytest.raises(ValueError, match=r"unexpected: \['c1', .*'c10'\] and 14 more\)"):
        encoder.transform(table)
    with pytest.raises(ValueError, match=r"X has \['c0', .*'c19'\] and 5 more\."):
        as_transformer(["zz"], "test").fit(table)
    with pytest.raises(ValueError, match=r"not in classes: \['x10', .*'x19'\] and 2 more\."):
        check_labels([f"x{j}" for j in range(10, 22)], classes=["x98", "x99"])


@pytest.mark.parametrize("kind", ["float64", "int8", "bool"])
def test_sparse_columns_of_pandas_are_read_as_numbers(kind):
    plain = pd.DataFrame({"a": [0, 1, 0], "b": [1, 0, 0], "size": [0.5, 1.5, 2.5]})
    plain = plain.astype({"a": kind, "b": kind})
    mixed = plain.astype({name: pd.SparseDtype(kind, np.zeros(1, kind)[0]) for name in ("a", "b")})
    encoder = FeatureEncoder().fit(mixed)
    np.testing.assert_array_equal(encoder.transform(mixed), plain.to_numpy(float))
    np.testing.assert_array_equal(encoder.transform(plain), plain.to_numpy(float))
    assert encoder.feature_names_out_ == ["a", "b", "size"]


def test_missing_values_of_sparse_columns_are_missing():
    table = pd.DataFrame({"a": pd.arrays.SparseArray([np.nan, 1.0, np.nan])})
    np.testing.assert_array_equal(FeatureEncoder().fit_transform(table), [[np.nan], [1], [np.nan]])


def test_large_tables_of_sparse_columns_stay_sparse(monkeypatch):
    monkeypatch.setattr("hetcal._validation.vectors._LARGEST_DENSE", 100)
    matrix = sparse.random(30, 5, 0.2, format="csr", random_state=0)
    table = pd.DataFrame.sparse.from_spmatrix(matrix)
    encoded = FeatureEncoder(allow_sparse=True).fit_transform(table)
    assert sparse.issparse(encoded)
    np.testing.assert_array_equal(encoded.toarray(), matrix.toarray())
    with pytest.raises(TypeError, match=r"30 x 5.*toarray\(\) takes 1 MB") as few:
        FeatureEncoder().fit(table)
    assert "TruncatedSVD" not in str(few.value)  # which cannot make 50 columns of 5
    with pytest.raises(TypeError, match=r"2 x 51.*TruncatedSVD\(50\)"):
        FeatureEncoder().fit(sparse.csr_array((2, 51)))
    # And a method that takes sparse matrices says the same of either, whole or in small batches.
    y, p = np.arange(30) % 2, np.linspace(0.1, 0.9, 30)
    fitted = [get_calibrator("sbaw").fit(X, y, y_proba=p) for X in (table, matrix)]
    asked = [(table, p), (matrix, p), (table[:2], p[:2]), (matrix[:2], p[:2])]
    said = [[k.predict_proba(X, y_proba=q) for X, q in asked] for k in fitted]
    for k in range(2):
        np.testing.assert_allclose(said[k][0], said[0][1])
        np.testing.assert_allclose(said[k][1], said[0][1])
        np.testing.assert_allclose(said[k][2], said[0][1][:2])
        np.testing.assert_allclose(said[k][3], said[0][1][:2])


COMMA = r"replace\(',', '\.'\)\)"


@pytest.mark.parametrize(("sign", "remedy"), [(".", r"X\['a'\]\)"), (",", COMMA)])
def test_numbers_as_text_are_told_from_text(sign, remedy):
    values = [f"{value:.3f}".replace(".", sign) for value in np.linspace(-1, 1, 150)]
    with pytest.raises(ValueError, match=f"numbers as text, such as '-0{sign}.*{remedy}"):
        FeatureEncoder().fit(pd.DataFrame({"a": values}))


def test_types_without_encoding_have_their_own_name():
    with pytest.raises(TypeError, match=r"has type period\[D\]"):
        FeatureEncoder().fit(pd.DataFrame({"a": pd.period_range("2024", periods=3, freq="D")}))


def test_a_projection_is_proposed_where_fitting_takes_minutes(monkeypatch):
    monkeypatch.setattr("hetcal._validation.features._SLOW_CELLS", 20_000)
    rng = np.random.default_rng(0)
    X, y, p = rng.normal(size=(60, 400)), np.arange(60) % 2, rng.random(60)
    hybrid = HybridCalibrator((), n_estimators=2)
    for calibrator in (hybrid, SimilarityCalibrator(ForestProximity(n_estimators=2))):
        with pytest.warns(SlowFitWarning, match=r"60 x 40\d values.*PCA\(50\)\.fit\(X\)") as caught:
            calibrator.fit(X, y, y_proba=p)
        assert caught[0].filename == __file__
    # Warnings are errors here: not of narrow tables, nor where a vote by distance is quick.
    hybrid.fit(X[:, :300], y, y_proba=p)
    get_calibrator("sbaw").fit(X, y, y_proba=p)


@pytest.mark.parametrize(
    ("name", "scale", "told"),
    [
        ("swc", 1e-9, True),  # trees take values within 1e-7 for equal
        ("swc", 1e-3, False),
        ("swc", 1e200, True),
        ("hybrid", 1e-9, False),
        ("hybrid", 1e-150, True),
        ("hybrid", 1e35, True),
    ],
)
def test_columns_that_forests_cannot_see_are_named(name, scale, told):
    rng = np.random.default_rng(0)
    X, P = rng.normal(size=(40, 3)), rng.dirichlet([1, 1], 40)
    X[:, 1] *= scale
    X[:, 2] = 0.1 + 1e-17 * X[:, 2]  # a constant, but for rounding
    options = {} if name == "swc" else {"n_estimators": 5}
    made = get_calibrator(name, **options)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", HetcalWarning)
        made.fit(X, rng.integers(0, 2, 40), y_proba=P)
    texts = [str(warning.message) for warning in said]
    assert any("cannot tell the values of column 1 (" in text for text in texts) == told
