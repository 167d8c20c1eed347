"""The same question gets the same number from compare, diagnose and the command fit."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from hetcal import compare, diagnose
from hetcal.cli import main
from hetcal.datasets import make_hidden_heterogeneity

SEED = 3

pytestmark = pytest.mark.usefixtures("with_small_hybrids")


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(220, heterogeneity=0.9, miscalibration=0.5, random_state=0)


@pytest.fixture(scope="module")
def report(data):
    return diagnose(data.X, data.y, y_proba=data.y_proba, random_state=SEED)


@pytest.fixture(scope="module")
def compared(data, report):
    shown = [row.method for row in report.comparison if " on " not in row.method]
    return compare(data.X, data.y, y_proba=data.y_proba, methods=shown, random_state=SEED)


def test_compare_and_the_report_agree_on_every_method(report, compared):
    frame = compared.frame().set_index(["method", "metric"])
    assert len(report.comparison) >= 10
    for row in report.comparison:
        for metric, score in row.scores.items():
            same = frame.loc[(row.method, metric)]
            assert score.value == pytest.approx(same["value"], abs=1e-12), (row.method, metric)
            if metric == "ece":  # it is biased, which an error would not tell
                assert score.standard_error is None
            else:
                for name in ("standard_error", "low", "high"):
                    assert getattr(score, name) == pytest.approx(same[name])
        brier, same = row.scores["brier"], frame.loc[(row.method, "brier")]
        assert brier.difference_se == pytest.approx(same["difference_se"])


@pytest.mark.parametrize("method", ["hybrid", "swc", "global", "isotonic"])
def test_fit_prints_what_the_report_states(data, report, compared, tmp_path, capsys, method):
    table = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(data.X.shape[1])])
    table = table.assign(p_0=data.y_proba[:, 0], p_1=data.y_proba[:, 1], outcome=data.y)
    table.to_csv(tmp_path / "table.csv", index=False)
    roles = ["--label", "outcome", "--proba", "p_*", "--seed", str(SEED), "--method", method]
    files = [str(tmp_path / "table.csv"), "-o", str(tmp_path / "m.hetcal")]
    with pytest.raises(SystemExit):
        main(["fit", *files, *roles, "--json"])
    found = json.loads(capsys.readouterr().out)
    scores = {row.method: row.scores["brier"].value for row in report.comparison}
    assert found["brier_before"] == pytest.approx(scores["uncalibrated"])
    assert found["brier_after"] == pytest.approx(scores[method])
    gain, error = compared.difference("uncalibrated", method)
    assert found["brier_before"] - found["brier_after"] == pytest.approx(gain)
    assert (found["gain_high"] - found["gain_low"]) / (2 * 1.96) == pytest.approx(error, rel=0.02)
