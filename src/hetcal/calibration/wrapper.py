"""Any classifier with calibrated probabilities, as one scikit-learn classifier."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import (
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from hetcal._compat import side_by_side
from hetcal._exceptions import (
    ColumnOrderWarning,
    TrainingSetWarning,
)
from hetcal._stored import expect, stored
from hetcal._stored.fields import (
    MOST_FEATURES,
    MOST_ITEMS,
    column_names,
    either,
    instance,
    integers,
    labels,
    numbers,
    one_of,
    optional,
    setting,
    whole,
)
from hetcal._typing import Matrix
from hetcal._validation import (
    check_groups,
    check_labels,
    check_same_order,
    check_same_rows,
    check_sample_weight,
    check_two_classes,
)
from hetcal._validation.containers import as_array, as_frame, take_rows
from hetcal.calibration.base import BaseCalibrator
from hetcal.calibration.chosen_columns import (
    ChosenColumns,
    as_transformer,
    chosen_list,
    is_transformer,
    plain_columns,
)
from hetcal.calibration.crossfit import cross_fit, output_kind, output_of, weight_parameter
from hetcal.calibration.delegated_methods import DelegatedMethods
from hetcal.calibration.fitting import checked_proba
from hetcal.calibration.precomputed import PrecomputedProba
from hetcal.calibration.registry import get_calibrator, preserving
from hetcal.calibration.wrapper_checks import (
    as_input,
    refuse_regressor,
    refuse_texts,
    refuse_unknown_labels,
    refuse_what_is_no_estimator,
    warn_of_refit,
    with_hints,
)

_DEFAULT_CALIBRATOR = "hybrid"


@stored(
    {
        "n_features_in_": whole(1, MOST_FEATURES),
        "estimator": either(setting, instance(PrecomputedProba)),
        "calibrator": either(setting, instance(BaseCalibrator)),
        "features": optional(chosen_list),
        "features_": optional(instance(ChosenColumns)),
        "classes_": labels,
        "estimator_": instance(PrecomputedProba, "classes_"),
        "calibrator_": instance(BaseCalibrator, "classes_", "input_kind_"),
        "calibration_rows_": integers(None, low=0, high=MOST_ITEMS),
        "out_of_fold_output_": numbers(None, None),
        "output_kind_": one_of("y_proba", "logits"),
        "feature_names_in_": column_names,
    },
    may_lack=("feature_names_in_",),
)
class LocallyCalibratedClassifier(
    DelegatedMethods, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    """A classifier whose probabilities are calibrated, item by item, from labelled data.

    For each new item it returns q, the estimate of P(y | x) that ``calibrator`` makes of what
    ``estimator`` says about the item and, for similarity calibrators, of the observed labels of
    similar calibration items.

    - A fitted model, frozen (``FrozenEstimator(model)``), stays as it is: every row of ``fit``
      calibrates. Those rows must not be the ones that the model was trained on.
    - Any other model is cross-fitted: each row gets the probabilities of a model that was trained
      on other folds, the calibrator learns from those, and the model that predicts is refitted on
      all rows. A fitted model that is not frozen is trained anew too, with a
      ``RefitWarning``.
    - :class:`~hetcal.calibration.precomputed.PrecomputedProba` reads the probabilities from columns
      of ``X``; all other columns are the features.

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier with ``predict_proba``, frozen where it shall stay as it is. A classifier
        with ``decision_function`` only is used too: its values are taken as logits (of two classes:
        as the log-odds of the second one). None is a logistic regression.
    calibrator : calibrator or str, optional
        How to calibrate: a calibrator (it is cloned) or a name that
        :func:`~hetcal.calibration.registry.get_calibrator` knows. None is the hybrid
        of global and local methods (``"hybrid"``). Parameters of an instance can be searched, for
        example ``calibrator__caution``.
    features : list of columns or transformer, optional
        What items are compared by. A list (``["age", "income"]``) names columns of ``X``, or
        numbers them from 0 (a number that is also the name of a column is that name); all others,
        such as ids and dates, are left to ``estimator``. Of a transformer, ``transform(X)``
        replaces ``X`` for the calibrator; an unfitted one is fitted on the calibration rows.
        ``FrozenEstimator(pipe[:-1])`` reuses the fitted preprocessing of a pipeline; write it in
        this order, since ``FrozenEstimator(pipe)[:-1]`` is not frozen and would be fitted anew.
        None: ``X`` itself, encoded by the calibrator (categories become 0/1 columns). Global
        calibrators look at the probabilities alone and need no features.
    cv : int, splitter or iterable, optional
        How an unfitted model is cross-fitted. None: five folds, shuffled and stratified by class;
        with ``groups`` every group stays in one fold. More folds than a class has items are an
        error where they were asked for; under None some fold then lacks the class. Rows that a
        splitter never tests do not calibrate. Ignored for frozen models and precomputed
        probabilities.
    preserve : {None, "label"}, optional
        "label": calibration changes no predicted class;
        ``calibrator_.price_`` says what that costs in Brier score.
    n_jobs : int, optional
        Folds fitted at the same time.
    random_state : int, RandomState or None, default=0
        Of the shuffling of the folds, and of the calibrator where it has no ``random_state`` of its
        own. With a number two fits are the same (as far as the classifier's own are); None draws
        other folds each time.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns of :meth:`predict_proba`: those of the frozen
        model, also where one of them is missing from ``y``.
    estimator_ : classifier
        The model that predicts.
    calibrator_ : calibrator
        The fitted calibrator.
    features_ : transformer or None
        The fitted transformer.
    out_of_fold_output_ : ndarray of shape (m, K)
        What the calibrator was fitted on: probabilities, or logits.
    calibration_rows_ : ndarray of shape (m,)
        The rows of ``X`` that these belong to.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of str
        Their names, where ``X`` has names.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_moons(600, noise=0.3, random_state=0)
    >>> model = GaussianNB().fit(X[:200], y[:200])
    >>> clf = LocallyCalibratedClassifier(FrozenEstimator(model), "temperature")
    >>> clf.fit(X[200:], y[200:]).predict_proba(X[:2]).shape
    (2, 2)

    Not fitted yet, and several rows of one patient kept together:

    >>> patient = [i // 3 for i in range(600)]
    >>> clf = LocallyCalibratedClassifier(GaussianNB(), "temperature")
    >>> clf.fit(X, y, groups=patient).predict(X[:3])
    array([1, 0, 0])
    """

    @with_hints
    def __init__(
        self,
        estimator: Any = None,
        calibrator: Any = None,
        *,
        features: Any = None,
        cv: Any = None,
        preserve: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        self.estimator = estimator
        self.calibrator = calibrator
        self.features = features
        self.cv = cv
        self.preserve = preserve
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Calibrate the classifier, after training it where it is not fitted yet.

        Parameters
        ----------
        X : table, array or sparse matrix of shape (n, n_features)
            Whatever ``estimator`` takes.
        y : array-like of shape (n,)
            Observed labels.
        sample_weight : array-like of shape (n,), optional
            Weights, for the classifier (where it takes them) and the calibrator.
        groups : array-like of shape (n,) or (n, n_columns), optional
            Rows with the same value (one patient, one customer) stay together in every split.
        **fit_params
            Passed on to the classifier's ``fit``; of what has one entry per row, each fold gets its
            rows. With scikit-learn's metadata routing enabled, the classifier gets what it requests
            (``set_fit_request``), weights included; the calibrator always gets the weights.

        Returns
        -------
        self
        """
        refuse_what_is_no_estimator(self._make_estimator(), self.calibrator)
        X = as_input(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        check_same_order(X=X, y=y, sample_weight=sample_weight, groups=groups)
        y, seen, weight = self._checked_labels(X, y, sample_weight)
        group_codes = check_groups(groups, y.shape[0])
        self._fit_estimator(X, y, seen, weight, group_codes, fit_params)
        self._fit_calibrator(X, y, weight, group_codes)
        return self

    def predict_proba(self, X: Any, return_support: bool = False) -> Any:
        """Return calibrated probabilities, one column per class of ``classes_``.

        Parameters
        ----------
        X : table, array or sparse matrix of shape (n, n_features)
            New items, with the same columns as at fit.
        return_support : bool, default=False
            Whether to return beside them how much calibration data stood behind each item
            (similarity calibrators only).

        Returns
        -------
        Q : ndarray of shape (n, K)
        support : ndarray of shape (n,)
            Only with ``return_support=True``.
        """
        features, output = self._for_calibrator(X)
        if not return_support:
            return self._checked(self.calibrator_.predict_proba(features, **output), output)
        if not _uses_features(self.calibrator_):
            raise ValueError(
                f"{type(self.calibrator_).__name__} looks at the probabilities alone, so its items "
                "have no support. Use a similarity calibrator, e.g. calibrator='swc'."
            )
        Q, support = self.calibrator_.predict_proba(features, return_support=True, **output)
        return self._checked(Q, output), support

    def predict(self, X: Any) -> NDArray:
        """Return the class that is most probable after calibration."""
        Q = self.predict_proba(X)
        return self.classes_[Q.argmax(axis=1)]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who gets which metadata: this estimator itself and the classifier's ``fit``."""
        fits = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self._make_estimator(), method_mapping=fits)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._make_estimator()).input_tags
        readers = [inner]
        if is_transformer(self.features):
            readers.append(get_tags(self.features).input_tags)
        elif (calibrator := self._calibrator_of_features()) is not None:
            readers.append(get_tags(calibrator).input_tags)
        tags.input_tags.sparse = all(reader.sparse for reader in readers)
        tags.input_tags.allow_nan = all(reader.allow_nan for reader in readers)
        tags.input_tags.string = inner.string
        return tags

    def _sk_visual_block_(self) -> Any:
        """Draw classifier and calibrator, the fitted ones where there are; a name hides neither."""
        if hasattr(self, "calibrator_"):
            parts = {"estimator": self.estimator_, "calibrator": self.calibrator_}
            features = self.features_
        else:
            parts = {"estimator": self._make_estimator(), "calibrator": self._make_calibrator()}
            features = self.features if is_transformer(self.features) else None
        return side_by_side(parts if features is None else parts | {"features": features})

    def _make_estimator(self) -> Any:
        if self.estimator is None:
            return sklearn.linear_model.LogisticRegression(max_iter=1000)
        return self.estimator

    def _calibrator(self) -> Any:
        return getattr(self, "calibrator_", None) or self._make_calibrator()

    def _make_calibrator(self) -> Any:
        calibrator = _DEFAULT_CALIBRATOR if self.calibrator is None else self.calibrator
        made = get_calibrator(calibrator) if isinstance(calibrator, str) else clone(calibrator)
        return preserving(made, self.preserve)

    def _calibrator_of_features(self) -> Any:
        """Return the calibrator if it looks at features, None if it does not (or is unknown)."""
        try:
            calibrator = self._make_calibrator()
        except (TypeError, ValueError):  # fit says what is wrong; tags must be there before
            return None
        return calibrator if _uses_features(calibrator) else None

    def _checked_labels(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[NDArray, NDArray, Matrix | None]:
        """Return labels, the sorted classes among them, and weights."""
        if y is None:
            raise ValueError(
                "LocallyCalibratedClassifier requires y to be passed, but the target y is None. "
                "Pass the observed labels."
            )
        codes, seen = check_labels(column_or_1d(as_array(y, "y"), warn=True))
        n_rows = check_same_rows(X=X, y=y)
        weight = None if sample_weight is None else check_sample_weight(sample_weight, n_rows)
        check_two_classes(codes, seen, weight)
        return seen[codes], seen, weight

    def _fit_estimator(
        self,
        X: Any,
        y: NDArray,
        seen: NDArray,
        weight: Matrix | None,
        groups: NDArray | None,
        fit_params: dict[str, Any],
    ) -> None:
        """Set the model that predicts, the classes, and out-of-sample outputs for calibration."""
        if isinstance(self.cv, str) and self.cv == "prefit":
            raise ValueError(
                "LocallyCalibratedClassifier got cv='prefit'. Freeze the fitted classifier "
                "instead: LocallyCalibratedClassifier(FrozenEstimator(model)), from sklearn.frozen."
            )
        given = self._make_estimator()
        refuse_regressor(given)
        estimator = clone(given)
        if isinstance(estimator, FrozenEstimator | PrecomputedProba):
            if fit_params:
                raise TypeError(
                    f"LocallyCalibratedClassifier.fit got {', '.join(map(repr, fit_params))} for a "
                    "classifier that is not fitted here (frozen or precomputed). Leave it out, or "
                    "pass an unfitted classifier."
                )
            self.estimator_ = estimator.fit(X, y)
            self.classes_ = np.asarray(getattr(self.estimator_, "classes_", seen))
            refuse_unknown_labels(seen, self.classes_)
            self.calibration_rows_ = np.arange(y.shape[0])
            self.out_of_fold_output_ = output_of(self.estimator_, X, self.classes_)
            return
        warn_of_refit(given, estimator, "model")
        self.classes_ = seen
        parameters = self._estimator_parameters(estimator, weight, fit_params)
        self.out_of_fold_output_, self.calibration_rows_ = cross_fit(
            estimator,
            X,
            y,
            seen,
            parameters=parameters,
            weight=weight,
            groups=groups,
            cv=self.cv,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        self.estimator_ = estimator.fit(X, y, **parameters)

    def _estimator_parameters(
        self, estimator: Any, weight: Matrix | None, fit_params: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the classifier's ``fit`` gets beside X and y."""
        if not get_config()["enable_metadata_routing"]:
            return fit_params | weight_parameter(estimator, weight)
        weights = {} if weight is None else {"sample_weight": weight}
        return dict(process_routing(self, "fit", **fit_params, **weights).estimator.fit)

    def _fit_calibrator(
        self, X: Any, y: NDArray, weight: Matrix | None, groups: NDArray | None
    ) -> None:
        rows = self.calibration_rows_
        calibrator = self._make_calibrator()
        settings = calibrator.get_params(deep=False)
        if "random_state" in settings and settings["random_state"] is None:
            calibrator.set_params(random_state=self.random_state)
        self.output_kind_ = output_kind(self.estimator_)
        self.features_ = None
        options: dict[str, Any] = {}
        if weight is not None:
            options["sample_weight"] = weight[rows]
        if groups is not None and has_fit_parameter(calibrator, "groups"):
            options["groups"] = groups[rows]
        features = None
        if _uses_features(calibrator):
            features = self._fit_features(take_rows(X, rows), y[rows])
            refuse_texts(features, calibrator)
        if "classes" in settings:  # the columns follow the model, also where y lacks a class
            calibrator.set_params(classes=self.classes_)
        output = {self.output_kind_: self.out_of_fold_output_}
        with warnings.catch_warnings():
            if not isinstance(self.estimator_, FrozenEstimator | PrecomputedProba):
                # The model has been trained on these very rows: no reason to say that it should be.
                warnings.simplefilter("ignore", TrainingSetWarning)
                # Nor can its columns be in another order than that of its own classes.
                warnings.simplefilter("ignore", ColumnOrderWarning)
            self.calibrator_ = calibrator.fit(features, y[rows], **output, **options)

    def _fit_features(self, X: Any, y: NDArray) -> Any:
        if self.features is not None:
            given = as_transformer(self.features, "LocallyCalibratedClassifier")
            unfitted = clone(given)
            warn_of_refit(given, unfitted, "features")
            self.features_ = unfitted.fit(self._without_proba(X), y)
        return self._represented(X)

    def _represented(self, X: Any) -> Any:
        """Return the items as the calibrator compares them."""
        X = self._without_proba(X)
        return X if self.features_ is None else self.features_.transform(X)

    def _without_proba(self, X: Any) -> Any:
        if not isinstance(self.estimator_, PrecomputedProba):
            return X
        return self.estimator_.features(X)

    def _for_calibrator(self, X: Any) -> tuple[Any, dict[str, Matrix]]:
        """Return what the calibrator needs to know of new items: features and model output."""
        check_is_fitted(self, "calibrator_")
        X = as_input(X)
        if getattr(X, "ndim", 2) == 1 and hasattr(self, "n_features_in_"):
            raise ValueError(
                f"Expected 2D array, got 1D array of length {X.shape[0]} instead. "
                "Reshape your data with X.reshape(1, -1) if it is a single item."
            )
        self._check_columns(X)
        output = output_of(self.estimator_, X, self.classes_)
        features = None
        if _uses_features(self.calibrator_):
            features = self._represented(X)
        return features, {self.output_kind_: output}

    def _checked(self, Q: Any, output: dict[str, Matrix]) -> Matrix:
        return checked_proba(self.calibrator_, Q, output[self.output_kind_].shape)

    def _check_columns(self, X: Any) -> None:
        """Compare the columns with those at fit; scikit-learn does not say which have moved."""
        try:
            validate_data(self, X, reset=False, skip_check_array=True)
        except ValueError as error:
            frame, expected = as_frame(X), getattr(self, "feature_names_in_", None)
            names = None if frame is None else list(frame.columns)
            if names is None or expected is None or set(names) != set(expected):
                raise
            place = next(j for j, name in enumerate(expected) if names[j] != name)
            raise ValueError(
                f"{error}Column {place} was {expected[place]!r} and is {names[place]!r}. Reorder "
                "them, e.g. X[list(classifier.feature_names_in_)]."
            ) from error

    def _to_stored(self, state: dict[str, Any]) -> dict[str, Any]:
        ours = self.features_ is None or isinstance(self.features_, ChosenColumns)
        if not isinstance(self.estimator_, PrecomputedProba) or not ours:
            raise TypeError(
                "hetcal.save stores calibrators, not the classifier inside "
                f"LocallyCalibratedClassifier ({type(self.estimator_).__name__}) nor its "
                "transformer. Save classifier.calibrator_ and, after loading, pass it "
                "y_proba=model.predict_proba(X) (or logits=); store the model by its own means, "
                "e.g. skops.io.dump."
            )
        return state | {"features": plain_columns(self.features)}

    def _check_restored(self) -> None:
        same = np.array_equal(self.calibrator_.classes_, self.classes_)
        expect(same, self, "has a calibrator of other classes")
        same = np.array_equal(self.estimator_.classes_, self.classes_)
        expect(same, self, "reads other classes")
        same = self.n_features_in_ == self.estimator_.n_features_in_
        expect(same, self, "reads other columns")


def _uses_features(calibrator: Any) -> bool:
    """Return whether the calibrator looks at X; one that does not say is given it."""
    return getattr(calibrator, "uses_features", True)
