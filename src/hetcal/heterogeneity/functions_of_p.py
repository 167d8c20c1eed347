r"""A space of functions of p, rich enough for any global map :math:`h(p)`.

The null hypothesis is :math:`P(y \mid x) = h(p)` for *some* :math:`h`. What h leaves is estimated
by a projection: with an orthonormal basis Q of the space, the residuals are :math:`R = (I - QQ')Y`,
and a direction :math:`\varphi(x)` is compared with them after the same projection,
:math:`\tilde\varphi = (I - QQ')\varphi`. So neither the part of h that the space holds nor the
error of its fit can pass for something hidden.

The space holds constants, p and the whole matrix of log p (Dirichlet and matrix scaling, label
noise), hinges on every log-odds (smooth curves), an indicator of every value of p that is repeated
(decision trees, rounding), the predicted class and its probability, a logistic fit, and jumps that
are so large that BIC pays for them: steps for two classes, the leaves of a tree in p for more.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from hetcal._typing import Matrix, Rows, Vector
from hetcal.data import CalibrationSet

_LEAST_REPEATS = 5
_ITEMS_PER_FUNCTION = 10
_LARGEST_LEVERAGE, _LARGEST_OF_GROUPS = 0.8, 0.5
_SINGULAR = 1e-8  # of squared singular values
_MOST_NEWTON = 250  # coefficients up to which Newton's method is the faster one
_MANY_KNOTS = 64  # beyond these the cost grows, and leaves follow what jumps
# Items that only a step tells apart, and where it explains most of what is left near it: there no
# single item can be the reason.
_LEAST_STEP, _LEAST_SHARP_STEP = 4, 1
_NEAR_A_STEP = 20  # items on each side
_LEAST_LOG = np.log(1e-6)


@dataclass(frozen=True, eq=False)
class FunctionsOfP:
    """An orthonormal basis of functions of p on the items, in the inner product of the weights.

    Attributes
    ----------
    atom : ndarray of shape (n,)
        Number of the item's repeated value of p, -1 where the value is not repeated.
    atom_mass : ndarray of shape (a,)
        Weight of the items that share it.
    basis : ndarray of shape (n, q)
        The other functions, orthogonal to the indicators of repeated values.
    weight : ndarray of shape (n,)
        Mean 1.
    """

    atom: Rows
    atom_mass: Vector
    basis: Matrix
    weight: Vector

    @property
    def size(self) -> int:
        """Dimension of the space."""
        return len(self.atom_mass) + self.basis.shape[1]

    def leverage(self, groups: Rows | None) -> Vector:
        """Return how much of its own label, or of its group's, each item's fit is made of."""
        own = np.append(1 / self.atom_mass, 0.0)[self.atom] + (self.basis**2).sum(axis=1)
        if groups is None:
            return np.minimum(self.weight * own, _LARGEST_LEVERAGE)
        together = np.bincount(groups, self.weight * own)[groups]
        return np.minimum(together, _LARGEST_OF_GROUPS)

    @cached_property
    def _basis32(self) -> NDArray[np.float32]:
        """For products with directions in single precision."""
        return self.basis.astype(np.float32)

    def coefficients(self, values: NDArray, rows: slice = slice(None)) -> NDArray:
        """Return (the rows' part of) the coefficients of the projection, shape (a + 1 + q, M).

        The row after the atoms belongs to items without a repeated value and is zero.
        """
        single = values.dtype == np.float32
        weighted = values * self.weight[rows, None].astype(values.dtype)
        basis = self._basis32 if single else self.basis
        return np.vstack([self._atom_means(weighted, rows), basis[rows].T @ weighted])

    def _atom_means(self, weighted: Matrix, rows: slice) -> Matrix:
        n_atoms, atom = len(self.atom_mass), self.atom[rows]
        if not n_atoms:
            return np.zeros((1, weighted.shape[1]))
        inside = np.flatnonzero(atom >= 0)
        shares = (1 / self.atom_mass[atom[inside]]).astype(weighted.dtype)
        members = sparse.csr_array((shares, (atom[inside], inside)), (n_atoms + 1, len(atom)))
        return members @ weighted

    def fitted(self, coefficients: NDArray, rows: slice = slice(None)) -> NDArray:
        """Return the values of the projection."""
        n_atoms = len(self.atom_mass)
        basis = self._basis32 if coefficients.dtype == np.float32 else self.basis
        fit = basis[rows] @ coefficients[n_atoms + 1 :]
        return fit + coefficients[: n_atoms + 1][self.atom[rows]] if n_atoms else fit

    def residual(self, values: NDArray) -> NDArray:
        """Return what the space leaves of values on the items."""
        return values - self.fitted(self.coefficients(values))

    def squared_length(self, coefficients: Matrix) -> Vector:
        """Return the squared length of projections by their coefficients."""
        n_atoms = len(self.atom_mass)
        own = self.atom_mass @ coefficients[:n_atoms] ** 2
        return own + (coefficients[n_atoms + 1 :] ** 2).sum(axis=0)

    def share_left(self, values: Matrix) -> Vector:
        """Return which share of each column's square the space leaves."""
        square = self.weight @ values**2
        return (self.weight @ self.residual(values) ** 2) / np.maximum(square, 1e-300)

    def take(self, rows: Rows) -> FunctionsOfP:
        """Return the same functions on some of the items."""
        atom, weight = self.atom[rows], self.weight[rows]
        inside = atom >= 0
        mass = np.bincount(atom[inside], weight[inside], len(self.atom_mass)).astype(np.float64)
        number = np.append(np.where(mass > 0, np.cumsum(mass > 0) - 1, -1), -1)
        bare = FunctionsOfP(number[atom], mass[mass > 0], np.empty((len(weight), 0)), weight)
        return bare.joined_by(self.basis[rows])

    def joined_by(self, columns: Matrix) -> FunctionsOfP:
        """Return the space that also holds these functions."""
        both = np.hstack([self.basis, self.residual(columns)])
        return replace(self, basis=_orthonormal(both, self.weight))


@dataclass(frozen=True, eq=False)
class GlobalFit:
    """The best global map on the items, and what it leaves.

    Attributes
    ----------
    space : FunctionsOfP
    proba : ndarray of shape (n, K)
        :math:`h(p)`: the law from which a null draws labels.
    residuals : ndarray of shape (n, K)
        :math:`(I - QQ')Y`.
    leverage : ndarray of shape (n,)
    squares : ndarray of shape (n,)
        Squared residuals of the functions that no label has chosen, with the variance that their
        fit has taken given back (HC2): leverage does not know of a choice by labels.
    """

    space: FunctionsOfP
    proba: Matrix
    residuals: Matrix
    leverage: Vector
    squares: Vector

    def take(self, rows: Rows, groups: Rows | None) -> GlobalFit:
        """Return what is left of some items after functions of p on them alone."""
        space = self.space.take(rows)
        residuals = space.residual(self.residuals[rows])
        leverage = space.leverage(groups)
        return GlobalFit(space, self.proba[rows], residuals, leverage, self.squares[rows])


def log_odds(log_proba: Matrix) -> Matrix:
    """Return log-odds against class 0 for two classes, else centred log-probabilities but one."""
    L = np.maximum(log_proba, _LEAST_LOG)
    if L.shape[1] == 2:
        return L[:, 1:] - L[:, :1]
    return (L - L.mean(axis=1, keepdims=True))[:, :-1]


def label_free_spaces(calibration: CalibrationSet) -> tuple[FunctionsOfP, FunctionsOfP]:
    """Return two spaces of functions of p: a constant and the log-odds, and many more."""
    weight = calibration.weights / calibration.weights.mean()
    P, odds = calibration.proba, log_odds(calibration.scores.log_proba)
    atom, mass = _repeated_values(P, weight, calibration.groups)
    smooth = _smooth_columns(P, odds, float(mass.sum() / weight.sum()), _n_units(calibration))
    bare = np.empty((len(P), 0))
    few = FunctionsOfP(np.full(len(P), -1), np.empty(0), bare, weight)
    many = FunctionsOfP(atom, mass, bare, weight)
    return few.joined_by(smooth[:, : 1 + odds.shape[1]]), many.joined_by(smooth)


def fit_global(calibration: CalibrationSet) -> GlobalFit:
    """Fit the space to the labels; labels choose leaves and the logistic fit, nothing else."""
    weight = calibration.weights / calibration.weights.mean()
    P, Y = calibration.proba, calibration.onehot
    odds = log_odds(calibration.scores.log_proba)
    groups, n_units = calibration.groups, _n_units(calibration)
    atom, mass = _repeated_values(P, weight, groups)
    smooth = _smooth_columns(P, odds, float(mass.sum() / weight.sum()), n_units)
    logistic = _logistic_fit(smooth[:, 1:], calibration.codes, Y, weight * n_units / len(P))
    free = FunctionsOfP(atom, mass, np.empty((len(P), 0)), weight).joined_by(smooth)
    squares = _squares_given_back(free, Y, groups)
    space = free.joined_by(logistic[:, 1:])
    residuals = space.residual(Y)
    if P.shape[1] == 2:
        jumps = _steps(space, odds[:, 0], residuals[:, 1], logistic.prod(axis=1), n_units)
    else:
        jumps = _leaves(np.hstack([odds, P]), residuals, weight, n_units)
    if jumps.shape[1]:
        space = space.joined_by(jumps)
        residuals = space.residual(Y)
    law = _law(logistic, Y - residuals, space, n_units)
    return GlobalFit(space, law, residuals, space.leverage(groups), squares)


def _squares_given_back(space: FunctionsOfP, Y: Matrix, groups: Rows | None) -> Vector:
    """Return squared residuals with the variance that the fit has taken given back (HC2)."""
    R = space.residual(Y)
    leverage = space.leverage(None)
    if groups is not None:
        taken = leverage * max(_taken_by_groups(space, R, groups), 1.0)
        leverage = np.minimum(taken, _LARGEST_OF_GROUPS)
    return (R**2).sum(axis=1) / (1 - leverage)


def _taken_by_groups(space: FunctionsOfP, R: Matrix, groups: Rows) -> float:
    """Return how many times more variance the functions take than from independent items.

    Residuals of a group that point the same way along a function add up in its coefficient.
    """
    together, alone = 0.0, 1e-300
    own = np.append(space.atom_mass**-0.5, 0.0)[space.atom]
    cells = groups * (len(space.atom_mass) + 1) + space.atom + 1
    functions = [(column, groups) for column in space.basis.T]
    for values, units in [*functions, (own, cells)]:
        for terms in space.weight * values * R.T:
            together += float((np.bincount(units, terms) ** 2).sum())
            alone += float((terms**2).sum())
    return together / alone


def _n_units(calibration: CalibrationSet) -> int:
    """Return how many items, or groups of items, speak independently."""
    groups = calibration.groups
    return calibration.n_items if groups is None else len(np.unique(groups))


def _law(logistic: Matrix, fitted: Matrix, space: FunctionsOfP, n_units: int) -> Matrix:
    """Return the logistic fit, moved to the projection as far as that exceeds its own noise."""
    w = space.weight[:, None]
    move = fitted - logistic
    noise = space.size * (w * logistic * (1 - logistic)).sum() / n_units
    kept = max(0.0, 1 - noise / ((w * move**2).sum() + 1e-12))
    H = np.clip(logistic + kept * move, 0.5 / n_units, 1.0)
    return H / H.sum(axis=1, keepdims=True)


def _repeated_values(P: Matrix, weight: Vector, groups: Rows | None) -> tuple[Rows, Vector]:
    """Find the values of p that are frequent enough for an indicator of their own."""
    key = P.round(9) @ np.sqrt(np.arange(2.0, P.shape[1] + 2))  # one number per row: fast to sort
    _, place, counts = np.unique(key.round(9), return_inverse=True, return_counts=True)
    n_units = len(P)
    if groups is not None:  # a value that only one group has is no repeated one
        n_units = int(groups.max()) + 1
        counts = np.bincount(np.unique(place * n_units + groups) // n_units)
    frequent = np.flatnonzero(counts >= _LEAST_REPEATS)
    most = max(n_units // (_ITEMS_PER_FUNCTION - 2), 4)
    frequent = frequent[np.argsort(-counts[frequent], kind="stable")[:most]]
    number = np.full(len(counts), -1, dtype=np.int64)
    number[frequent] = np.arange(len(frequent))
    atom = number[place]
    mass = np.bincount(atom[atom >= 0], weight[atom >= 0], minlength=len(frequent))
    return atom, mass.astype(np.float64)


def _smooth_columns(P: Matrix, odds: Matrix, share: float, n_units: int) -> Matrix:
    """Return a constant, p, log-odds and, unless nearly all p are repeated, curves."""
    K = P.shape[1]
    columns = [np.ones((len(P), 1)), odds, P[:, 1:]]
    room = n_units / _ITEMS_PER_FUNCTION - 2 * K
    if K > 2 and room > 2 * K:
        top = P.argmax(axis=1)[:, None] == np.arange(K)
        columns += [top[:, 1:] * 1.0, top * P.max(axis=1)[:, None]]
        room -= 2 * K
    if share < 0.9:
        n_knots = int(np.clip(room / odds.shape[1], 0, _most_knots(n_units, K)))
        columns += [_hinges(column, n_knots) for column in odds.T]
        if K > 2:
            columns.append(_hinges(P.max(axis=1), n_knots))
    return np.hstack(columns)


def _most_knots(n_units: int, K: int) -> int:
    """Return how finely a map is followed; of two classes, so that jumps leave little to find."""
    if K > 2:
        return max(5, round(n_units**0.2))
    return max(9, round(n_units ** (1 / 3)), min(round(0.6 * n_units**0.5), _MANY_KNOTS))


def _hinges(column: Vector, n_knots: int) -> Matrix:
    at = np.linspace(0, 1, n_knots + 2)[1:-1]
    knots = np.unique(np.quantile(column, at, method="inverted_cdf"))
    return np.maximum(column[:, None] - knots, 0.0)


def _logistic_fit(columns: Matrix, codes: Rows, Y: Matrix, weight: Vector) -> Matrix:
    """Return a penalised logistic regression on the smooth functions, never quite 0 or 1."""
    n, K = Y.shape
    scaled = (columns - columns.mean(axis=0)) / (columns.std(axis=0) + 1e-9)
    H = np.tile(1e-3 * (weight @ Y + 0.5) / (weight.sum() + 0.5 * K), (n, 1))
    seen = np.unique(codes)
    newton = len(seen) * columns.shape[1] <= _MOST_NEWTON
    model = sklearn.linear_model.LogisticRegression(
        # Many coefficients per class on few items would leave no residuals to look at.
        C=1.0 if K == 2 else float(np.clip(weight.sum() / (100 * K**2), 0.01, 1.0)),
        solver="newton-cholesky" if newton else "lbfgs",
        max_iter=100,
        tol=1e-3,
    )
    if len(seen) > 1:
        with warnings.catch_warnings():
            # It is one more function of p, good or not; a constant p may stop the search.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(scaled, codes, sample_weight=weight)
        H[:, seen] += (1 - 1e-3) * model.predict_proba(scaled)
    return H / H.sum(axis=1, keepdims=True)


def _most_jumps(n_units: int) -> int:
    return int(np.clip(n_units // 40, 2, 32))


def _price(K: int) -> float:
    """Return what a jump must explain, in variances of a residual: about as much as BIC asks."""
    return (9 + 2 * K) / (K - 1)


def _steps(
    space: FunctionsOfP, column: Vector, residual: Vector, variance: Vector, n_units: int
) -> Matrix:
    """Return indicators of p above thresholds: the one that explains most, while one pays.

    What a step at any threshold explains beside the functions that there are is a matter of
    running sums over the sorted items.
    """
    rows = np.flatnonzero(space.atom < 0)
    rows = rows[np.argsort(column[rows], kind="stable")]
    x, w, r, basis = column[rows], space.weight[rows], residual[rows], space.basis[rows]
    first = np.flatnonzero(np.diff(x) > 0) + 1  # above each threshold

    def above(values: Vector) -> Vector:
        return np.cumsum(values[::-1])[::-1][first]

    per_unit = len(column) / n_units * (w @ w) / max(w.sum(), 1e-300)  # unequal weights: fewer
    expected, least = variance[rows][first], variance.mean()
    left = above(w) - sum(above(w * function) ** 2 for function in basis.T)
    near = max(round(_NEAR_A_STEP * per_unit), 1)
    n_near = _sums_around(w, first, near)
    found: list[float] = []
    while len(first) and len(found) < _most_jumps(n_units):
        gain = above(w * r) ** 2 / np.maximum(left, 1e-12)
        unexplained = _sums_around(w * r**2, first, near) - gain
        seen = left > per_unit * np.where(gain > unexplained, _LEAST_SHARP_STEP, _LEAST_STEP)
        # Beside a jump the smooth fit expects more variance than there is.
        spread = np.maximum(np.minimum(expected, unexplained / np.maximum(n_near, 1e-300)), least)
        price = _price(2) * per_unit * spread
        gain *= seen
        best = int((gain / price).argmax())
        if gain[best] <= price[best]:
            break
        found.append(x[first[best]])
        step = (x >= found[-1]) * 1.0
        for _ in range(2):  # once more for what rounding leaves
            step -= basis @ (basis.T @ (w * step))
        step /= np.sqrt(w @ step**2)
        basis = np.column_stack([basis, step])
        left = left - above(w * step) ** 2
        r = r - step * (step @ (w * r))
    return (column[:, None] >= np.array(found)).astype(np.float64)


def _sums_around(values: Vector, places: Rows, near: int) -> Vector:
    """Return the sums of so many values on each side of places."""
    sums = np.append(0.0, np.cumsum(values))
    return sums[np.minimum(places + near, len(values))] - sums[np.maximum(places - near, 0)]


def _leaves(coordinates: Matrix, residuals: Matrix, weight: Vector, n_units: int) -> Matrix:
    """Return indicators of the leaves of a tree in p, pruned by the price of a jump."""
    n, K = residuals.shape
    tree = sklearn.tree.DecisionTreeRegressor(
        max_leaf_nodes=_most_jumps(n_units),
        min_samples_leaf=max(8 * n // n_units, n // 100),
        ccp_alpha=_price(K) * residuals.var(axis=0).mean() / n_units,
        random_state=0,
    )
    leaf = tree.fit(coordinates, residuals, sample_weight=weight).apply(coordinates)
    return (leaf[:, None] == np.unique(leaf)[1:]) * 1.0


def _orthonormal(columns: Matrix, weight: Vector) -> Matrix:
    """Return an orthonormal basis of the columns' span, in the inner product of the weights."""
    scaled = columns * np.sqrt(weight)[:, None]
    norm = np.linalg.norm(scaled, axis=0)
    scaled = scaled[:, norm > 1e-9 * np.sqrt(len(columns))]
    scaled = scaled / np.linalg.norm(scaled, axis=0)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    kept = values > _SINGULAR * max(values.max(initial=0.0), 1e-300)
    basis = scaled @ (vectors[:, kept] / np.sqrt(values[kept]))
    if basis.shape[1]:  # a second pass repairs what the squared condition number has cost
        basis = np.linalg.solve(np.linalg.cholesky(basis.T @ basis), basis.T).T
    return basis / np.sqrt(np.maximum(weight, 1e-300))[:, None]
