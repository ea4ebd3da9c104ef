"""Runs as a view's work: every seed comes back, progress goes up, a failed choice is told or kept."""

from __future__ import annotations

import pytest
from watched import watched

from fedlab_nb.errors import UsageError
from fedlab_nb.labs.runs import one_run, tries

SETTINGS = {"dataset": "digits", "alpha": 0.5, "clients": 2, "seed": 0, "seeds": 2, "epochs": 1}


def test_one_run_gives_every_seed_and_its_progress():
    outcomes, seen = watched(one_run("fedavg", SETTINGS, "plain", 1, 3))
    assert sorted(outcomes) == [0, 1] and all(o.method == "fedavg" for o in outcomes.values())
    done = [d for d, _, _ in seen]
    assert done == sorted(done) and done[0] >= 100 and done[-1] == 200 and {t for _, t, _ in seen} == {300}
    assert all(words.startswith("plain, ") for _, _, words in seen)


def test_tries_go_on_after_a_failure_where_it_is_to_be_kept():
    choices = {"two": {"clients": 2}, "none": {"clients": 0}}
    failures = {}
    outcomes, _ = watched(tries("fedavg", {**SETTINGS, "seeds": 1}, choices, failures))
    assert list(outcomes) == ["two"] and isinstance(failures["none"], UsageError)
    with pytest.raises(UsageError):
        watched(tries("fedavg", {**SETTINGS, "seeds": 1}, choices))
    with pytest.raises(UsageError):
        watched(tries("fedavg", SETTINGS, {"none": {"clients": 0}}, {}))
