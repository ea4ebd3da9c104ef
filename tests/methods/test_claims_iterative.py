"""The classroom settings of the iterative methods on the bundled digits: learnt, and told apart. No ranking is claimed.

The papers' orderings between iterative methods are not asserted: none of them is safe on small data.
"""

import pytest

from fedlab_nb.study import compare

NAMES = ("fedavg_multi", "fedprox", "scaffold", "fednova", "fedadam", "fedyogi", "moon", "dsfl")


@pytest.fixture(scope="module")
def outcomes():
    return compare(NAMES, seeds=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_well_above_chance(outcomes, name):
    """Ten classes; the least mean of three seeds that was seen is 0.66."""
    assert outcomes.mean(name) > 0.45


@pytest.mark.slow
def test_round_by_round_they_leave_one_round_of_fedavg_behind(outcomes):
    """The reason for more rounds; the smallest gap of means that was seen is 0.36."""
    one = compare("fedavg", seeds=3).mean("fedavg")
    assert min(outcomes.mean(name) for name in NAMES) > one + 0.2


@pytest.mark.slow
def test_scaffold_sends_twice_as_much(outcomes):
    totals = {o.method: o.ledger.total for o in outcomes if o.settings.seed == 0}
    assert totals["scaffold"] == 2 * totals["fedavg_multi"] == 2 * totals["fedadam"]
