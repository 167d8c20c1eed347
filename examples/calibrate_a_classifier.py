"""A naive Bayes classifier on handwritten digits is far too sure of itself: compare the repairs.

The data is split in three: one part trains the classifier, one calibrates it, one judges.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from hetcal import get_calibrator
from hetcal.metrics import evaluate

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=500, random_state=0)
X_cal, X_test, y_cal, y_test = train_test_split(X_rest, y_rest, train_size=500, random_state=0)

model = GaussianNB(var_smoothing=1e-3).fit(X_train, y_train)
P_cal, P_test = model.predict_proba(X_cal), model.predict_proba(X_test)

predictions = {}
for name in ("uncalibrated", "temperature", "bcts", "isotonic", "histogram"):
    calibrator = get_calibrator(name).fit(X_cal, y_cal, y_proba=P_cal)
    predictions[name] = calibrator.predict_proba(X_test, y_proba=P_test)

table = evaluate(y_test, predictions, baseline="uncalibrated", n_bootstrap=100)
for metric in ("brier_score", "log_loss", "ece_top_label"):
    print(f"\n{metric}")
    columns = ["method", "value", "difference", "difference_low", "difference_high"]
    print(table.loc[metric, columns].round(3).to_string(index=False))
