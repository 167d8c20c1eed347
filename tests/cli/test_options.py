"""Sets of options: every field is an option, and is typed again as it was given."""

import inspect
from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

from hetcal.cli import _options as options
from hetcal.cli._table_input import apply_command, arguments_of
from hetcal.tables import read_labelled, read_table


@pytest.mark.parametrize(
    ("kind", "reader"), [(options.ReportColumns, read_labelled), (options.Reading, read_table)]
)
def test_every_option_has_a_reader_with_the_same_default(kind, reader):
    known = inspect.signature(reader).parameters
    for option in fields(kind):
        assert option.name in known
        if option.name != "label":
            assert known[option.name].default == option.default


def test_what_is_typed_makes_the_set_again():
    app, made = typer.Typer(), []

    def remember(*, columns: options.Columns, reading: options.Reading, more: int = 3) -> None:
        made.append((columns, reading, more))

    app.command()(options.command(remember))
    columns = options.Columns(label="y", proba="p_*", percent=True, groups="a b,c")
    reading = options.Reading(format=options.TableFormat.csv, decimal=",")
    typed = [*arguments_of(columns), *arguments_of(reading), "--more", "4"]
    assert typed[:4] == ["--label", "y", "--proba", "p_*"]
    assert CliRunner().invoke(app, typed).exit_code == 0
    assert made == [(columns, reading, 4)]
    refused = CliRunner().invoke(app, ["--label", "y", "--no-percent"])
    assert refused.exit_code == 2  # a flag has no opposite


def test_a_command_to_copy_reads_the_next_table_in_the_same_way():
    reading = options.Reading(encoding="latin-1")
    said = apply_command("m.hetcal", "loans.csv.gz", reading, new="new")
    assert said == "hetcal apply m.hetcal new.csv.gz --encoding latin-1 -o calibrated.csv.gz"
    assert apply_command("m.hetcal", "-", options.Reading(), new="NEW").split()[3] == "NEW.csv"
