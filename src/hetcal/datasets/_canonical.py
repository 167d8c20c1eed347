"""One spelling for the content of a data set, so that a checksum means the same everywhere."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

__all__ = ["canonical_arrays", "canonical_table", "checksum"]

# Columns, in order, of the tables as this package names them.
TABLE_COLUMNS: dict[str, tuple[str, ...]] = {
    "adult": (
        *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status"),
        *("occupation", "relationship", "race", "sex", "capital_gain", "capital_loss"),
        *("hours_per_week", "native_country", "income"),
    ),
    "bank-marketing": (
        *("age", "job", "marital", "education", "default", "housing", "loan", "contact", "month"),
        *("day_of_week", "duration", "campaign", "pdays", "previous", "poutcome"),
        *("emp_var_rate", "cons_price_idx", "cons_conf_idx", "euribor3m", "nr_employed", "y"),
    ),
    "credit-default": (
        *("LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE"),
        *("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"),
        *(f"BILL_AMT{month}" for month in range(1, 7)),
        *(f"PAY_AMT{month}" for month in range(1, 7)),
        "default",
    ),
}
N_ADULT_TRAIN, N_ADULT_TEST = 32_561, 16_281


def canonical_arrays(X, y, feature_names=None) -> dict[str, np.ndarray]:
    """Features as uint8, labels as uint8 where they are numbers, else as text."""
    X = np.asarray(X)
    values = X.astype(np.uint8)
    if not np.array_equal(values, X.astype(np.float64)):
        raise ValueError("the features are not whole numbers from 0 to 255")
    labels = np.asarray(y).astype(str)
    if all(label.isdigit() for label in np.unique(labels)):
        labels = labels.astype(np.uint8)
    content = {"X": values, "y": labels}
    if feature_names is not None:
        content["feature_names"] = np.asarray(feature_names, dtype=str)
    return content


def canonical_table(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Our column names, text without blanks, whole numbers as int64, gaps as missing values."""
    columns = TABLE_COLUMNS[name]
    if frame.shape[1] != len(columns):
        raise ValueError(f"{len(columns)} columns were expected, {frame.shape[1]} came")
    table = frame.set_axis(list(columns), axis=1).reset_index(drop=True)
    for column in columns:
        values = table[column]
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(values.cat.categories.dtype)
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
            if values.notna().all() and (values == np.floor(values)).all():
                values = values.astype(np.int64 if column not in _REALS else np.float64)
        else:
            text = values.astype(object).where(values.notna(), "")
            text = text.map(lambda value: str(value).strip())
            numbers = pd.to_numeric(text, errors="coerce")
            present = text.where(~text.isin(["", "?"]), np.nan)
            values = numbers if numbers.notna().all() else present
        table[column] = values
    return _restore_adult(table) if name == "adult" else table


# Measured on a scale: they stay floating point even where every value happens to be whole.
_REALS = frozenset({"emp_var_rate", "cons_price_idx", "cons_conf_idx", "euribor3m", "nr_employed"})


def _restore_adult(table: pd.DataFrame) -> pd.DataFrame:
    """Train rows first, labels without the full stop that marks the test file; add `split`."""
    if len(table) != N_ADULT_TRAIN + N_ADULT_TEST:
        raise ValueError(f"{N_ADULT_TRAIN + N_ADULT_TEST} rows were expected, {len(table)} came")
    # OpenML's copy begins with the test file.
    if table["fnlwgt"].iloc[0] != 77_516:
        table = pd.concat([table.iloc[N_ADULT_TEST:], table.iloc[:N_ADULT_TEST]], ignore_index=True)
    return table.assign(
        income=table["income"].str.rstrip("."),
        split=np.repeat(["train", "test"], [N_ADULT_TRAIN, N_ADULT_TEST]),
    )


def checksum(content: dict[str, np.ndarray] | pd.DataFrame) -> str:
    """SHA-256 of names, types, shapes and values, in their order.

    Independent of the file format, the compression, and the version of the library that read it.

    Examples
    --------
    >>> import numpy as np
    >>> from hetcal.datasets._canonical import checksum
    >>> checksum({"y": np.array([1, 2])}) == checksum({"y": np.array([2, 1])})
    False
    """
    digest = hashlib.sha256()
    if isinstance(content, pd.DataFrame):
        for column in content.columns:
            digest.update(f"{column}\n".encode())
            digest.update("\n".join(map(_cell, content[column].tolist())).encode())
    else:
        for key in sorted(content):
            array = np.ascontiguousarray(content[key])
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def _cell(value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]
        return ""
    return repr(value) if isinstance(value, float) else str(value)
