"""Samples of tables larger than the limit: uniform, the same for any batches, stated, bounded."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import softmax

from hetcal import metrics
from hetcal._exceptions import InputError
from hetcal.tables import (
    draw_labelled,
    draw_rows,
    open_table,
    read_batches,
    read_labelled,
    read_table,
)
from hetcal.tables.sampling import _key_of_group

ROLES = {"label": "outcome", "proba": "p_*"}


def make_log(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    said = rng.uniform(0.05, 0.95, n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "income": rng.normal(size=n).round(4),
            "region": rng.choice(["north", "south"], n),
            "customer": rng.integers(0, max(1, n // 4), n),
            "exposure": rng.uniform(0.5, 2.0, n).round(3),
            "p_no": 1 - said,
            "p_yes": said,
            "outcome": np.where(rng.random(n) < said, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def log():
    return make_log(3000)


@pytest.fixture(scope="module", params=["csv", "parquet"])
def path(request, log, tmp_path_factory):
    place = tmp_path_factory.mktemp("log") / f"log.{request.param}"
    log.to_csv(place, index=False) if request.param == "csv" else log.to_parquet(place)
    return place


def cut(table: pd.DataFrame, places: list[int]):
    edges = [0, *sorted(places), len(table)]
    return [table.iloc[a:b] for a, b in pairwise(edges)]


@settings(max_examples=15)
@given(
    places=st.lists(st.integers(0, 500), max_size=6),
    max_rows=st.integers(1, 600),
    grouped=st.booleans(),
    seed=st.integers(0, 3),
)
def test_the_cut_into_batches_does_not_matter(places, max_rows, grouped, seed):
    table = make_log(500)
    groups = "customer" if grouped else None
    options = {"groups": groups, "random_state": seed}
    try:
        whole = draw_rows([table], max_rows, **options)
    except InputError:  # the first group does not fit
        with pytest.raises(InputError, match="groups are drawn whole"):
            draw_rows(cut(table, places), max_rows, **options)
        return
    parts = draw_rows(cut(table, places), max_rows, **options)
    np.testing.assert_array_equal(parts.rows, whole.rows)
    pd.testing.assert_frame_equal(parts.table, table.iloc[whole.rows].reset_index(drop=True))
    assert parts.n_rows == 500
    assert len(parts.rows) <= max_rows
    if not grouped:
        assert len(parts.rows) == min(max_rows, 500)


def test_every_row_and_every_pair_is_drawn_equally_often():
    n, k, times = 8, 3, 300
    batches = cut(pd.DataFrame({"x": range(n)}), [5])
    together = np.zeros((n, n))
    for seed in range(times):
        rows = draw_rows(batches, k, random_state=seed).rows
        together[np.ix_(rows, rows)] += 1
    singles, pairs = np.diag(together), together[np.triu_indices(n, 1)]
    for counts, chance in ((singles, k / n), (pairs, k * (k - 1) / (n * (n - 1)))):
        z = (counts - times * chance) / np.sqrt(times * chance * (1 - chance))
        assert np.abs(z).max() < stats.norm.isf(0.0005 / len(z))


def test_groups_are_whole_and_those_with_the_smallest_keys():
    table = make_log(400)
    sample = draw_rows(cut(table, [100, 150, 390]), 120, groups="customer", random_state=5)
    size = table["customer"].value_counts()
    drawn = sample.table["customer"].value_counts().to_dict()
    assert drawn == size[list(drawn)].to_dict()
    # The naive way: groups in the order of their keys, until one does not fit.
    wanted, room = set(), 120
    for group in sorted(size.index, key=lambda name: _key_of_group(str(name), 5)):
        if size[group] > room:
            break
        room -= size[group]
        wanted.add(group)
    assert set(sample.table["customer"]) == wanted
    shuffled = draw_rows(
        [table.sample(frac=1, random_state=0)], 120, groups="customer", random_state=5
    )
    assert set(shuffled.table["customer"]) == wanted


def test_a_group_that_never_fits():
    with pytest.raises(InputError, match="larger --max-rows"):
        draw_rows([pd.DataFrame({"g": ["a"] * 9})], 3, groups="g")
    with pytest.raises(InputError, match="no rows"):
        draw_rows([], 3)


def test_a_table_within_the_limit_is_read_whole(path):
    found = draw_labelled(path, max_rows=3000, **ROLES)
    whole = read_labelled(read_table(path), **ROLES)
    pd.testing.assert_frame_equal(found.X, whole.X)
    np.testing.assert_array_equal(found.output, whole.output)
    assert (found.roles, found.notes, found.drawn) == (whole.roles, whole.notes, None)


@pytest.mark.parametrize("groups", [None, "customer"])
def test_the_same_items_from_csv_and_parquet_and_any_batch_size(log, tmp_path, groups):
    log.to_csv(tmp_path / "log.csv", index=False)
    log.to_parquet(tmp_path / "log.parquet")
    found = [
        draw_labelled(tmp_path / name, max_rows=300, batch_rows=rows, groups=groups, **ROLES)
        for name, rows in (("log.csv", 290), ("log.csv", 2999), ("log.parquet", 411))
    ]
    for labelled in found:
        assert 200 < labelled.n_items <= 300
        np.testing.assert_array_equal(labelled.rows, found[0].rows)
        np.testing.assert_array_equal(labelled.X["income"], log["income"].iloc[labelled.rows])
        np.testing.assert_array_equal(labelled.output, log[["p_no", "p_yes"]].iloc[labelled.rows])
        np.testing.assert_array_equal(labelled.y, log["outcome"].iloc[labelled.rows])
        assert labelled.n_read == 3000
        assert "of 3,000 rows, drawn at random (--seed 0)" in labelled.notes[0]
    other = draw_labelled(
        tmp_path / "log.csv", max_rows=300, random_state=1, groups=groups, **ROLES
    )
    assert not np.array_equal(other.rows, found[0].rows)


@pytest.mark.parametrize("weight", [None, "exposure"])
@pytest.mark.parametrize("output", ["proba", "logits", "single"])
def test_the_model_is_scored_over_all_rows(log, tmp_path, weight, output):
    log = log.copy()
    P = log[["p_no", "p_yes"]].to_numpy()
    roles = dict(ROLES)
    if output == "logits":
        log[["z_no", "z_yes"]] = np.log(P) + 3
        P = softmax(log[["z_no", "z_yes"]].to_numpy(), axis=1)
        roles = {"label": "outcome", "logits": "z_*"}
    elif output == "single":
        roles = {"label": "outcome", "proba": "p_yes", "positive": "yes"}
    log.to_parquet(tmp_path / "log.parquet")
    overall = draw_labelled(
        tmp_path / "log.parquet", max_rows=100, batch_rows=130, weight=weight, **roles
    ).drawn["overall"]
    given = {"sample_weight": log[weight] if weight else None, "classes": ["no", "yes"]}
    for name, metric in (
        ("brier", metrics.brier_score),
        ("log_loss", metrics.log_loss),
        ("accuracy", metrics.accuracy),
    ):
        assert overall[name] == pytest.approx(metric(log["outcome"], P, **given), abs=1e-12)
    ece = metrics.expected_calibration_error(log["outcome"], P, binning="equal-width", **given)
    assert overall["ece"] == pytest.approx(ece, abs=1e-12)
    assert sum(part["share"] for part in overall["reliability"]) == pytest.approx(1)
    assert overall["class_counts"] == log["outcome"].value_counts().to_dict()
    assert overall["rows"] == 3000


def test_only_rows_that_can_be_used_are_drawn(tmp_path):
    log = make_log(1000)
    log.loc[::2, "outcome"] = ["", "NA"] * 250
    log.loc[1:100:2, "p_yes"] = np.nan
    log.to_csv(tmp_path / "log.csv", index=False)
    labelled = draw_labelled(
        tmp_path / "log.csv", max_rows=200, batch_rows=90, drop_missing=True, **ROLES
    )
    assert labelled.n_items == 200
    assert (labelled.rows % 2 == 1).all()
    assert labelled.rows.min() > 100
    assert labelled.notes[0].startswith("200 of 450 usable rows (1,000 in all)")
    assert "500 rows without a label left out." in labelled.notes
    assert "50 rows without a probability left out." in labelled.notes
    log.loc[:90, "p_yes"] = 1 - log.loc[:90, "p_no"]
    log.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError, match=r"nothing in rows 92, 94.*--drop-missing"):
        draw_labelled(tmp_path / "log.csv", max_rows=200, batch_rows=90, **ROLES)


def test_a_word_for_missing_may_be_a_class(tmp_path):
    log = make_log(400).rename(columns={"p_no": "p_NA"}).replace({"outcome": {"no": "NA"}})
    log.to_csv(tmp_path / "log.csv", index=False)
    labelled = draw_labelled(tmp_path / "log.csv", max_rows=100, **ROLES)
    assert labelled.n_items == 100
    assert labelled.drawn["usable_rows"] == 400
    assert labelled.classes.tolist() == ["NA", "yes"]


def test_what_is_wrong_outside_of_the_sample_is_still_an_error(tmp_path):
    log = make_log(1000)
    log.loc[990, "outcome"] = "perhaps"
    log.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError, match="perhaps"):
        draw_labelled(tmp_path / "log.csv", max_rows=20, **ROLES)
    log = make_log(1000)
    log.loc[990, "p_yes"] = 1.7
    log.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError, match=r"row 991"):
        draw_labelled(tmp_path / "log.csv", max_rows=20, batch_rows=100, **ROLES)
    log = make_log(1000).astype({"customer": object})
    log.loc[700, "customer"] = None
    log.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError, match=r"empty in row 701"):
        draw_labelled(tmp_path / "log.csv", max_rows=50, groups="customer", **ROLES)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_infinite_feature_outside_of_the_sample_is_an_error(tmp_path, ending):
    path = tmp_path / f"log.{ending}"

    def draw(**cells):
        log = make_log(1000)
        for name, cell in cells.items():
            log[name] = log[name].astype(object if cell is None else float)
            log.loc[700, name] = cell
        getattr(log, f"to_{ending}")(path, index=False)
        return draw_labelled(path, max_rows=100, batch_rows=300, **ROLES)

    drawn = draw()
    assert 700 not in drawn.rows
    number = next(name for name, kind in drawn.roles.features.items() if kind == "number")
    for cells in ({number: np.inf}, {number: -np.inf, "outcome": None}):
        with pytest.raises(InputError, match=f"{number!r} holds an infinite number in row 701 "):
            draw(**cells)


def test_rare_classes(tmp_path):
    log = make_log(2000)
    log["outcome"] = "no"
    log.loc[[5, 1500], "outcome"] = "yes"
    log.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError, match=r"All 20 rows drawn of 2,000 hold 'no'.*--max-rows"):
        draw_labelled(tmp_path / "log.csv", max_rows=20, **ROLES)
    log.loc[:300, "outcome"] = "yes"
    log.to_csv(tmp_path / "log.csv", index=False)
    labelled = draw_labelled(tmp_path / "log.csv", max_rows=200, **ROLES)
    n = int((labelled.y == "yes").sum())
    assert (
        f"Few rows of rare classes were drawn: 'yes' {n} of 302. See --max-rows." in labelled.notes
    )


def test_columns_without_a_use_are_not_read(log, tmp_path):
    log.to_parquet(tmp_path / "log.parquet")
    with open_table(tmp_path / "log.parquet") as reader:
        [batch] = reader.batches(3000, ["age", "p_no"])
    assert batch.column_names == ["age", "p_no"]
    labelled = draw_labelled(tmp_path / "log.parquet", max_rows=50, use_features=False, **ROLES)
    assert labelled.X is None
    named = {"features": "age,reg*", "drop": "region", "by": "customer"}
    labelled = draw_labelled(tmp_path / "log.parquet", max_rows=50, **named, **ROLES)
    assert list(labelled.X.columns) == ["age"]
    assert len(labelled.by["customer"]) == 50


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_table(tmp_path, ending):
    def written(n: int) -> Path:
        path, log = tmp_path / f"{n}.{ending}", make_log(n)
        if ending == "csv":
            log.to_csv(path, index=False)
        else:
            log.to_parquet(path, row_group_size=1000)
        return path

    def peak(path: Path) -> int:
        tracemalloc.start()
        draw_labelled(path, max_rows=500, batch_rows=500, **ROLES)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(written(1000))  # imports
    # The least of some: threads that other tests have left may hold memory meanwhile.
    small, large = (min(peak(path) for _ in range(2)) for path in (written(3000), written(12_000)))
    # Nine thousand rows more, held as numbers, would take half a megabyte at least.
    assert large < small + 250_000


def test_rows_are_drawn_from_files(path, log):
    sample = draw_rows(read_batches(path, 400), 100)
    table = sample.table if isinstance(sample.table, pd.DataFrame) else sample.table.to_pandas()
    np.testing.assert_array_equal(table["income"].astype(float), log["income"].iloc[sample.rows])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_with_a_decimal_point_are_whole_numbers(tmp_path, ending):
    """As a whole table gives them: pandas writes 1.0 where some labels are missing."""
    log = make_log(400)
    log["outcome"] = np.where(np.arange(400) % 7 == 0, np.nan, np.arange(400) % 2)
    log = log.rename(columns={"p_no": "p_0", "p_yes": "p_1"})
    path = tmp_path / f"log.{ending}"
    if ending == "csv":
        log.to_csv(path, index=False)
    else:
        log.to_parquet(path)
    whole = draw_labelled(path, max_rows=1000, **ROLES)
    part = draw_labelled(path, max_rows=100, **ROLES)
    assert list(part.classes) == list(whole.classes)
    assert set(np.asarray(part.y).tolist()) == set(np.asarray(whole.y).tolist())
