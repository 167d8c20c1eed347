"""What goes with every task: one packed calibrator, and partitions that belong together."""

from __future__ import annotations

import os
from typing import Any

from hetcal.batches.packed import Packed, pack, pack_file


def packed_calibrator(calibrator: Any) -> Packed:
    """Pack a calibrator, or the file that holds one."""
    if isinstance(calibrator, str | os.PathLike):
        return pack_file(calibrator, with_table=False)
    return pack(calibrator)


def as_node(packed: Packed) -> Any:
    """Return a packed calibrator as a node of its own in dask's graph.

    Every task depends on the one node, so that a worker gets the bytes once, from the scheduler or
    from another worker; and should all workers that have them die, the scheduler still has them.
    """
    from dask.delayed import delayed

    name = f"hetcal-packed-{packed.kind.replace(' ', '-')}-{packed.digest[:32]}"
    make = delayed(_made, pure=True, traverse=False)
    return make(packed, dask_key_name=name)


def _made(packed: Packed) -> Packed:
    return packed


def given_output(y_proba: Any, logits: Any) -> tuple[str, Any]:
    """Return the name of the classifier's output that was given, and the output."""
    if (y_proba is None) == (logits is None):
        raise TypeError("hetcal.dask needs y_proba or logits, one of the two.")
    return ("y_proba", y_proba) if logits is None else ("logits", logits)


def check_collections(**given: Any) -> str:
    """Return "array" or "frame", or say what does not belong together.

    Parameters
    ----------
    **given
        The collections by name; None is left out. Those of one call must be of one kind, with the
        same rows in the same partitions.
    """
    kinds = {name: _kind(name, value) for name, value in given.items()}
    (first, kind), *others = kinds.items()
    for name, other in others:
        if other != kind:
            raise TypeError(
                f"{first} is a dask {kind} but {name} a dask {other}. Pass two of one kind: "
                "dask.dataframe.from_dask_array(P, columns=..., index=X.index) makes a frame of an "
                "array, X.to_dask_array(lengths=True) an array of a frame."
            )
        same = _same_chunks if kind == "array" else _same_partitions
        same(first, given[first], name, given[name])
    return kind


def check_rows(output: Any, **others: Any) -> None:
    """Raise where rows of partitions do not belong together, as far as can be seen.

    Parameters
    ----------
    output : array or DataFrame
        The classifier's output.
    **others
        What comes with it, by name; None is left out.
    """
    for name, other in others.items():
        if other is None:
            continue
        if len(other) != len(output):
            raise ValueError(
                f"A partition of {name} has {len(other)} rows, the same partition of the "
                f"classifier's output {len(output)}. Make both from one table, partition by "
                "partition."
            )
        index, known = getattr(other, "index", None), getattr(output, "index", None)
        if index is not None and known is not None and not index.equals(known):
            raise ValueError(
                f"The rows of a partition of {name} and of the classifier's output have different "
                "indexes. Make both from one table, in the same order."
            )


def _kind(name: str, value: Any) -> str:
    import dask.array as da
    import dask.dataframe as dd

    if isinstance(value, da.Array):
        return "array"
    if isinstance(value, dd.DataFrame | dd.Series):
        return "frame"
    raise TypeError(
        f"{name} must be a dask array or DataFrame; got {type(value).__name__}. For data in memory "
        "call the calibrator's own predict_proba."
    )


def _same_chunks(first: str, a: Any, name: str, b: Any) -> None:
    mine, theirs = a.chunks[0], b.chunks[0]
    unknown = any(size != size for size in (*mine, *theirs))  # nan: checked row by row later
    if len(mine) != len(theirs) or (not unknown and mine != theirs):
        raise ValueError(
            f"The rows of {first} and {name} lie in different chunks: {_shown(mine)} and "
            f"{_shown(theirs)}. Use {name}.rechunk({{0: {first}.chunks[0]}})."
        )


def _same_partitions(first: str, a: Any, name: str, b: Any) -> None:
    if a.npartitions != b.npartitions:
        raise ValueError(
            f"{first} has {a.npartitions} partitions and {name} {b.npartitions}. Make both from "
            "one DataFrame, or repartition both by the same divisions."
        )
    if a.known_divisions and b.known_divisions and a.divisions != b.divisions:
        raise ValueError(
            f"The partitions of {first} and {name} begin at different index values. Use "
            f"{name}.repartition(divisions={first}.divisions)."
        )


def _shown(sizes: tuple[Any, ...]) -> str:
    text = ", ".join(str(size) for size in sizes[:4])
    return f"({text}, ... {len(sizes)} in all)" if len(sizes) > 4 else f"({text})"
