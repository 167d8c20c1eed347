"""Claims of the text: counted right, and not decided before the results are there."""

import numpy as np
import pandas as pd
import pytest
from tests.paper.made_up import results_like_the_paper, write

from hetcal.paper.claims import ResultsFolder, check_claims
from hetcal.paper.claims.figures import _is_sure
from hetcal.paper.claims.tables import _TABLE_CLAIMS, _rows_that_agree
from hetcal.paper.published import published_table


@pytest.fixture(scope="module")
def results():
    return results_like_the_paper()


def of(claims: pd.DataFrame, words: str) -> pd.Series:
    [place] = claims.index[claims["claim"].str.contains(words, regex=False)]
    return claims.loc[place]


def test_nothing_is_decided_without_results(tmp_path):
    claims = check_claims(ResultsFolder.load(tmp_path))
    assert len(claims) > 25
    assert (claims["holds"] == "").all()
    assert set(claims["ours"]) == {"no results yet"}, claims["ours"].unique()


def test_half_the_results_decide_nothing_about_the_whole(results, tmp_path):
    part = results[results["dataset"].isin(["mnist-1v7", "mnist-4v9"])]
    claim = of(
        check_claims(ResultsFolder(part, tmp_path)), "SWC-HH consistently has the best Brier"
    )
    assert claim["ours"].endswith("of 12 (so far)")
    assert claim["holds"] == ""
    few = check_claims(ResultsFolder(results[results["seed"] < 9], tmp_path))
    assert (few[few["source"] == "Appendix"]["holds"] == "").all()


def test_correlations_of_fewer_trials_are_decided_by_their_spread(results, tmp_path):
    """Nothing by two whole trials or by parts of many; by nine, what they agree on."""
    out_of_sample = results["method"] == "hh-out-of-sample"

    def claims(kept):
        return check_claims(ResultsFolder(results[kept | ~out_of_sample], tmp_path))

    words = "SWC-HH correlate with out-of-sample HH on binary"
    two, nine = (of(claims(results["seed"] < k), words) for k in (2, 9))
    part = of(claims(results["classifier"] != "NB"), words)
    assert [two["holds"], nine["holds"], part["holds"]] == ["", "yes", ""]
    assert nine["ours"].endswith("(9 trials)")
    assert two["ours"].endswith("(2 trials) (so far)")
    assert _is_sure([0.1, 0.12, 0.11])
    assert not _is_sure([0.3, -0.1, 0.2])
    assert not _is_sure([0.1, 0.1])


def test_results_like_the_paper_bear_out_what_its_tables_do(results, tmp_path):
    claims = check_claims(ResultsFolder.load(write(results, tmp_path)))
    appendix = claims[claims["source"] == "Appendix"]
    same = appendix["published"] == appendix["ours"]
    # Errors of our own trials decide what is within one of them, so those rows may differ.
    assert same[~appendix["claim"].str.contains("standard error|best")].all()
    assert of(claims, "letter: SBAW-10 is best")["holds"] == "yes"
    assert of(claims, "SWC-HH correlate with published HH on binary")["holds"] == "yes"


def test_a_claim_can_fail(results, tmp_path):
    worse = results.copy()
    swc = worse["method"] == "SWC"
    worse.loc[swc, "brier"] = np.random.default_rng(0).uniform(3, 9, swc.sum())
    claims = check_claims(ResultsFolder(worse, tmp_path))
    assert of(claims, "SWC out-performs SBA-10")["holds"] == "no"
    assert of(claims, "SWC out-performs SBA-10")["ours"] == "0 of 42"
    assert of(claims, "SWC-HH correlate with out-of-sample HH on multi")["holds"] == "no"


@pytest.mark.parametrize("claim", _TABLE_CLAIMS, ids=lambda claim: claim.text)
def test_rows_against_a_plain_loop(claim):
    """The best within one standard error, by hand, on the published tables."""
    table = published_table()
    agree = _rows_that_agree(table, claim)
    for (dataset, classifier), said in agree.items():
        cells = table[
            (table["dataset"] == dataset)
            & (table["classifier"] == classifier)
            & (table["metric"] == claim.metric)
        ].set_index("method")
        sign = -1 if claim.metric == "accuracy" else 1
        if "is best, except" in claim.text or "has the best" in claim.text:
            wanted = "SBAW-10" if "SBAW" in claim.text else "SWC-HH"
            best = (sign * cells["mean"]).idxmin()
            limit = sign * cells.loc[best, "mean"] + cells.loc[best, "standard_error"]
            assert said == (sign * cells.loc[wanted, "mean"] <= limit + 1e-12)
        elif "out-performs SBA-10" in claim.text:
            assert said == (cells.loc["SWC", "mean"] < cells.loc["SBA-10", "mean"])


def test_figures_5_and_6_are_read_from_their_facts(tmp_path):
    (tmp_path / "figures").mkdir()
    low = pd.DataFrame(
        {"seed": [0] * 5 + [1] * 5, "before": 0.9, "after": [0.5] * 5 + [0.95] * 4 + [0.5]}
    )
    low.to_csv(tmp_path / "figures" / "support-low.csv", index=False)
    turned = pd.DataFrame(
        {"seed": 0, "share": [0.0, 1.0], "peak": [950, 450], "median": [944, 440]}
    )
    turned.to_csv(tmp_path / "figures" / "rotation.csv", index=False)
    claims = check_claims(ResultsFolder.load(tmp_path))
    assert of(claims, "all five items of least support")["ours"] == "5 of 5"
    assert "6 of 10 items; all five in 1 of 2 trials" in of(claims, "over 2 trials")["ours"]
    assert of(claims, "peaks around 900")["holds"] == "yes"
    assert of(claims, "peaks around 300")["holds"] == "no"
