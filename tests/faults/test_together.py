"""Several processes that write the same file."""

from __future__ import annotations

import errno
import json
import time

import pytest
from tests.faults import processes
from tests.faults.commands import commands, litter, whole
from tests.faults.test_kills import wait_for
from tests.patience import PATIENCE

import hetcal
from hetcal._exceptions import FileWriteError, InputError
from hetcal.persistence import locks
from hetcal.persistence.locks import locked

N_PROCESSES, N_UPDATES, N_ROWS = 3, 3, 60


@pytest.mark.processes
def test_no_update_of_a_history_is_lost(made, tmp_path, started):
    history = tmp_path / "watch.hetcal"
    given = (str(made / "swc.hetcal"), str(made / "new.csv"), str(history), N_UPDATES)
    crowd = [started(processes.monitor_often, *given) for _ in range(N_PROCESSES)]
    for process in crowd:
        process.join(PATIENCE)
    assert [process.exitcode for process in crowd] == [0] * N_PROCESSES
    monitor = hetcal.load(history)
    n_updates = N_PROCESSES * N_UPDATES
    assert monitor.n_seen_ == n_updates * N_ROWS
    assert monitor.frame()["seen"].tolist() == [N_ROWS * (i + 1) for i in range(n_updates)]
    assert (
        sum(s.n_seen for s in monitor.counts_.streams.of_kind("class").values())
        == n_updates * N_ROWS
    )
    assert litter(tmp_path) == []


@pytest.mark.processes
def test_a_killed_holder_of_the_lock_keeps_nobody_out(tmp_path, started):
    path, flag = tmp_path / "watch.hetcal", tmp_path / "now"
    holder = started(processes.hold, str(path), str(flag))
    wait_for(flag, holder)
    too_long = pytest.raises(InputError, match="another process has been writing it for 0.1 sec")
    with too_long, locked(path, wait=0.1):
        pass
    holder.kill()
    holder.join()
    told = []
    with locked(path, wait=PATIENCE, waiting=lambda: told.append(1)):
        assert not told or told == [1]


def test_a_lock_makes_no_folder(tmp_path):
    with pytest.raises(FileWriteError, match="Create its folder first"), locked(tmp_path / "a/b"):
        pass
    assert not (tmp_path / "a").exists()


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    def missing(handle, blocking):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(locks, "lock_descriptor", missing)
    with pytest.raises(FileWriteError, match="has no locks"), locked(tmp_path / "watch.hetcal"):
        pass


@pytest.mark.processes
def test_the_command_says_that_it_had_to_wait(made, tmp_path, started, capsys):
    path, flag = tmp_path / "watch.hetcal", tmp_path / "now"
    holder = started(processes.hold, str(path), str(flag))
    wait_for(flag, holder)
    arguments, _ = commands(made, tmp_path)["monitor"]
    with pytest.raises(SystemExit) as end:
        hetcal.cli.main([*map(str, arguments), "--wait", "0"])
    holder.kill()
    holder.join()
    assert end.value.code == 2
    assert "another process has been writing" in " ".join(capsys.readouterr().err.split())
    assert not path.exists()


@pytest.mark.processes
@pytest.mark.parametrize("name", ["apply-csv", "apply-parquet", "fit"])
def test_the_same_output_is_that_of_one_of_them(name, made, tmp_path, started):
    arguments, file = commands(made, tmp_path)[name]
    crowd = [started(processes.run, [str(a) for a in arguments]) for _ in range(4)]
    while any(process.is_alive() for process in crowd):
        if (tmp_path / file).exists():
            whole(tmp_path / file)  # at any moment
        time.sleep(0.01)
    assert [process.exitcode for process in crowd] == [0] * 4
    assert whole(tmp_path / file) == N_ROWS or name == "fit"
    assert litter(tmp_path) == []


@pytest.mark.processes
def test_without_overwrite_the_first_one_wins(made, tmp_path, started):
    arguments, file = commands(made, tmp_path)["apply-csv"]
    given = [str(a) for a in arguments if a != "--overwrite"]
    crowd = [started(processes.run, given) for _ in range(4)]
    for process in crowd:
        process.join(PATIENCE)
    assert sorted(process.exitcode for process in crowd) == [0, 2, 2, 2]
    assert whole(tmp_path / file) == N_ROWS
    assert litter(tmp_path) == []


def test_machines_read_the_counts(made, tmp_path, capsys):
    arguments, _ = commands(made, tmp_path)["monitor"]
    for times in (1, 2):
        with pytest.raises(SystemExit):
            hetcal.cli.main([*map(str, arguments), "--json"])
        assert json.loads(capsys.readouterr().out)["seen"] == times * N_ROWS
