"""Who gets which sample in the browser: to the sample what Python deals out, for settings of all kinds."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from javascript import javascript

from fedlab_nb.data import federate, load
from fedlab_nb.data.partition import partition_samples
from fedlab_nb.rng import derive_stream_seed, make_numpy_generator

ALPHAS = (0.001, 0.01, 0.05, 0.0999, 0.1, 0.3, 1.0, 2.5, 10.0, 1000.0)


def test_streams_have_the_packages_seeds():
    names = [(0, "partition"), (4, "batches", 9), (2**31, "holdout", 19)]
    shown = javascript("learn", "return names.map((n) => seedFor(...n))", names=names)
    for own, (low, high) in zip(names, shown, strict=True):
        assert low + (high << 32) == derive_stream_seed(*own)


def test_the_digits_are_dealt_out_and_held_out_as_in_python():
    cases = [
        (alpha, clients, seed) for alpha in ALPHAS for clients, seed in ((2, 5), (10, 4), (20, 1))
    ]
    labels = load("digits").y_train.tolist()
    code = "return cases.map(([a, m, s]) => deal(labels, m, a, s).map((own, k) => [own, split(own, s, k)]))"
    answer = javascript("learn deal", code, cases=cases, labels=labels)
    for (alpha, clients, seed), shown in zip(cases, answer, strict=True):
        federation = federate("digits", alpha=alpha, clients=clients, seed=seed)
        assert [own for own, _ in shown] == [own.tolist() for own in federation.shards], (
            alpha,
            clients,
            seed,
        )
        for (_, parts), (train, held) in zip(shown, federation.split(0.1), strict=True):
            assert (parts["train"], parts["held"]) == (train.tolist(), held.tolist())


@st.composite
def any_labels(draw):
    labels = draw(st.lists(st.integers(0, 5), min_size=1, max_size=60))
    return (
        labels,
        draw(st.integers(1, len(labels))),
        draw(st.sampled_from(ALPHAS)),
        draw(st.integers(0, 2**31)),
    )


@settings(max_examples=3, deadline=None)
@given(st.lists(any_labels(), min_size=30, max_size=30))
def test_any_labels_are_dealt_out_as_in_python(cases):
    code = "return cases.map(([labels, m, a, s]) => deal(labels, m, a, s))"
    for (labels, clients, alpha, seed), shown in zip(
        cases, javascript("learn deal", code, cases=cases), strict=True
    ):
        own = partition_samples(
            np.array(labels), 6, clients, make_numpy_generator(seed, "partition"), alpha=alpha
        ).shards
        assert shown == [shard.tolist() for shard in own]
