"""What may stand in a file: classes that declare themselves, and parts under today's names."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import hetcal
from hetcal._exceptions import FileFormatError
from hetcal._stored import expect, restored, stored
from hetcal._stored.fields import number
from hetcal._stored.reader import declared
from hetcal.calibration.chosen_columns import ChosenColumns
from hetcal.kernels.forest import Forest, LeafMass
from hetcal.persistence import registry
from hetcal.persistence.budget import Budget
from hetcal.persistence.tree import Decoder, Encoder

#: Whoever adds a class here has asked what a hostile file could do with it.
IN_FILES = """
AdditiveTrees AtomCalibration AugmentedSpace BetaCalibration BiasCorrectedTemperatureScaling
BoostedTrees BoostingFamily CalibratorFamily ChosenColumns CombinedSimilarity CosineSimilarity
EnsembleTemperatureScaling EuclideanSimilarity FeatureEncoder FeaturelessHybridCalibrator
FeaturelessSimilarityCalibrator Forest ForestProximity ForestVoteFamily GlobalBlend GlobalFamily
HiddenHeterogeneity HistogramBinning HybridCalibrator IsolationProximity IsolationScore
IsotonicCalibration KernelFamily LabelEvidence LabelPreserving LabelSums LeafMass LeafSums
LocallyCalibratedClassifier LogSpace MatrixScaling MeasuredItems NearestNeighbors NearestScore
NeighbourFamily NullMeans PlattScaling PrecomputedProba PrecomputedSimilarity ProximityFamily
RBFSimilarity Recalibration Reference Scores SimilarityCalibrator SplineCalibration StandardScaler
Stream SupportMonitor TemperatureScaling Uncalibrated VectorScaling VennAbersCalibration Voters
WideBoostingFamily ZeroWeightExperts
"""


def test_no_other_class_may_stand_in_a_file():
    assert sorted([*registry._BY_NAME, *registry._of_sklearn()]) == sorted(IN_FILES.split())


def test_a_subclass_must_declare_itself(data, tmp_path):
    class Mine(hetcal.SimilarityCalibrator):
        pass

    mine = data.fitted(Mine(hetcal.similarity.ForestProximity(3)))
    with pytest.raises(TypeError, match="Mine, which has no place in a file"):
        hetcal.save(mine, tmp_path / "c.hetcal")


@stored({"low": number(0, 10)}, may_lack=("low",), derived={"width": None}, inline=True)
class _Base:
    def _restore(self):
        self.width = self.high - self.low


@stored({"high": number(0, 10)}, inline=True)
class _Range(_Base):
    def _check_restored(self):
        expect(self.width >= 0, self, "is upside down")


def test_a_subclass_adds_to_what_its_base_declares():
    found = restored(_Range, low=1.0, high=3.0)
    assert found.width == 2.0
    assert declared(_Range).pack(found) == {"low": 1.0, "high": 3.0}
    for state, said in (
        ({"low": 3.0, "high": 1.0}, "is upside down"),
        ({"low": -1.0, "high": 3.0}, "wrong low"),
        ({"low": 1.0}, "lacks"),
        ({"low": 1.0, "high": 3.0, "width": 9.0}, "has no part 'width'"),
    ):
        with pytest.raises(FileFormatError, match=said):
            restored(_Range, **state)


def test_two_classes_cannot_have_one_name():
    forest = type("Forest", (), {"__module__": "elsewhere"})
    with pytest.raises(TypeError, match="Two classes named Forest"):
        stored()(forest)
    assert registry.spec_named("Forest").cls is Forest


def test_a_part_has_one_name(calibrators):
    encoder = Encoder()
    tree = encoder.encode(calibrators["hybrid"], "hybrid")
    tree["state"]["bystanders_"] = tree["state"]["auxiliary_families_"]
    with pytest.raises(FileFormatError, match="a part under two names"):
        Decoder(encoder.arrays, Budget()).decode(tree)
    del tree["state"]["auxiliary_families_"]
    assert "auxiliary_families_" in vars(Decoder(encoder.arrays, Budget()).decode(tree))


def _leaf_mass(**parts):
    known = {"n_classes": 2, "values": np.ones((3, 2)), "indptr": None, "classes": None}
    return restored(LeafMass, **(known | parts))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"values": np.ones((3, 3))}, "values must have shape"),
        ({"values": np.ones((2, 3)).T}, "must lie row by row"),
        ({"values": -np.ones((3, 2))}, "wrong values"),
        ({"classes": np.zeros(3, np.int32)}, "must come together"),
        ({"indptr": np.array([0, 3])}, "must come together"),
        ({"indptr": np.array([0, 3]), "classes": np.zeros(3, np.int32)}, "values must have shape"),
        (
            {
                "values": np.ones(3),
                "indptr": np.array([0, 3]),
                "classes": np.full(3, 2, np.int32),
            },
            "classes must lie in",
        ),
    ],
)
def test_leaf_sums_that_no_fit_could_have_made(parts, said):
    assert _leaf_mass().n_leaves == 3
    with pytest.raises(ValueError, match=said):
        _leaf_mass(**parts)


def test_a_forest_has_trees_and_knows_who_grew_each(calibrators):
    state = declared(Forest).pack(calibrators["swc"].similarity_.forest_)
    assert "leaf_index" not in state
    for parts, said in (
        ({"in_bag": state["in_bag"][:-1]}, "a row per tree"),
        (
            {name: state[name][:0] for name in state if name not in ("in_bag", "n_features")}
            | {"tree_offset": np.zeros(1, np.int64), "in_bag": None},
            "1 tree or more",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            restored(Forest, **(state | parts))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"n_samples_seen_": np.array(["9"])}, "wrong n_samples_seen_"),
        ({"n_samples_seen_": np.array([9, 9, 9])}, "parts of other columns"),
        ({"n_samples_seen_": np.array([9, -9])}, "wrong n_samples_seen_"),
        ({"mean_": np.zeros(3)}, "parts of other columns"),
        ({"scale_": np.zeros(2)}, "wrong scale_"),
        ({"with_mean": 1}, "wrong with_mean"),
        ({"copy": False}, "has no part 'copy'"),
    ],
)
def test_a_scale_that_no_fit_could_have_made(parts, said):
    spec = registry.spec_named("StandardScaler")
    for seen in (9, np.array([9, 8])):
        state = spec.pack(StandardScaler().fit(np.arange(6.0).reshape(3, 2)))
        assert spec.unpack(state | {"n_samples_seen_": seen}).n_features_in_ == 2
    with pytest.raises(FileFormatError, match=said):
        spec.unpack(state | parts)


@pytest.mark.parametrize("columns", [[], ["a", "a"], [True], [1.5], [["a"]], "a", None])
def test_choices_of_columns_that_nobody_could_have_made(columns):
    assert restored(ChosenColumns, columns=["a", 1]).columns == ["a", 1]
    with pytest.raises(FileFormatError, match="wrong columns"):
        restored(ChosenColumns, columns=columns)


@pytest.mark.parametrize(
    ("name", "part", "value", "said"),
    [
        ("ets", "weights_", np.full(3, 1e-320), "weights that do not sum to one"),
        ("global", "weights_", None, "weights that do not sum to one"),
        ("atoms", "mass_", 0.0, "wrong mass_"),
        ("venn-abers", "lower_", None, "intervals upside down"),
    ],
)
def test_maps_that_no_fit_could_have_made(name, part, value, said):
    rng = np.random.default_rng(0)
    P = rng.choice([0.2, 0.5, 0.8], size=200)
    y = (rng.random(200) < P).astype(int)
    fitted = hetcal.get_calibrator(name).fit(None, y, y_proba=P)
    state = declared(type(fitted)).pack(fitted)
    restored(type(fitted), **state)
    if name == "global":
        value = fitted.weights_ * 1e-300
    if name == "venn-abers":
        value = [np.ones_like(low) for low in fitted.lower_]
    with pytest.raises(FileFormatError, match=said):
        restored(type(fitted), **(state | {part: value}))
