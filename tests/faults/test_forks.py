"""A forked process goes on with what its parent has fitted, also where OpenMP was used before.

GNU's OpenMP waits for ever in a child for threads that only the parent has; so each test runs in
a process of its own, which uses several threads, forks, and gives its child a time limit.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

SCRIPT = """
import os, signal, sys, warnings
import numpy as np
import hetcal
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.similarity import EuclideanSimilarity
from sklearn.neighbors import NearestNeighbors

warnings.simplefilter("ignore")
cal = make_hidden_heterogeneity(150, heterogeneity=1.0, random_state=0)
new = cal.sample(300, random_state=1)
# Uses OpenMP with more than one thread, as other code in the parent may have done.
NearestNeighbors(algorithm="brute").fit(new.X).kneighbors(new.X)

def models():
    return {
        "platt": hetcal.PlattScaling(),
        "swc": hetcal.SimilarityCalibrator(n_jobs=2),
        "euclidean": hetcal.SimilarityCalibrator(EuclideanSimilarity(), n_neighbors=10),
        "swc-hh": hetcal.get_calibrator(
            "swc-hh", heterogeneity=hetcal.HiddenHeterogeneity(learners=["linear"])
        ),
        "hybrid": hetcal.HybridCalibrator(
            ("proximity", "neighbours", "boosting"), n_estimators=20, n_jobs=2
        ),
    }

def fitted():
    made = models()
    for m in made.values():
        m.fit(cal.X, cal.y, y_proba=cal.y_proba)
    made["hybrid"].predict_proba(new.X, y_proba=new.y_proba)
    return made

def asked(made):
    found = {n: m.predict_proba(new.X, y_proba=new.y_proba) for n, m in made.items()}
    monitor = hetcal.SupportMonitor(made["swc"]).fit(cal.X, y_proba=cal.y_proba)
    found["monitor"] = monitor.update(new.X, y_proba=new.y_proba).to_numpy(dtype=float)
    return found

def equal(a, b):
    return all(np.array_equal(a[name], b[name]) for name in b)

mine = fitted()
expected = asked(mine)
child = os.fork()
if child == 0:
    signal.alarm(int(sys.argv[1]))
    if not equal(asked(mine), expected):
        os._exit(3)
    os._exit(0 if equal(asked(fitted()), expected) else 4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def in_a_new_process(code, **environment):
    """Run the code, whose forked child has ``PATIENCE`` seconds."""
    return subprocess.run(
        [sys.executable, "-c", code, str(int(PATIENCE))],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )


@pytest.mark.processes
def test_a_forked_process_gives_the_same_results():
    done = in_a_new_process(SCRIPT, OMP_NUM_THREADS="2")
    meaning = {0: "same", 3: "predicts otherwise", 4: "fits otherwise", -14: "waits for ever"}
    assert done.returncode == 0, done.stderr
    assert meaning.get(int(done.stdout), done.stdout) == "same"


LOCKED = """
import os, signal, sys, threading, warnings
import hetcal
from hetcal._threads import lock_of
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.similarity import ForestProximity

warnings.simplefilter("ignore")
cal = make_hidden_heterogeneity(150, heterogeneity=1.0, random_state=0)
swc = hetcal.SimilarityCalibrator(ForestProximity(20)).fit(cal.X, cal.y, y_proba=cal.y_proba)
monitor = hetcal.SupportMonitor(swc).fit(cal.X, y_proba=cal.y_proba)
held, done = threading.Event(), threading.Event()

def hold():
    with lock_of(swc), lock_of(monitor):
        held.set()
        done.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(int(sys.argv[1]))
    monitor.extend(cal.X, cal.y, y_proba=cal.y_proba)
    monitor.update(cal.X, y_proba=cal.y_proba)
    swc.fit(cal.X, cal.y, y_proba=cal.y_proba)
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
done.set()
thread.join()
print(code)
"""


@pytest.mark.processes
def test_a_forked_process_does_not_wait_for_the_locks_of_threads_that_it_does_not_have():
    done = in_a_new_process(LOCKED)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 0
