"""The link that panels and the page share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlab_nb.data import federate
from fedlab_nb.errors import UsageError
from fedlab_nb.panels import playground
from fedlab_nb.panels.link import make_link, parse_settings_of_link

METHODS = st.lists(st.sampled_from(["afl", "fens"]), min_size=1)


@given(st.floats(1e-3, 1e3), st.integers(1, 100), st.integers(0, 2**31), METHODS)
def test_a_link_is_read_back_as_it_was_written(alpha, clients, seed, methods):
    settings = {"dataset": "glyphs:16g", "alpha": alpha, "clients": clients, "seed": seed}
    assert parse_settings_of_link(make_link(settings, methods)) == settings | {"methods": methods}


def test_a_panel_begins_where_a_link_says_and_makes_the_same_link(make_panel):
    link = (
        "https://x.example/playground.html#alpha=0.3&m=4&seed=7&methods=afl,fens&image=t5&client=2"
    )
    panel = make_panel(kind=playground, methods=None, link=link)
    settings = panel.controls.read_settings_for_study_job()
    assert (settings["alpha"], settings["clients"], settings["seed"]) == (0.3, 4, 7)
    assert sorted(panel.methods) == ["afl", "fens"]
    assert panel.link("p.html") == f"p.html#alpha=0.3&m=4&seed=7&methods={','.join(panel.methods)}"
    assert (
        make_panel(kind=playground, methods=None, link=panel.link(), alpha=1.0)
        .link()
        .startswith("playground.html#alpha=1.0&m=4&seed=7")
    )


def test_moves_by_hand_go_through_the_link(make_panel):
    panel = make_panel(
        kind=playground, methods=None, link="#alpha=0.1&m=10&seed=4&moves=E%3ED,B0>C&methods=afl"
    )
    assert panel.link("p.html") == "p.html#alpha=0.1&m=10&seed=4&moves=E>D,B0>C&methods=afl"
    expected = federate("digits", alpha=0.1, clients=10, seed=4, moves="E>D,B0>C")
    shards = panel._state.federation.shards
    assert [shard.tolist() for shard in shards] == [shard.tolist() for shard in expected.shards]


def test_old_names_are_read_and_a_text_that_is_no_link_is_refused():
    assert parse_settings_of_link("#alpha=0.05&clients=5") == {"alpha": 0.05, "clients": 5}
    for text in ("", "alpha=1", "https://x.example/", "#image=5"):
        with pytest.raises(UsageError, match="no link"):
            parse_settings_of_link(text)
    with pytest.raises(UsageError, match="alpha"):
        playground(link="#alpha=much")
