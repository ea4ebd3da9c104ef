"""A sentence about an unknown name has the nearest names; of a long list it says where the list is."""

import pytest

from fedlab_nb.errors import FEW, UsageError, check_allowed_name

MANY = [f"name{k}" for k in range(FEW)] + ["alpha", "gamma"]


@pytest.mark.parametrize(
    "kind, name, allowed, present, missing",
    [
        ("setting", "name1x", MANY, ["'name1'", "fedlab-nb list"], ["name9", "gamma"]),
        ("setting of fens", "alfa", MANY, ["'alpha'", "fedlab-nb list"], ["name1"]),
        ("setting", "alfa", ["alpha", "gamma"], ["'alpha'", "gamma"], []),
        (
            "column",
            "alfa",
            MANY,
            ["'alpha'", "name1", "gamma"],
            ["fedlab-nb list"],
        ),  # listed nowhere else
    ],
)
def test_an_unknown_name_gets_the_nearest_ones(kind, name, allowed, present, missing):
    with pytest.raises(UsageError) as caught:
        check_allowed_name(kind, name, allowed)
    text = str(caught.value)
    assert all(word in text for word in present) and not any(word in text for word in missing)
