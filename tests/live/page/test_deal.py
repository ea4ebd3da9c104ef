"""Who gets which sample in the browser: to the sample what Python deals out, for settings of all kinds."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from javascript import run_javascript

from fedlab_nb.data import federate, load
from fedlab_nb.data.partition import partition_samples
from fedlab_nb.rng import derive_stream_seed, make_numpy_generator

ALPHAS = (0.001, 0.01, 0.05, 0.0999, 0.1, 0.3, 1.0, 2.5, 10.0, 1000.0)


def test_streams_have_the_packages_seeds():
    names = [(0, "partition"), (4, "batches", 9), (2**31, "holdout", 19)]
    shown = run_javascript("learn", "return names.map((n) => seedFor(...n))", names=names)
    for name, (low, high) in zip(names, shown, strict=True):
        assert low + (high << 32) == derive_stream_seed(*name)


def test_the_digits_are_dealt_out_and_held_out_as_in_python():
    cases = []
    for alpha in ALPHAS:
        for clients, seed in ((2, 5), (10, 4), (20, 1)):
            cases.append((alpha, clients, seed))
    labels = load("digits").y_train.tolist()
    code = """return cases.map(([alpha, clients, seed]) => {
        const shards = deal(labels, clients, alpha, seed);
        return { shards, parts: shards.map((shard, k) => split(shard, seed, k)) };
    })"""
    answer = run_javascript("learn deal", code, cases=cases, labels=labels)
    for (alpha, clients, seed), shown in zip(cases, answer, strict=True):
        federation = federate("digits", alpha=alpha, clients=clients, seed=seed)
        shards = [shard.tolist() for shard in federation.shards]
        assert shown["shards"] == shards, (alpha, clients, seed)
        for parts, (train, held_out) in zip(shown["parts"], federation.split(0.1), strict=True):
            assert parts["train"] == train.tolist()
            assert parts["held"] == held_out.tolist()


@st.composite
def any_case(draw):
    """Labels, and clients, alpha and seed to deal them out with."""
    labels = draw(st.lists(st.integers(0, 5), min_size=1, max_size=60))
    clients = draw(st.integers(1, len(labels)))
    alpha = draw(st.sampled_from(ALPHAS))
    seed = draw(st.integers(0, 2**31))
    return labels, clients, alpha, seed


@settings(max_examples=3, deadline=None)
@given(st.lists(any_case(), min_size=30, max_size=30))
def test_any_labels_are_dealt_out_as_in_python(cases):
    code = "return cases.map(([labels, m, alpha, seed]) => deal(labels, m, alpha, seed))"
    answers = run_javascript("learn deal", code, cases=cases)
    for (labels, clients, alpha, seed), shown in zip(cases, answers, strict=True):
        stream = make_numpy_generator(seed, "partition")
        partition = partition_samples(np.array(labels), 6, clients, stream, alpha=alpha)
        assert shown == [shard.tolist() for shard in partition.shards]
