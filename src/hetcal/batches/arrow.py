"""Arrow record batches in, the same with calibrated columns out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetcal.batches.additions import EVERYTHING, Additions
from hetcal.batches.model import describe_file
from hetcal.batches.packed import pack_file
from hetcal.persistence import describe
from hetcal.tables.reading import need_pyarrow

if TYPE_CHECKING:
    import pyarrow as pa


class BatchCalibrator:
    """Calibrate tables that come as a stream of Arrow record batches, in any process.

    Called with an iterator of ``pyarrow.RecordBatch`` it returns another: what Spark's
    ``DataFrame.mapInArrow`` wants, and what ``hetcal apply --engine dask`` runs on every part. It
    pickles with the content of the model's file, so the file need not be where the work is done,
    and each process reads it once, when the first batch comes.

    Parameters
    ----------
    model : str or path
        A file from ``hetcal fit``, which knows what the columns of the table are.
    columns : str, default="q,class,support,size,flags"
        What to add: q (probabilities), class, support, size (effective), flags.
    prefix : str, default ``"q_"``
        Before the class in the names of the probabilities.
    only_new : bool, default=False
        Leave the columns of the table out.
    leave_missing : bool, default=False
        Whether rows without a probability get no result, or are an error.

    Attributes
    ----------
    names : list of str
        The new columns.

    Examples
    --------
    With Spark, where ``df`` has the columns that the model was fitted with::

        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        calibrate = BatchCalibrator("loans.hetcal")
        schema = from_arrow_schema(calibrate.schema(to_arrow_schema(df.schema)))
        df.mapInArrow(calibrate, schema).write.parquet("calibrated")
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        columns: str = EVERYTHING,
        prefix: str = "q_",
        only_new: bool = False,
        leave_missing: bool = False,
    ):
        need_pyarrow("BatchCalibrator takes Arrow batches")
        describe_file(Path(model), describe)
        self._packed = pack_file(model, with_table=True)
        self._options: dict[str, Any] = {
            "columns": columns,
            "prefix": prefix,
            "leave_missing": leave_missing,
        }
        self._only_new = only_new
        self.names = self.additions().names

    def additions(self, first_row: int = 1) -> Additions:
        """Return a fresh counter of rows and flags; errors count rows from ``first_row``."""
        return Additions(self._packed.unpack(), first_row=first_row, **self._options)

    def schema(self, table: pa.Schema) -> pa.Schema:
        """Return the schema of what comes out for a table with this schema."""
        import pyarrow as pa

        additions = self.additions()
        if not self._only_new:
            additions.refuse_columns_that_are_there(table.names)
        kept = [] if self._only_new else [(field.name, field.type) for field in table]
        types = {"number": pa.float64(), "text": pa.string(), "whole": pa.int64()}
        types["yes or no"] = pa.bool_()
        return pa.schema(kept + [(name, types[kind]) for name, kind in additions.kinds.items()])

    def __call__(
        self, batches: Iterator[pa.RecordBatch], additions: Additions | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield each batch with its new columns; ``additions`` counts, if given."""
        import pyarrow as pa

        additions = self.additions() if additions is None else additions
        schema = None
        for batch in batches:
            if schema is None:
                schema = self.schema(batch.schema)
            new = additions.to(pa.Table.from_batches([batch]))
            arrays = [] if self._only_new else list(batch.columns)
            arrays += [
                pa.array(values, type=schema.field(name).type, from_pandas=True)
                for name, values in new.items()
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def __repr__(self) -> str:
        return f"BatchCalibrator({self._packed.digest[:8]}, adds {', '.join(self.names)})"
