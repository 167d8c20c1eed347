"""``hetcal apply --engine dask``: Parquet parts in, parts out, every row once and in order."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.patience import PATIENCE

from hetcal._exceptions import InputError
from hetcal.cli import main
from hetcal.dask import apply_parquet


def address(client) -> str:
    return client.scheduler_info()["address"]


def written(folder):
    """Return the parts in the order of their names, as one table."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def refused(call, capsys, *arguments) -> str:
    assert call("apply", *arguments) != 0
    return capsys.readouterr().err


def test_the_rows_are_those_of_one_process(call, client, place, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = (place.model, place.table, "-o", out, "--engine", "dask", "--json")
    assert call("apply", *arguments, "--scheduler", address(client)) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["parts"], facts["written"]) == (6000, 12, str(out))
    assert facts["columns"] == place.expected.schema.names[-6:]
    flags = place.expected["flags"].to_pylist()
    assert facts["flags"]["label_changed"] == sum("label_changed" in flag for flag in flags)
    table = written(out)
    assert table.equals(place.expected)
    assert table.schema.equals(place.expected.schema)
    names = [f"part-{number:05d}.parquet" for number in range(12)]
    assert sorted(path.name for path in out.iterdir()) == ["_SUCCESS", *names]
    # Part by part what the table's parts hold.
    for number, name in enumerate(names):
        theirs = pq.read_table(place.table / f"part.{number}.parquet")
        assert pq.read_table(out / name)["loan_id"].equals(theirs["loan_id"])
    assert leftovers(tmp_path) == []


@pytest.mark.processes
def test_processes_of_its_own(place, tmp_path):
    """As a person calls it: a command that starts its workers and ends them."""
    out = tmp_path / "out"
    command = [sys.executable, "-c", "from hetcal.cli import main; main()", "apply"]
    arguments = [place.model, place.folder / "whole.parquet", "-o", out, "--engine", "dask"]
    more = ["--workers", 1, "--batch-rows", 700]
    done = subprocess.run(
        list(map(str, [*command, *arguments, *more])),
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith(f"6,000 rows to {out}")
    assert "distributed" not in done.stderr
    assert written(out).equals(place.expected)


@pytest.mark.parametrize("part_rows", [100, 450, 10_000])
def test_big_files_are_divided_at_row_groups(client, place, tmp_path, part_rows):
    done = apply_parquet(
        place.model, place.table, tmp_path / "out", client=client, part_rows=part_rows
    )
    assert done.n_parts == {100: 36, 450: 24, 10_000: 12}[part_rows]
    assert written(tmp_path / "out").equals(place.expected)


def test_a_pattern_and_only_new_columns(client, place, tmp_path):
    pattern = f"{place.table}/part.[0-3].parquet"
    done = apply_parquet(
        place.model, pattern, tmp_path / "out", client=client, only_new=True, columns="q,flags"
    )
    assert done.n_rows == 2000
    names = ["q_default", "q_paid", "flags"]
    assert sorted(done.names) == sorted(names)
    expected = place.expected.select(done.names)[:2000]
    assert written(tmp_path / "out").equals(expected)


def test_columns_told_by_folders(client, place, tmp_path):
    for number, region in enumerate(["north", "south"]):
        folder = tmp_path / "table" / f"region={region}" / f"year=202{number}"
        folder.mkdir(parents=True)
        part = pq.read_table(place.table / f"part.{number}.parquet").drop_columns("region")
        pq.write_table(part, folder / "part.parquet")
    (tmp_path / "table" / "_metadata").write_text("not rows")
    apply_parquet(place.model, tmp_path / "table", tmp_path / "out", client=client)
    table = written(tmp_path / "out")
    assert table["region"].to_pylist() == ["north"] * 500 + ["south"] * 500
    assert table["year"].to_pylist() == [2020] * 500 + [2021] * 500
    # Where the folder happens to tell the truth, the rows are calibrated as before.
    same = np.array(table["region"].to_pylist()) == place.expected["region"][:1000].to_numpy()
    mine, theirs = (t["q_default"].to_numpy()[:1000][same] for t in (table, place.expected))
    np.testing.assert_array_equal(mine, theirs)


def test_parts_without_rows_and_without_values(client, place, tmp_path):
    (tmp_path / "table").mkdir()
    part = pq.read_table(place.table / "part.0.parquet")
    blank = part.set_column(0, "loan_id", pa.nulls(len(part)))
    for number, rows in enumerate([blank, part[:0], part]):
        pq.write_table(rows, tmp_path / "table" / f"{number}.parquet")
    done = apply_parquet(place.model, tmp_path / "table", tmp_path / "out", client=client)
    assert (done.n_rows, done.n_parts) == (1000, 3)
    table = written(tmp_path / "out")
    assert table["loan_id"].to_pylist() == [None] * 500 + part["loan_id"].to_pylist()
    assert table[500:].equals(place.expected[:500])


def test_what_is_there_is_replaced_only_when_told_so(call, client, place, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = (place.model, place.table / "part.0.parquet", "-o", out, "--engine", "dask")
    arguments += ("--scheduler", address(client), "-q")
    out.mkdir()  # an empty folder is no output yet
    assert call("apply", *arguments) == 0
    assert "exists already. Pass --overwrite" in refused(call, capsys, *arguments)
    assert call("apply", *arguments, "--overwrite") == 0
    assert written(out).equals(place.expected[:500])
    (out / "thesis.tex").write_text("mine")
    assert "'thesis.tex', and is not replaced" in refused(call, capsys, *arguments, "--overwrite")
    assert (out / "thesis.tex").read_text() == "mine"
    assert leftovers(tmp_path) == []


def test_the_table_is_not_its_own_output(call, place, tmp_path, capsys):
    link = tmp_path / "link"
    link.symlink_to(place.folder)
    for out in (place.table, place.folder, link / "table"):
        arguments = (place.model, place.table, "-o", out, "--engine", "dask", "--overwrite")
        assert "holds the table itself" in refused(call, capsys, *arguments)


def test_a_link_stays_a_link(client, place, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "link").symlink_to(there)
    for overwrite in (False, True):
        apply_parquet(
            place.model, place.table, tmp_path / "link", client=client, overwrite=overwrite
        )
        assert (tmp_path / "link").is_symlink()
        assert written(there).equals(place.expected)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{folder}/loans.csv", "-o", "{tmp}/out"), "reads Parquet only"),
        (("-", "-o", "{tmp}/out"), "reads Parquet (a file, a folder or a pattern)"),
        (("{table}", "-o", "-"), "writes a folder"),
        (("{table}", "-o", "{tmp}/out", "--format", "csv"), "reads Parquet"),
        (("{table}", "-o", "{tmp}/out", "--out-format", "csv"), "writes Parquet, not csv"),
        (("{tmp}", "-o", "{tmp}/out"), "holds no Parquet file"),
        (("{tmp}/none.parquet", "-o", "{tmp}/out"), "no file or folder"),
        (("{table}", "-o", "{tmp}/no/out"), "Create it first"),
        (("{table}", "-o", "{tmp}/out", "--columns", "x"), "choose from"),
        (
            ("{table}", "-o", "{tmp}/out", "--scheduler", "tcp://x:1", "--workers", "2"),
            "leave it or --scheduler out",
        ),
        (("{table}", "-o", "{tmp}/out", "--scheduler", "odd://x:1"), "No dask scheduler answers"),
        (("{table}", "-o", "{tmp}/out", "--scheduler", "nonsense"), "such as tcp://10.0.0.5:8786"),
    ],
)
def test_bad_calls_say_what_to_do(call, place, tmp_path, capsys, arguments, words):
    places = {"folder": place.folder, "table": place.table, "tmp": tmp_path}
    filled = [argument.format(**places) for argument in arguments]
    told = " ".join(refused(call, capsys, place.model, *filled, "--engine", "dask").split())
    assert words in told
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_is_for_dask(call, place, tmp_path, capsys):
    arguments = (place.model, place.folder / "whole.parquet", "-o", tmp_path / "out.parquet")
    assert "for --engine dask" in refused(call, capsys, *arguments, "--workers", 2)


def test_parts_that_differ_are_refused(client, place, tmp_path):
    (tmp_path / "table").mkdir()
    part = pq.read_table(place.table / "part.0.parquet")
    pq.write_table(part, tmp_path / "table" / "0.parquet")
    for other, words in [
        (part.drop_columns("age"), "'age' is missing"),
        (part.append_column("more", part["age"]), "'more' more"),
        (part.set_column(1, "age", pa.array(["old"] * 500)), "has other types"),
    ]:
        pq.write_table(other, tmp_path / "table" / "1.parquet")
        with pytest.raises(ValueError, match=words):
            apply_parquet(place.model, tmp_path / "table", tmp_path / "out", client=client)
    (tmp_path / "table" / "1.parquet").write_text("no Parquet")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        apply_parquet(place.model, tmp_path / "table", tmp_path / "out", client=client)
    assert not (tmp_path / "out").exists()


def test_a_bad_row_is_named_and_nothing_is_written(call, client, place, tmp_path, capsys):
    (tmp_path / "table").mkdir()
    for number in range(3):
        part = pq.read_table(place.table / f"part.{number}.parquet")
        if number == 1:
            bad = part["p_paid"].to_numpy().copy()
            bad[417] = 17.0
            part = part.set_column(3, "p_paid", pa.array(bad))
        pq.write_table(part, tmp_path / "table" / f"{number}.parquet", row_group_size=200)
    out = tmp_path / "out"
    arguments = (place.model, tmp_path / "table", "-o", out, "--engine", "dask")
    arguments += ("--scheduler", address(client), "--part-rows", 200)
    told = refused(call, capsys, *arguments)
    assert "1.parquet" in told
    assert "418" in told  # the row of the file, not of the piece
    assert not out.exists()
    assert leftovers(tmp_path) == []


def test_without_dask_the_remedy_is_told(monkeypatch, place, tmp_path, capsys):
    from hetcal.dask import _needs

    monkeypatch.setattr(_needs, "find_spec", lambda name: None if name == "distributed" else 1)
    with pytest.raises(SystemExit):
        main(["apply", str(place.model), str(place.table), "-o", "out", "--engine", "dask"])
    assert "needs distributed. Install with: pip install 'hetcal[dask]'" in capsys.readouterr().err


def test_links_among_the_parts(place, tmp_path):
    """A linked file is a part like any other; a link that leads to no file is not passed over."""
    from hetcal.dask.apply import check_folder
    from hetcal.tables.parquet_parts import plan

    table = tmp_path / "table"
    (table / "year=2024").mkdir(parents=True)
    for number in range(2):
        link = table / "year=2024" / f"part.{number}.parquet"
        link.symlink_to(place.table / link.name)
    work = plan(str(table), 1000)
    assert work.n_rows == 1000
    assert [piece.values for piece in work.pieces] == [{"year": "2024"}] * 2
    with pytest.raises(InputError, match="holds the table itself"):
        check_folder(place.table.resolve(), work, overwrite=True)
    (table / "lost").symlink_to(tmp_path / "nowhere.parquet")
    with pytest.raises(InputError, match="lost is a link to nothing"):
        plan(str(table), 1000)
    (table / "lost").unlink()
    (table / "more").symlink_to(place.table)
    with pytest.raises(InputError, match="more is a link to a folder"):
        plan(str(table), 1000)
