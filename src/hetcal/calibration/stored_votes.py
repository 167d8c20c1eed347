"""What a file keeps of a calibrator by votes, and whether what it holds fits together."""

from __future__ import annotations

from typing import Any

from hetcal._stored import expect
from hetcal._stored.checks import check_codes
from hetcal._typing import Matrix
from hetcal.calibration.chosen_columns import plain_columns
from hetcal.kernels._backend import native
from hetcal.kernels.votes import Voters


class StoredVotes:
    """Gives a calibrator by votes what the reader and writer of files ask for."""

    features: Any
    voters_: Voters
    classes_: Any
    similarity_: Any
    space_: Any
    scores_: Any
    groups_: Any
    heterogeneity_: Any
    n_features_in_: int
    out_of_sample_support: Any
    _check_parameters: Any
    _check_stored_support: Any
    _out_of_sample: Matrix | None
    _Z_grouped: Any

    def _to_stored(self, state: dict[str, Any]) -> dict[str, Any]:
        state = state | {"features": plain_columns(self.features)}
        # The features of grouped items go along only while something still needs them.
        if self._out_of_sample is None:
            return state
        if self._Z_grouped is not None:
            self.out_of_sample_support()
        support = getattr(self, "_out_of_sample_support", None)
        known = {} if support is None else {"_out_of_sample_support": support}
        return state | known | {"_Z_grouped": None}

    @staticmethod
    def _bytes_needed(state: dict[str, Any]) -> int:
        """Return what a first vote takes: labels as a matrix, leaf sums, shared leaves by class."""
        voters, similarity = state.get("voters_"), state.get("similarity_")
        if not isinstance(voters, Voters):
            return 0
        n, K = len(voters.codes), voters.n_classes
        forest = getattr(similarity, "forest_", None)
        if forest is None:
            return 8 * n * K
        sums = 0 if K <= 4 else 28 * min(n * forest.n_trees, forest.n_leaves * K)
        return 8 * K * (forest.n_trees + 1) + sums + (8 * n * K if native() is None else 0)

    def _check_restored(self) -> None:
        super()._check_restored()  # type: ignore[misc]
        self._check_parameters()
        n, K = len(self.voters_.codes), len(self.classes_)
        expect(self.voters_.n_classes == K, self, "has other voters")
        expect(self.similarity_.n_items_ == n, self, "has voters that are not its items")
        expect(self.scores_.proba.shape == (n, K), self, "has scores of other items")
        mass = getattr(self.similarity_, "mass_", None)
        expect(mass is None or mass.n_classes == K, self, "has leaf sums of other classes")
        if self.groups_ is not None:
            check_codes(self, self.groups_, n, n)
        times = getattr(self, "times_", None)
        expect(times is None or len(times) == n, self, "has times of other items")
        if self.heterogeneity_ is not None:
            same = self.heterogeneity_._items.P.shape[1] == K
            expect(same, self, "has a heterogeneity of other classes")
        self._check_restored_columns(n, K)
        predicted = self._out_of_sample
        same = predicted is None or predicted.shape == (n, K)
        expect(same, self, "has no out-of-sample predictions")
        self._check_stored_support(n)

    def _check_restored_columns(self, n_items: int, n_classes: int) -> None:
        encoder, added = self.space_.encoder, self.space_.n_proba
        wanted = 0 if self.space_.augment is None else n_classes
        expect(added == wanted, self, "adds other probabilities")
        width = len(encoder.feature_names_out_) + added
        expect(self.similarity_.n_columns_ == width, self, "compares other columns")
        chosen = self.space_.features_ is not None
        same = chosen or self.n_features_in_ == encoder.n_features_in_
        expect(same, self, "reads other columns")
        Z = self._Z_grouped
        expect(Z is None or Z.shape == (n_items, width), self, "has other items in groups")
