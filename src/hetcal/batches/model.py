"""A calibrator from a file, with what ``hetcal fit`` remembered about its table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetcal._exceptions import FileFormatError, InputError
from hetcal._stored.fields import is_whole, number

if TYPE_CHECKING:
    from hetcal.tables.roles import TableRoles


#: What is read of a file's own account of its fit, where it says it.
_RECORD = {"low_support": number(0.0), "drawn": lambda stored: _is_draw(stored)}
_NOT_WRITTEN = "is not what hetcal fit writes. Make it again with hetcal fit."


@dataclass(frozen=True)
class LoadedModel:
    """A calibrator, the roles of its table's columns, and what its file says about itself."""

    calibrator: Any
    roles: TableRoles
    metadata: dict[str, Any]
    facts: dict[str, Any]

    @property
    def record(self) -> dict[str, Any]:
        """What ``hetcal fit`` wrote down."""
        return self.metadata["fit"]

    @property
    def has_support(self) -> bool:
        """Whether it says how much calibration data stands behind an item."""
        return hasattr(self.calibrator, "support")

    @property
    def has_size(self) -> bool:
        """Whether it says how many equal votes that is worth, for which it must know the voters."""
        lost = self.facts.get("forget_features") and not self.facts.get("leaf_numbers")
        return hasattr(self.calibrator, "effective_sample_size") and not lost


def load_model(path: Path) -> LoadedModel:
    """Load a calibrator that ``hetcal fit`` wrote."""
    from hetcal.persistence import describe, load

    described = describe_file(path, describe)
    metadata = described["metadata"]
    if described["calibrator"].get("kind") == "SupportMonitor":
        raise InputError(
            f"{path} is no calibrator but what a monitor has counted (hetcal monitor --history). "
            "Pass the file of hetcal fit in its place."
        )
    if "table" not in metadata or "fit" not in metadata:
        raise InputError(
            f"{path} does not say what the columns of its table were: it was saved from Python. "
            "Load it there with hetcal.load, or make it with hetcal fit."
        )
    roles = read_roles(path, metadata["table"])
    if not _is_record(metadata["fit"]):
        raise FileFormatError(f"{path.name}: what it says about its fit {_NOT_WRITTEN}")
    return LoadedModel(load(path), roles, metadata, described["calibrator"])


def read_roles(path: Path, stored: Any) -> TableRoles:
    """Return the roles that a file says the columns of its table have."""
    from hetcal.tables import TableRoles

    try:
        return TableRoles.from_dict(stored)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError(
            f"{path.name}: what it says about the columns of its table {_NOT_WRITTEN}"
        ) from error


def _is_record(stored: Any) -> bool:
    """Tell whether what a file says about its fit can be used."""
    return isinstance(stored, dict) and all(
        field(stored[name]) for name, field in _RECORD.items() if stored.get(name) is not None
    )


def _is_draw(stored: Any) -> bool:
    known = isinstance(stored, dict)
    return known and all(is_whole(stored.get(name), 0) for name in ("max_rows", "seed"))


def describe_file(path: Path, describe: Any) -> dict[str, Any]:
    """Return what a file says about itself, or say that it is not there."""
    if not path.is_file():
        raise InputError(f"There is no file {path}. Make one with hetcal fit.")
    try:
        return describe(path)
    except FileFormatError as error:
        from hetcal.tables.reading import named_like_table

        if named_like_table(path):
            raise InputError(
                f"{path} is a table, not a calibrator. The first argument is the file that hetcal "
                "fit wrote (-o MODEL.hetcal)."
            ) from error
        raise
