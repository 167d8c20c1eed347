"""Tables in and out: every format, batches, broken files, and writing all or nothing."""

from __future__ import annotations

import csv
import gzip
import os
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetcal._exceptions import InputError
from hetcal._validation.text import infer_column, parse_numbers
from hetcal.persistence.atomic_file import write_atomic
from hetcal.persistence.hidden_names import hidden_beside
from hetcal.persistence.locks import locked
from hetcal.tables import sources
from hetcal.tables.decimal_commas import with_point
from hetcal.tables.reading import open_table, read_batches, read_table, table_format
from hetcal.tables.spreadsheets import defused, restored
from hetcal.tables.writing import TableWriter

COLUMNS = {
    "code": ["007", "010", "112", "001"],
    "text, with comma": ['say "hi"', "line\nbreak", "", "ünï"],
    "whole": [3, 1, 4, 1],
    "number": [0.1, 1e-300, 1 / 3, 2.0**60],
}
FILES = ["t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.arrow", "t.feather"]


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_is_read_back(tmp_path, name):
    path = tmp_path / name
    with TableWriter(path) as table:
        for rows in (slice(0, 3), slice(3, 4)):
            table.write({column: np.array(values)[rows] for column, values in COLUMNS.items()})
    table = read_table(path)
    read = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    assert list(read.columns) == list(COLUMNS)
    assert read["code"].tolist() == COLUMNS["code"]
    assert read["whole"].tolist() == COLUMNS["whole"]
    assert read["number"].tolist() == COLUMNS["number"]  # to the last bit
    assert read["text, with comma"].fillna("").tolist() == COLUMNS["text, with comma"]
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("batch_rows", [1, 3, 4, 100])
def test_batches_are_the_table(tmp_path, name, batch_rows):
    path = tmp_path / name
    with TableWriter(path) as table:
        table.write({column: np.array(values) for column, values in COLUMNS.items()})
    batches = list(read_batches(path, batch_rows))
    sizes = [len(batch) for batch in batches]
    assert sum(sizes) == 4
    assert max(sizes) <= batch_rows
    if name.endswith(("csv", "gz", "tsv")):
        assert [v for batch in batches for v in batch["whole"]] == ["3", "1", "4", "1"]
    else:
        assert [v for batch in batches for v in batch["whole"].to_pylist()] == [3, 1, 4, 1]


@pytest.mark.parametrize("name", FILES)
def test_no_rows_are_one_empty_batch(tmp_path, name):
    path = tmp_path / name
    with TableWriter(path) as table:
        table.write({"a": np.zeros(0), "b": np.array([], dtype=object)})
    batches = list(read_batches(path))
    assert [len(batch) for batch in batches] == [0]
    with open_table(path) as reader:
        assert reader.names == ["a", "b"]


def test_arrow_stream_and_a_late_dictionary(tmp_path):
    table = pa.table({"level": pa.array(["a", "b", "c"]).dictionary_encode()})
    with (
        pa.OSFile(str(tmp_path / "s.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as out,
    ):
        out.write_table(table)
    assert read_table(tmp_path / "s.arrow")["level"].to_pylist() == ["a", "b", "c"]
    with TableWriter(tmp_path / "d.arrow") as out:
        for values in (["a", "b"], ["z"]):
            out.write({"level": pa.array(values).dictionary_encode()})
    assert read_table(tmp_path / "d.arrow")["level"].to_pylist() == ["a", "b", "z"]


def test_semicolons_byte_order_mark_and_blank_lines(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes("\ufeffalter;ort\r\n31;Köln\r\n\r\n58;Bonn\r\n".encode())
    read = read_table(path)
    assert read.columns.tolist() == ["alter", "ort"]
    assert read["alter"].tolist() == [31, 58]


def test_other_encodings_are_said_or_named(tmp_path):
    path = tmp_path / "old.csv"
    path.write_bytes("ort\nKöln\n".encode("latin-1"))
    with pytest.raises(InputError, match="not utf-8 text.*--encoding"):
        read_table(path)
    assert read_table(path, encoding="latin-1")["ort"].tolist() == ["Köln"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", "line 3 has 3 fields where the first line names 2"),
        ("a.csv", b"a,a\n1,2\n", "two columns named 'a'"),
        ("a.csv", b"PAR1....", "not CSV but parquet"),
        ("a.csv", b"PK\x03\x04....", "Excel"),
        ("a.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 5000, mtime=0)[:40], "cannot be read"),
        ("a.parquet", b"a,b\n1,2\n", "cannot be read"),
        ("a.arrow", b"ARROW1junkjunkjunk", "cannot be read"),
        ("a.dat", b"", "not clear from the name"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_table(path)


def test_a_file_that_is_not_there_names_the_nearest(tmp_path):
    (tmp_path / "loans.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"no file .*lones.csv. Did you mean loans.csv\?"):
        read_table(tmp_path / "lones.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path, format="csv")


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    """In the natural order of the names; what writers leave beside the parts is no part."""
    folder = tmp_path / "log"
    for name, values in (("part.2", [3, 4]), ("part.10", [5]), ("part.1", [1, 2])):
        (folder / f"year={values[0]}").mkdir(parents=True)
        table = pd.DataFrame({"a": values, "text": ["x"] * len(values)})
        table.to_parquet(folder / f"year={values[0]}" / f"{name}.parquet", index=False)
    (folder / "_SUCCESS").touch()
    whole = read_table(folder).to_pandas()
    assert whole["a"].tolist() == [1, 2, 3, 4, 5]
    assert whole["year"].tolist() == [1, 1, 3, 3, 5]
    with open_table(folder) as reader:
        assert reader.n_rows == 5
        assert [part.column_names for part in reader.batches(1, ["a"])] == [["a"]] * 5
        assert reader.done() == 1


def test_folders_that_hold_no_table_say_so(tmp_path):
    with pytest.raises(InputError, match=r"holds no Parquet file\. Pass a file, or a folder"):
        read_table(tmp_path)
    (tmp_path / "log.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match="'log.csv': a folder is read as Parquet only.*one file"):
        read_table(tmp_path)


@pytest.mark.parametrize("name", ["log.xlsx", "log.ODS"])
def test_a_spreadsheet_is_to_be_saved_as_csv(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(InputError, match="is a spreadsheet.*Save the sheet as CSV"):
        read_table(tmp_path / name)
    with pytest.raises(InputError, match=r"answers.jsonl is JSON.*read_json.*lines=True"):
        table_format("answers.jsonl")


@pytest.mark.processes
def test_without_pyarrow_csv_works_and_the_rest_says_what_to_install(tmp_path):
    code = """
import sys
import tracemalloc
sys.modules["pyarrow"] = None
from hetcal.tables import read_table
print(read_table(sys.argv[1])["a"].tolist())
try:
    read_table(sys.argv[1], format="parquet")
except ImportError as error:
    print(error)
"""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,x\n2,y\n")
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("[1, 2]"), done.stderr
    assert "pip install 'hetcal[io]'" in done.stdout


def test_nothing_half_written_is_left(tmp_path):
    path = tmp_path / "out.csv"

    def break_off(overwrite):
        with TableWriter(path, overwrite=overwrite) as table:
            table.write({"a": np.arange(3)})
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        break_off(overwrite=False)
    assert list(tmp_path.iterdir()) == []
    path.write_text("old")
    with pytest.raises(RuntimeError):
        break_off(overwrite=True)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_breaking_off_is_quiet_in_every_format(tmp_path, format):
    def break_off():
        with TableWriter(tmp_path / "out", format=format) as table:
            table.write({"a": np.arange(3)})
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        break_off()
    assert list(tmp_path.iterdir()) == []


def flip_a_byte(path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(bytes(content))


def test_a_damaged_page_of_parquet_is_noticed(tmp_path):
    path = tmp_path / "out.parquet"
    with TableWriter(path) as table:
        table.write({"p": np.random.default_rng(0).random(5000)})
    flip_a_byte(path, path.stat().st_size // 2)  # within the numbers, which stay numbers
    with pytest.raises(InputError, match=r"out.parquet cannot be read: .*checksum"):
        read_table(path)


def test_names_of_255_characters_can_be_written(tmp_path):
    path = tmp_path / ("n" * 251 + ".csv")
    for _ in range(2):
        with TableWriter(path, overwrite=True) as table:
            table.write({"a": np.arange(3)})
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    with locked(path):
        pass


def test_leftovers_of_a_long_name_are_removed(tmp_path):
    path = tmp_path / ("n" * 251 + ".csv")
    left = hidden_beside(path, ".0123abcd.tmp")
    left.write_text("half")
    other = hidden_beside(tmp_path / ("m" * 251 + ".csv"), ".0123abcd.tmp")
    other.write_text("somebody else's")
    write_atomic(path, "all of it")
    assert not left.exists()
    assert other.exists()


@pytest.mark.processes
def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    code = """
import os, signal, sys
import numpy as np
from hetcal.tables import TableWriter
with TableWriter(sys.argv[1], overwrite=True) as table:
    table.write({"a": np.arange(100_000)})
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert path.read_text() == "old"
    assert all(file == path or file.name.endswith(".tmp") for file in tmp_path.iterdir())


def test_existing_files_missing_folders_links_and_devices(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    with pytest.raises(InputError, match="exists already. Pass --overwrite"):
        TableWriter(path)
    with pytest.raises(InputError, match="there is no folder"):
        TableWriter(tmp_path / "nowhere" / "out.csv")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    with TableWriter(link, overwrite=True) as table:
        table.write({"a": np.array([1])})
    assert link.is_symlink()
    assert path.read_text() == "a\n1\n"
    with TableWriter(os.devnull, format="csv") as table:
        table.write({"a": np.array([1])})
    assert not os.path.isfile(os.devnull)  # noqa: PTH113


def test_formats_by_name():
    assert table_format("a.CSV") == "csv"
    assert table_format("a.pq") == "parquet"
    assert table_format("-", "arrow") == "arrow"
    with pytest.raises(InputError, match="Unknown format 'xml'"):
        table_format("a.csv", "xml")


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), min_size=1))
@settings(max_examples=50)
def test_numbers_survive_text_to_the_bit(values):
    cells = ["" if value is None else repr(value) for value in values]
    expected = np.array([np.nan if value is None else value for value in values], dtype=float)
    np.testing.assert_array_equal(parse_numbers(cells, "a"), expected)
    if any(cells):
        inferred = infer_column(cells).to_numpy(dtype=float)
        np.testing.assert_array_equal(inferred, expected)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "NA", "2"], [1.0, None, 2.0]),
        (["NA", "none", "x"], ["NA", "none", "x"]),
        (["1_000", "2"], ["1_000", "2"]),
        (["true", "", "FALSE"], [True, None, False]),
        (["9223372036854775808", "1"], [9223372036854775808.0, 1.0]),
        (["", ""], [None, None]),
    ],
)
def test_columns_are_taken_for_what_they_are(cells, expected):
    read = [None if pd.isna(value) else value for value in infer_column(cells).tolist()]
    assert read == expected


@pytest.mark.parametrize(
    ("cell", "remedy"), [("0,5", "--decimal ,"), ("85%", "--percent"), ("high", "Correct")]
)
def test_a_cell_that_is_no_number_is_named(cell, remedy):
    with pytest.raises(InputError, match=rf"'p' should hold numbers, but row 12 .*{remedy}"):
        parse_numbers(["1", cell, ""], "p", first_row=11)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_a_table_as_excel_writes_it(tmp_path, encoding):
    path = tmp_path / "t.csv"
    text = "größe;p;tag\n1.234,5;0,25;01.02.2024\n-3,5;1;02.02.2024\n"
    path.write_bytes(text.encode(encoding))
    read_with = "utf-8" if encoding == "utf-8-sig" else encoding
    table = read_table(path, encoding=read_with, decimal=",")
    assert table["größe"].tolist() == [1234.5, -3.5]
    assert table["p"].tolist() == [0.25, 1.0]
    assert table["tag"].tolist() == ["01.02.2024", "02.02.2024"]
    if encoding != "utf-8-sig":
        with pytest.raises(InputError, match="--encoding"):
            read_table(path, decimal=",")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_commas_lose_nothing(value):
    assert float(with_point(repr(value).replace(".", ","))) == value


def _with_decimal_comma(tmp_path, *cells):
    (tmp_path / "t.csv").write_text("\n".join(["x;y", *(f"{cell};1" for cell in cells)]) + "\n")
    return read_table(tmp_path / "t.csv", decimal=",")["x"].tolist()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["0.484", "0.25", "1.000"], [0.484, 0.25, 1.0]),  # probabilities keep their point
        (["1.484", "2.5", "3"], [1.484, 2.5, 3.0]),
        (["1.234", "1,5"], [1234.0, 1.5]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["-1.234", "12.500", "950", "NA"], [-1234.0, 12500.0, 950.0, None]),
        (["0,484", "1"], [0.484, 1.0]),
        (["1.234", "unknown", "0,5"], ["1.234", "unknown", "0.5"]),
        (["1.5e3", "1.234"], [1500.0, 1.234]),
    ],
)
def test_a_point_beside_decimal_commas_is_what_its_column_shows(tmp_path, cells, expected):
    read = [None if pd.isna(value) else value for value in _with_decimal_comma(tmp_path, *cells)]
    assert read == expected


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1.484", "2.118"], r"'x' holds '1\.484'.* Write 1484 or 1,484; .* leave --decimal , "),
        (["1.484", "2"], r"holds '1\.484'"),  # written with as many digits as needed
        (["2.500", "1.484"], r"holds '1\.484'"),  # written with three digits
        (["1.500", "2", "1500"], r"holds '1\.500'"),
        (["1.000"], r"holds '1\.000'"),
        (["0.484", "0,25"], r"'x' holds '0,25' and '0\.484'.* numbers with the comma"),
        (["1.234,5", "1.2"], r"holds '1\.234,5' and '1\.2'"),
    ],
)
def test_a_point_that_may_be_either_is_refused(tmp_path, cells, message):
    with pytest.raises(InputError, match=message):
        _with_decimal_comma(tmp_path, *cells)


def test_what_a_column_shows_holds_for_later_batches(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x;y\n1,5;1\n1.234;1\n0.25;1\n")
    with open_table(path, decimal=",") as reader:
        batches = reader.batches(1)
        assert [next(batches)["x"].tolist() for _ in range(2)] == [["1.5"], ["1234"]]
        with pytest.raises(InputError, match=r"'1,5' and '0\.25'"):
            next(batches)


@pytest.mark.parametrize(
    ("cells", "later"),
    [
        ("12.500,950,0.484,0.5", r"0\.484"),
        ("12.500,950,1500,13.500", "1500"),
        ("12.500,950,none,3.5x", r"3\.5x"),
    ],
)
def test_a_column_is_read_one_way_in_all_batches(tmp_path, cells, later):
    """What the first batch says about points is not forgotten, whatever a later one says."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x;y", *(f"{cell};1" for cell in cells.split(","))]), "utf-8")
    with (
        open_table(path, decimal=",") as reader,
        pytest.raises(InputError, match=f"'12.500', read with a point.* later '{later}'"),
    ):
        list(reader.batches(2))


def test_an_unknown_decimal_sign_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match="decimal sign"):
        read_table(tmp_path / "t.csv", decimal=";")


FORMULAS = [
    "=1+1",
    '=HYPERLINK("http://example.org/?"&A1)',
    "@SUM(A1)",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "-1 to 0",
    "\t=1",
    "\r=1",
    " =1+1",
    "\ufeff=1",
    "＝1+1",
    "＠x",
    "'=1",
    "''=1",
]
HARMLESS = ["-1", "+2.5e-3", "-0,5", "-5 %", "-inf", "-", "a=b", "'tis", "'-1", "New York", ""]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv"])
def test_formulas_are_defused_in_csv_and_read_back(tmp_path, name):
    path = tmp_path / name
    cells = FORMULAS + HARMLESS
    with TableWriter(path) as table:
        table.write({"=A1": np.array(cells, dtype=object), "n": np.full(len(cells), -1.0)})
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream, delimiter="\t" if name == "t.tsv" else ","))
    assert rows[0] == ["'=A1", "n"]
    assert [row[0] for row in rows[1:]] == ["'" + cell for cell in FORMULAS] + HARMLESS
    assert {row[1] for row in rows[1:]} == {"-1.0"}
    [batch] = read_batches(path)
    assert batch["=A1"].tolist() == cells


def test_text_stays_verbatim_where_that_is_asked_for_and_outside_csv(tmp_path):
    cells = np.array(FORMULAS, dtype=object)
    with TableWriter(tmp_path / "t.csv", verbatim=True) as table:
        table.write({"=A1": cells})
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as stream:
        assert [row[0] for row in csv.reader(stream)] == ["=A1", *FORMULAS]
    for name in ("t.parquet", "t.arrow"):
        with TableWriter(tmp_path / name) as table:
            table.write({"=A1": cells})
        assert read_table(tmp_path / name)["=A1"].to_pylist() == FORMULAS


@given(st.text(alphabet="'=+-@\t\r\n 1a.＝\ufeff", max_size=8))
def test_what_was_defused_is_restored(text):
    assert restored(defused(text)) == text


def test_a_carriage_return_in_a_cell_is_no_line_end(tmp_path):
    with TableWriter(tmp_path / "t.csv", verbatim=True) as table:
        table.write({"a": ["x\r=1", "y\r\nz", "w\n"], "b": ["1", "2", "3"]})
    [batch] = read_batches(tmp_path / "t.csv")
    assert batch["a"].tolist() == ["x\r=1", "y\r\nz", "w\n"]
    assert (tmp_path / "t.csv").read_bytes().endswith(b",3\n")


def test_a_terminal_gets_text_without_control_characters(monkeypatch, capsysbinary):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with TableWriter("-") as table:
        table.write({"a": ["\x1b[2J", "é"]})
    assert capsysbinary.readouterr().out == "a\n\\x1b[2J\né\n".encode()
    with pytest.raises(InputError, match="Standard output is a terminal"):
        TableWriter("-", format="parquet")
    monkeypatch.undo()
    with TableWriter("-") as table:
        table.write({"a": ["\x1b[2J"]})
    assert capsysbinary.readouterr().out == b"a\n\x1b[2J\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a" * 3000, 1),
        ("a,b\n1,2\n" + "3" * 3000 + ",4\n", 3),
        ("a,b\n" + '"\n","\n",' * 300, 500),  # one record, of many short lines
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_record_has_a_limit_before_memory_has(tmp_path, monkeypatch, text, line, name):
    monkeypatch.setattr(sources, "MAX_RECORD", 2000)
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    with pytest.raises(InputError, match=r"t\.csv.*: line (\d+) goes on for more.*Parquet") as told:
        list(read_batches(path))
    assert abs(int(re.search(r"line (\d+)", str(told.value))[1]) - line) < 20


def test_a_small_file_that_unpacks_to_much(tmp_path):
    """Unpacked by streaming: what is in memory is one record at most."""
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(64):
            stream.write(bytes(2**20))
    tracemalloc.start()
    with pytest.raises(InputError, match="line 1 goes on"):
        list(read_batches(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * sources.MAX_RECORD  # bytes; the file unpacks to 64 MB


def test_a_batch_has_limits_besides_its_rows(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "\n" * 50 + "12345,67890\n" * 10 + "\n" * 50)
    monkeypatch.setattr(sources, "BATCH_CHARACTERS", 30)
    assert [len(batch) for batch in read_batches(path)] == [1, 3, 3, 3]
    monkeypatch.setattr(sources, "BATCH_CHARACTERS", 10**6)
    monkeypatch.setattr(sources, "BATCH_CELLS", 8)
    assert [len(batch) for batch in read_batches(path)] == [4, 4, 2]
    monkeypatch.setattr(sources, "MAX_COLUMNS", 1)
    with pytest.raises(InputError, match=r"2 columns; a CSV file may have 1\. Leave some out"):
        list(read_batches(path))


def test_a_quote_that_is_never_closed_names_the_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,"2\n' + "3,4\n" * 40_000)
    with pytest.raises(InputError, match=r"line \d+ cannot be read: field larger.*never closed"):
        read_table(path)


def test_a_damaged_page_of_our_own_parquet_is_noticed(tmp_path):
    path = tmp_path / "t.parquet"
    with TableWriter(path) as table:
        table.write({"a": np.random.default_rng(0).normal(size=1000)})
    content = bytearray(path.read_bytes())
    content[3000] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        read_table(path)


def _text_that_lies_elsewhere(n):
    starts = np.full(n + 1, 2**30, dtype=np.int32)
    starts[0], starts[-1] = 0, n  # pyarrow looks at these two only
    return pa.Array.from_buffers(
        pa.string(), n, [None, pa.py_buffer(starts), pa.py_buffer(b"a" * n)]
    )


def _levels_that_are_not_there(n):
    places = pa.py_buffer(np.full(n, 2**30, dtype=np.int32))
    kind = pa.dictionary(pa.int32(), pa.string())
    return pa.DictionaryArray.from_buffers(kind, n, [None, places], pa.array(["a", "b"]))


@pytest.mark.parametrize("column", [_text_that_lies_elsewhere, _levels_that_are_not_there])
@pytest.mark.parametrize("opened", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_file_that_points_outside_itself_is_refused(tmp_path, column, opened):
    table = pa.table({"g": column(20)})
    path = tmp_path / "crafted.arrow"
    with path.open("wb") as file, opened(file, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match=r"crafted\.arrow cannot be read"):
        read_table(path)


def test_a_calibrator_is_no_table():
    with pytest.raises(InputError, match=r"loans\.hetcal is a file that hetcal has written"):
        table_format("loans.hetcal")


@pytest.mark.parametrize("first", ['a;"x, y, z, w";b', '"x, y, z, w;";a'])
def test_what_is_quoted_does_not_say_what_separates(first, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{first}\n" + ";".join("1" * first.replace("w;", "w").count(";") + "1"))
    expected = next(csv.reader([first], delimiter=";"))
    assert list(read_table(path).columns) == expected
