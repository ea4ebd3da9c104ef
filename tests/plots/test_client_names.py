"""A file's own clients keep their names in pictures: axis, hover, sentence, table, menu and alt text."""

import numpy as np
import pytest

from fedlab_nb.data import federate
from fedlab_nb.data.registry import add_dataset, find_client_names_of_dataset_in_memory
from fedlab_nb.plots.marks import get_hover_texts_and_keys_by_mark_id
from fedlab_nb.plots.partition import describe_partition_or_selection, draw_partition
from fedlab_nb.plots.style import make_figure, set_client_x_ticks_and_label
from fedlab_nb.plots.words import (
    find_common_setting_or_empty,
    format_client_for_row,
    format_client_for_sentence,
    format_client_for_title,
    format_client_letters,
    make_client_axis_label,
    make_setting_caption,
)

WARDS = ["east", "Saint Mary's General Hospital", "north"]


def make_dataset(owners, seed=0):
    """Make random rows; row i belongs to the client owners[i]."""
    rng = np.random.default_rng(seed)
    x, y = rng.random((len(owners), 4)), np.arange(len(owners)) % 3
    return {
        "x_train": x,
        "y_train": y,
        "x_test": x[:9],
        "y_test": y[:9],
        "client_train": list(owners),
    }


def make_caption(name, clients, *more):
    """Make the caption of a run whose clients are the data set's own."""
    return make_setting_caption(
        {"dataset": name, "clients": clients, "partition": "natural", "seed": 0}, *more
    )


@pytest.fixture
def wards(forget_names):
    add_dataset("wards", make_dataset([WARDS[k % 3] for k in range(60)]))
    return make_caption("wards", 3)


def test_names_are_those_of_the_file_in_the_order_of_its_clients(wards):
    names = find_client_names_of_dataset_in_memory("wards", 3)
    assert sorted(names) == sorted(WARDS)
    assert (
        find_client_names_of_dataset_in_memory("wards", 4)
        == find_client_names_of_dataset_in_memory("others", 3)
        == ()
    )
    assert (
        format_client_for_title(names.index("north"), wards)
        == f"client {format_client_letters(names.index('north'))} (north)"
    )
    assert (
        format_client_for_row(names.index("east"), make_caption("wards", 3, "seed 1"))
        == f"{format_client_letters(names.index('east'))} (east)"
    )
    assert (
        format_client_for_row(0, make_caption("others", 3))
        == "client A"
        == format_client_for_title(0, str(wards) + " ")
    )
    client = names.index(WARDS[1])
    assert (
        format_client_for_title(client, wards)
        == f"client {format_client_letters(client)} (Saint Mary's Ge…)"
    )


def test_the_axis_lists_names_only_if_all_have_room(wards, forget_names):
    ax = make_figure().add_subplot()
    set_client_x_ticks_and_label(ax, 3, wards)
    assert ax.get_xlabel() == make_client_axis_label(wards) and "north" in ax.get_xlabel()
    add_dataset("numbered", make_dataset([k % 3 for k in range(60)]))  # numbers are no names
    assert find_client_names_of_dataset_in_memory("numbered", 3) == ()
    assert make_client_axis_label(make_caption("numbered", 3)) == "client"
    row = make_caption("wards", 3, "40 local epochs")  # for every seed the same clients
    assert find_common_setting_or_empty([row] * 3, range(3)) == wards
    assert find_common_setting_or_empty([row, make_caption("wards", 4)], [0]) == ""


def test_the_picture_of_the_partition_has_the_names(wards):
    federation = federate("wards", partition="natural")
    picture = draw_partition(federation, setting=wards)
    client = federation.dataset.client_names.index("north")
    assert picture.table[client]["client"] == f"{format_client_letters(client)} (north)"
    assert "north" in picture.alt
    # The text that is shown on hover.
    assert f"Client {format_client_letters(client)} (north)" in str(
        get_hover_texts_and_keys_by_mark_id(picture.figure)
    )
    assert describe_partition_or_selection(federation, client, None, wards).startswith(
        f"Client {format_client_letters(client)} (north) holds 20 samples"
    )
    largest_holder = int(np.argmax(np.asarray(federation.label_counts)[:, 0]))
    assert (
        f"client {format_client_for_sentence(largest_holder, wards)} holds"
        in describe_partition_or_selection(federation, None, 0, wards)
    )


def test_a_client_keeps_its_letter_and_its_name_when_others_are_away(wards):
    """On the axis and in the table, those that take no part behind the others."""
    caption = make_setting_caption(
        {"dataset": "digits", "clients": 4, "partition": "dirichlet", "alpha": 1, "absent": "1,"}
    )
    assert [format_client_for_sentence(column, caption) for column in range(4)] == [
        "A",
        "C",
        "D",
        "B",
    ]
    ax = make_figure().add_subplot()
    set_client_x_ticks_and_label(ax, 4, caption)
    assert [ax.xaxis.get_major_formatter()(column, 0) for column in range(5)] == [
        "A",
        "C",
        "D",
        "B",
        "",
    ]
    names = find_client_names_of_dataset_in_memory("wards", 3)
    unseen = make_setting_caption(
        {"dataset": "wards", "clients": 3, "partition": "natural", "seed": 0, "unseen": "A,"}
    )
    assert [format_client_for_row(column, unseen)[:6] for column in range(3)] == [
        f"{format_client_letters(k)} ({names[k][:3]}" for k in (1, 2, 0)
    ]
