"""``BatchCalibrator``: record batches in and out, as Spark's mapInArrow calls it."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hetcal
from hetcal.batches import BatchCalibrator
from hetcal.batches.packed import Packed, pack, pack_file, times_unpacked
from hetcal.cli import main
from hetcal.tables import read_table


def make_rows(n: int, seed: int, labels=("no", "yes")) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    said, region = rng.uniform(0.1, 0.9, n), rng.choice(["north", "south"], n)
    truth = np.clip(said + np.where(region == "north", 0.25, -0.25), 0.02, 0.98)
    happened = np.array(labels, dtype=object)[(rng.random(n) < truth).astype(int)]
    columns = {"age": rng.uniform(20, 70, n), "region": region}
    columns |= {f"p_{labels[0]}": 1 - said, f"p_{labels[1]}": said, "outcome": happened}
    return pd.DataFrame(columns)


def fitted(folder, labels=("no", "yes"), method="swc"):
    make_rows(120, 0, labels).to_csv(folder / "rows.csv", index=False)
    fitting = f"fit {folder / 'rows.csv'} --label outcome --proba p_* --method {method} -q"
    with pytest.raises(SystemExit) as ended:
        main(f"{fitting} -o {folder / 'm.hetcal'}".split())
    assert not ended.value.code
    return folder / "m.hetcal"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return fitted(tmp_path_factory.mktemp("batches"))


@pytest.fixture(scope="module")
def new():
    return pa.Table.from_pandas(make_rows(300, 1), preserve_index=False)


def applied(model, table, folder, *options):
    """Return what the command makes of a table."""
    pq.write_table(table, folder / "new.parquet")
    out = str(folder / "out.parquet")
    with pytest.raises(SystemExit) as ended:
        main(["apply", str(model), str(folder / "new.parquet"), "-o", out, "-q", *options])
    assert not ended.value.code
    return read_table(out)


def test_batches_are_what_the_command_writes(model, new, tmp_path):
    calibrate = BatchCalibrator(model)
    batches = list(calibrate(iter(new.to_batches(max_chunksize=70))))
    assert [batch.num_rows for batch in batches] == [70, 70, 70, 70, 20]
    schema = calibrate.schema(new.schema)
    assert all(batch.schema.equals(schema) for batch in batches)
    expected = applied(model, new, tmp_path)
    assert pa.Table.from_batches(batches).equals(expected)
    assert schema.equals(expected.schema)


@pytest.mark.parametrize("labels", [(0, 1), (False, True), (0.5, 1.5), ("a", "b")])
def test_the_type_of_the_class_is_that_of_the_labels(labels, tmp_path):
    model = fitted(tmp_path, labels, "temperature")
    new = pa.Table.from_pandas(make_rows(40, 1, labels), preserve_index=False)
    calibrate = BatchCalibrator(model, columns="class", only_new=True)
    schema = calibrate.schema(new.schema)
    assert schema.equals(applied(model, new, tmp_path, "--columns", "class", "--only-new").schema)
    assert pa.Table.from_batches(calibrate(new.to_batches())).schema.equals(schema)


def test_rows_without_a_probability(model, new, tmp_path):
    gap = pa.array([None, 0.5] * 150)
    new = new.set_column(2, "p_no", gap).set_column(3, "p_yes", gap)
    with pytest.raises(ValueError, match="nothing in rows 1, 3"):
        list(BatchCalibrator(model)(new.to_batches(max_chunksize=100)))
    calibrate = BatchCalibrator(model, leave_missing=True)
    first, *_ = calibrate(new.to_batches(max_chunksize=100))
    assert first["q_yes"].null_count == 50
    assert first["predicted_class"].null_count == 50
    assert first["flags"][0].as_py() == "no_probability"


def test_no_batches_and_batches_without_rows(model, new):
    calibrate = BatchCalibrator(model)
    assert list(calibrate(iter([]))) == []
    [empty] = calibrate(new[:0].to_batches() or [pa.RecordBatch.from_pylist([], new.schema)])
    assert empty.schema.equals(calibrate.schema(new.schema))


def test_a_name_that_is_there_is_refused_before_anything_runs(model, new):
    calibrate = BatchCalibrator(model)
    with pytest.raises(ValueError, match="'q_no', 'q_yes'"):
        calibrate.schema(new.rename_columns(["q_no", "q_yes", "p_no", "p_yes", "outcome"]).schema)
    with pytest.raises(ValueError, match="choose from"):
        BatchCalibrator(model, columns="nonsense")
    with pytest.raises(ValueError, match="There is no file"):
        BatchCalibrator("nowhere.hetcal")


@pytest.mark.processes
def test_another_process_needs_no_file(model, new, tmp_path):
    """What Spark does: pickle the function, unpickle it in a worker, call it with an iterator."""
    import cloudpickle

    copy = tmp_path / "m.hetcal"
    copy.write_bytes(model.read_bytes())
    (tmp_path / "f").write_bytes(cloudpickle.dumps(BatchCalibrator(copy)))
    copy.unlink()
    with pa.ipc.new_stream(tmp_path / "in", new.schema) as stream:
        stream.write_table(new, max_chunksize=100)
    code = """
import pickle, sys, pathlib
import pyarrow as pa
folder = pathlib.Path(sys.argv[1])
calibrate = pickle.loads((folder / "f").read_bytes())
from hetcal.batches.packed import times_unpacked
assert times_unpacked() == 0  # nothing is read before the first batch comes
with pa.ipc.open_stream(folder / "in") as stream:
    table = pa.Table.from_batches(calibrate(iter(stream)))
    assert table.num_rows == 300
list(calibrate(iter(table.select(range(5)).to_batches())))
assert times_unpacked() == 1, times_unpacked()
with pa.ipc.new_file(folder / "out", table.schema) as stream:
    stream.write_table(table)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with pa.ipc.open_file(tmp_path / "out") as file:
        found = file.read_all()
    assert found.equals(pa.Table.from_batches(BatchCalibrator(model)(new.to_batches())))


def test_what_is_packed_is_unpacked_once(model):
    packed = [pack(hetcal.Uncalibrated()), pack_file(model, with_table=True)]
    packed.append(pack_file(model, with_table=False))
    for one in packed:
        before = times_unpacked()
        things = {id(pickle.loads(pickle.dumps(one)).unpack()) for _ in range(3)}
        assert len(things) == 1
        assert times_unpacked() - before <= 1
    assert type(packed[1].unpack()).__name__ == "LoadedModel"
    assert len(repr(packed[1])) < 200


def test_only_a_few_are_kept():
    from hetcal.batches import packed as module

    for number in range(20):
        Packed("object", pickle.dumps(number), f"digest {number}").unpack()
    assert len(module._kept) <= 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")  # about pandas 3
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # its sockets
def test_spark(model, new, tmp_path, monkeypatch):
    pyspark = pytest.importorskip("pyspark", reason="needs pip install pyspark, and Java")
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    pq.write_table(new, tmp_path / "new.parquet")
    builder = pyspark.sql.SparkSession.builder.master("local[2]")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    try:
        df = spark.read.parquet(str(tmp_path / "new.parquet")).repartition(3)
        calibrate = BatchCalibrator(model)
        schema = from_arrow_schema(calibrate.schema(to_arrow_schema(df.schema)))
        df.mapInArrow(calibrate, schema).write.parquet(str(tmp_path / "spark"))
    finally:
        spark.stop()
    expected = applied(model, new, tmp_path)
    parts = [read_table(path) for path in (tmp_path / "spark").glob("*.parquet")]
    mine, theirs = (t.to_pandas().sort_values("age") for t in (pa.concat_tables(parts), expected))
    pd.testing.assert_frame_equal(
        mine.reset_index(drop=True), theirs.reset_index(drop=True), check_exact=True
    )
