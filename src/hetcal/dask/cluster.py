"""Where the work is done: a cluster that is there, or processes of this machine."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

from hetcal._exceptions import InputError
from hetcal._version import __version__
from hetcal.dask._needs import need_dask

#: Seconds to wait for a scheduler, and for its first worker.
PATIENCE = 10.0
_CLOSING = 20.0


@contextlib.contextmanager
def connected(
    scheduler: str | None = None, *, workers: int | None = None, patience: float = PATIENCE
) -> Iterator[Any]:
    """Connect with a scheduler, or start one with worker processes on this machine.

    Parameters
    ----------
    scheduler : str, optional
        Its address, such as ``tcp://10.0.0.5:8786``.
    workers : int, optional
        Processes to start where there is no scheduler; by default one per core.
    patience : float, default=10
        Seconds to wait for an answer.
    """
    need_dask()
    from distributed import Client

    if scheduler is None:
        with _local_cluster(workers) as cluster:
            client = Client(cluster, set_as_default=False)
            with _closed_in_the_end(client):
                yield client
        return
    if workers is not None:
        raise InputError("--workers is for processes of this machine; leave it or --scheduler out.")
    client = _client_of(scheduler, patience)
    with _closed_in_the_end(client):
        _wait_for_workers(client, scheduler, patience)
        check_workers(client)
        yield client


def check_workers(client: Any) -> None:
    """Raise where a worker lacks hetcal, or has another version of it."""

    # Defined here, so that it travels by value to workers without hetcal.
    def version() -> str | None:
        try:
            from hetcal import __version__ as found
        except ImportError:
            return None
        return found

    for address, found in client.run(version).items():
        if found is None:
            raise RuntimeError(
                f"hetcal is not installed on the worker {address}. Install hetcal {__version__} "
                "where the scheduler and the workers run: pip install 'hetcal[dask]'."
            )
        if found != __version__:
            raise RuntimeError(
                f"The worker {address} has hetcal {found}, this is {__version__}. Install the same "
                "version everywhere, so that results are the same."
            )


@contextlib.contextmanager
def _local_cluster(workers: int | None) -> Iterator[Any]:
    from distributed import LocalCluster

    with _interrupts_ignored_by_children():
        cluster = LocalCluster(
            n_workers=workers or _cores(),
            threads_per_worker=1,  # cores are used by processes
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    with _closed_in_the_end(cluster):
        yield cluster


@contextlib.contextmanager
def _interrupts_ignored_by_children() -> Iterator[None]:
    """Let processes that are started meanwhile ignore Ctrl-C, which a terminal sends to all.

    This one ends the workers, and they need not each say that they were interrupted.
    """
    if threading.current_thread() is not threading.main_thread():  # only there it can be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _cores() -> int:
    from dask.system import CPU_COUNT

    return CPU_COUNT


def _client_of(scheduler: str, patience: float) -> Any:
    from distributed import Client

    try:
        _check_reachable(scheduler, patience)
        with _quiet():
            return Client(scheduler, timeout=patience, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ConnectionError(
            f"No dask scheduler answers at {scheduler} ({_brief(error)}). Start one with: dask "
            "scheduler, and pass the address that it prints, such as tcp://10.0.0.5:8786."
        ) from error


def _check_reachable(scheduler: str, patience: float) -> None:
    """Raise where nothing listens; a client would wait for an answer and then for its own end."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    scheme, place = parse_address(scheduler)
    get_backend(scheme)  # a wrong scheme is no matter of waiting
    if scheme in ("tcp", "tls"):
        host, port = parse_host_port(place)  # without a port: ValueError
        socket.create_connection((host, port), timeout=patience).close()


def _wait_for_workers(client: Any, scheduler: str, patience: float) -> None:
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError as error:
        raise ConnectionError(
            f"The dask scheduler at {scheduler} has no worker. Start some with: dask worker "
            f"{scheduler}."
        ) from error


@contextlib.contextmanager
def _closed_in_the_end(thing: Any) -> Iterator[None]:
    try:
        yield
    finally:
        # A scheduler that is gone, or a worker that is slow to end, is no error of the work.
        with _quiet(), contextlib.suppress(TimeoutError, OSError):
            thing.close(timeout=_CLOSING)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep dask's own account of a lost connection out of the way; the error says it."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:120] or type(error).__name__
