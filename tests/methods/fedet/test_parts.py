"""Parts of Fed-ET: common heads, averages by architecture, sampling of clients, public samples, augmentation."""

import functools

import method_runs
import numpy as np
import pytest
import torch
from method_runs import make_torch_generator

from fedlab_nb.methods.fedet import (
    assign_client_architectures,
    choose_larger_server_architecture,
    draw_clients_in_proportion_to_samples,
    repeat_shuffled_samples,
)
from fedlab_nb.methods.fedet.consensus import (
    CommonHeadNetwork,
    average_client_states_by_architecture,
    average_heads_unweighted,
    extract_head,
)
from fedlab_nb.methods.parts.images import (
    augment_images_randomly,
    choose_public_samples,
    find_sample_indices_of_lower_half_of_classes,
    resize_images_to_shape,
)
from fedlab_nb.models import build, copy_model_state, count_parameters, load_state
from fedlab_nb.training import Recipe, train_clients_in_place

KINDS = ["mlp", "cnn", "lenet5", "resnet8"]


def make_common_head_network(
    name, head="mlp", seed=0, shape=(1, 8, 8), classes=10, width=4, dtype=torch.float64
):
    base = build(
        name, shape, classes, width=width, generator=make_torch_generator(seed), dtype=dtype
    )
    return CommonHeadNetwork(base, 16, head, generator=make_torch_generator(seed + 1))


context = functools.partial(method_runs.make_context, clients=4, epochs=1)


# ------------------------------------------------------------------------------------------------------ common head
@pytest.mark.parametrize(
    "head, floats", [("mlp", 16 * 16 + 16 + 10 * 16 + 10), ("last-linear", 10 * 16 + 10)]
)
def test_heads_have_the_same_shapes_for_every_body(head, floats):
    heads = [extract_head(copy_model_state(make_common_head_network(name, head))) for name in KINDS]
    shapes = [{name: tuple(t.shape) for name, t in head_state.items()} for head_state in heads]
    assert all(shape == shapes[0] for shape in shapes)
    assert all(sum(t.numel() for t in head_state.values()) == floats for head_state in heads)


def test_a_network_with_common_head_is_body_adapter_and_head():
    net, x = (
        make_common_head_network("cnn"),
        torch.rand(3, 1, 8, 8, generator=make_torch_generator(), dtype=torch.float64),
    )
    state = copy_model_state(net)
    adapted = (net.body(x) @ state["adapter.0.weight"].T + state["adapter.0.bias"]).clamp(min=0)
    features = (adapted @ state["hidden.0.weight"].T + state["hidden.0.bias"]).clamp(min=0)
    torch.testing.assert_close(net.features(x), features)
    torch.testing.assert_close(
        net(x), features @ state["classifier.weight"].T + state["classifier.bias"]
    )
    assert net.architecture[:3] == ("cnn", (1, 8, 8), 10)
    assert net.architecture != make_common_head_network("cnn", "last-linear").architecture


@pytest.mark.parametrize("name", ["mlp", "resnet8"])
def test_networks_with_common_heads_train_the_same_on_both_backends(name):
    shards = [
        (
            torch.rand(n, 1, 8, 8, generator=make_torch_generator(n), dtype=torch.float64),
            torch.arange(n) % 10,
        )
        for n in (9, 14)
    ]
    recipe = Recipe(epochs=2, batch_size=4)
    looped, stacked = (
        train_clients_in_place(
            [make_common_head_network(name) for _ in shards],
            shards,
            recipe,
            seed=0,
            backend=backend,
        )
        for backend in ("loop", "stacked")
    )
    for looped_model, stacked_model in zip(looped, stacked, strict=True):
        mine = copy_model_state(looped_model)
        theirs = copy_model_state(stacked_model)
        for name_of_tensor in mine:
            torch.testing.assert_close(mine[name_of_tensor], theirs[name_of_tensor])


def test_states_are_averaged_by_architecture_and_heads_over_all_clients():
    states = [
        copy_model_state(make_common_head_network(name, seed=s))
        for s, name in enumerate(["mlp", "cnn", "mlp", "lenet5"])
    ]
    kinds = ["mlp", "cnn", "mlp", "lenet5"]
    table = {name: copy_model_state(make_common_head_network(name, seed=50)) for name in KINDS}
    head = average_heads_unweighted(states)
    for name, tensor in head.items():
        torch.testing.assert_close(tensor, sum(s[name] for s in states) / 4)
    means = average_client_states_by_architecture(table, states, kinds)
    for name, tensor in means["mlp"].items():  # unweighted, whatever their sample counts
        torch.testing.assert_close(tensor, (states[0][name] + states[2][name]) / 2)
    assert all(torch.equal(means["cnn"][n], states[1][n]) for n in states[1])
    assert all(
        torch.equal(means["resnet8"][n], table["resnet8"][n]) for n in table["resnet8"]
    )  # nobody brought one
    server = extract_head(copy_model_state(make_common_head_network("mlp", seed=99)))
    for kind, state in means.items():
        loaded = state | server
        load_state(make_common_head_network(kind), loaded)
        assert all(torch.equal(loaded[n], server[n] if n in server else state[n]) for n in loaded)


# ----------------------------------------------------------------------------------------------------- architectures
def test_architectures_are_dealt_in_turn_or_drawn():
    mixed = [("mlp", (1, 8, 8), 10, None), ("cnn", (1, 8, 8), 10, None)] * 20
    ctx = context(clients=40, models=("mlp", "cnn"))
    assert assign_client_architectures(ctx, "dealt") == mixed
    drawn_architectures = assign_client_architectures(ctx, "drawn")
    assert set(drawn_architectures) == set(mixed)
    assert drawn_architectures != mixed
    assert drawn_architectures == assign_client_architectures(ctx, "drawn")


def test_the_server_has_a_larger_network():
    ctx = context()
    for name, width in [("mlp", None), ("cnn", None), ("resnet8", 8)]:
        kind = (name, (1, 8, 8), 10, width)
        small, large = (
            count_parameters(ctx.build(k, make_torch_generator()))
            for k in (kind, choose_larger_server_architecture(ctx, [kind]))
        )
        assert large > 3 * small
    assert choose_larger_server_architecture(ctx, [("mlp", (1, 8, 8), 10, None)]) == (
        "mlp",
        (1, 8, 8),
        10,
        256,
    )
    assert choose_larger_server_architecture(ctx, [("mlp", (1, 8, 8), 10, None)], "lenet5", 9) == (
        "lenet5",
        (1, 8, 8),
        10,
        9,
    )


# ------------------------------------------------------------------------------------------------------ participation
def test_clients_are_drawn_in_proportion_to_their_samples():
    for number_that_means_all in (0, 7):
        assert draw_clients_in_proportion_to_samples(
            [3, 1, 2], number_that_means_all, make_torch_generator()
        ) == [
            0,
            1,
            2,
        ]
    draws = np.zeros(3)
    rng = make_torch_generator()
    for _ in range(3000):
        (k,) = draw_clients_in_proportion_to_samples([70, 20, 10], 1, rng)
        draws[k] += 1
    assert draws / 3000 == pytest.approx([0.7, 0.2, 0.1], abs=0.03)
    pairs = [draw_clients_in_proportion_to_samples([70, 20, 10, 5], 2, rng) for _ in range(50)]
    assert all(a < b for a, b in pairs)


def test_repeated_samples_occur_equally_often():
    x, y = torch.arange(7.0)[:, None], torch.arange(7)
    repeated, labels = repeat_shuffled_samples(x, y, 20, make_torch_generator())
    assert torch.equal(repeated[:, 0].long(), labels) and len(labels) == 20
    assert sorted(labels[:7].tolist()) == sorted(labels[7:14].tolist()) == list(range(7))
    assert set(torch.bincount(labels).tolist()) == {2, 3}
    assert len(set(repeat_shuffled_samples(x, y, 3, make_torch_generator())[1].tolist())) == 3


# ------------------------------------------------------------------------------------------------------------- public
@pytest.mark.slow
def test_public_samples_by_source():
    ctx = context()
    assert torch.equal(choose_public_samples(ctx, "held-out"), ctx.public)
    few = choose_public_samples(ctx, "held-out", 36)
    assert few.shape == (36, 1, 8, 8) and torch.equal(
        few, choose_public_samples(ctx, "held-out", 36)
    )
    assert all((ctx.public == image).flatten(1).all(1).any() for image in few)
    noise = choose_public_samples(ctx, "noise", 50)
    assert noise.shape == (50, 1, 8, 8)
    assert 0.4 < noise.mean() < 0.6
    assert 0 <= noise.min()
    assert noise.max() <= 1
    letters = choose_public_samples(ctx, "glyphs", 20)
    assert letters.shape == (20, 1, 8, 8) and 0 <= letters.min() and letters.max() <= 1
    # No training image is used, even if the clients have the same data set.
    assert torch.equal(choose_public_samples(ctx, "digits"), ctx.public)


def test_the_lower_half_of_the_classes_is_found():
    def find_indices(*labels):
        return find_sample_indices_of_lower_half_of_classes(torch.tensor(labels)).tolist()

    assert find_indices(0, 9, 4, 5, 2, 2) == [0, 2, 4, 5]
    assert find_indices(8, 7, 8) == [1]
    assert find_indices(9, 9) == [0, 1]


def test_images_are_resized_in_size_and_channels():
    grey = torch.rand(2, 1, 8, 8, generator=make_torch_generator())
    assert torch.equal(resize_images_to_shape(grey, (3, 8, 8)), grey.expand(-1, 3, -1, -1))
    colour = torch.rand(2, 3, 8, 8, generator=make_torch_generator())
    torch.testing.assert_close(
        resize_images_to_shape(colour, (1, 8, 8)), colour.mean(1, keepdim=True)
    )
    assert resize_images_to_shape(colour, (3, 28, 20)).shape == (2, 3, 28, 20)
    torch.testing.assert_close(
        resize_images_to_shape(torch.full((1, 1, 32, 32), 0.3), (3, 8, 8)),
        torch.full((1, 3, 8, 8), 0.3),
    )


def test_augmentation_crops_mirrors_and_changes_colours():
    x = torch.rand(40, 3, 8, 8, generator=make_torch_generator())
    assert not torch.equal(augment_images_randomly(x, make_torch_generator()), x)
    assert torch.equal(
        augment_images_randomly(x, make_torch_generator()),
        augment_images_randomly(x, make_torch_generator()),
    )
    # Without colours to change, every image is a window of the padded one, or of its mirror image.
    transformed = augment_images_randomly(
        x, make_torch_generator(), padding_in_pixels=2, jitter_share=0.0, grey_probability=0.0
    )
    kinds = set()
    for before, after in zip(x, transformed, strict=True):
        matching = [
            (mirrored, i, j)
            for mirrored, image in ((False, before), (True, before.flip(-1)))
            for i in range(5)
            for j in range(5)
            if torch.allclose(
                torch.nn.functional.pad(image, (2,) * 4)[:, i : i + 8, j : j + 8], after, atol=1e-6
            )
        ]
        assert len(matching) == 1
        kinds.add(matching[0])
    assert {k[0] for k in kinds} == {False, True} and len(kinds) > 20
    assert (
        augment_images_randomly(
            x, make_torch_generator(), padding_in_pixels=0, jitter_share=0.0, grey_probability=1.0
        )
        .std(1)
        .max()
        < 1e-6
    )
    plain = torch.rand(5, 1, 8, 8, generator=make_torch_generator())
    assert augment_images_randomly(plain, make_torch_generator()).shape == plain.shape
