import pytest

from hetcal.paper.published import published_table, published_value


def test_table_is_complete_and_unambiguous():
    table = published_table()
    key = ["dataset", "classifier", "metric", "method"]
    assert len(table) == 672
    assert not table.duplicated(key).any()
    assert table["mean"].between(0, 2).all()
    assert (table["standard_error"] >= 0).all()
    # Seven data sets, six classifiers, two metrics, eight methods each.
    assert (table.groupby(key[:-1])["method"].count() == 8).all()
    assert (table.groupby(key[:-1])["best"].sum() >= 1).all()


def test_value_is_one_cell():
    assert published_value("letter", "RF", "SWC") == 0.1630
    with pytest.raises(ValueError, match="method must be one of"):
        published_value("letter", "RF", "Magic")
    with pytest.raises(ValueError, match="no single figure"):
        published_value("letter", "RF", "Platt")
