"""Generators of samples: sizes, ranges, the papers' parameter count, and weights that depend on the seed alone."""

import pytest
import torch

from fedlab_nb.errors import UsageError
from fedlab_nb.models.generators import build_generator, initialise_generator_in_place


def make_seeded_generator(shape, seed=0, **options):
    return build_generator(shape, generator=torch.Generator().manual_seed(seed), **options)


def test_the_papers_generator_has_2328899_parameters():
    generator = make_seeded_generator((3, 32, 32), width=64, latent=256)
    assert sum(p.numel() for p in generator.parameters()) == 2_328_899


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 9, 14), (1, 17, 8)])
def test_images_of_any_size_lie_in_0_to_1(shape):
    x = make_seeded_generator(shape, width=4, latent=16)(
        torch.randn(6, 16, generator=torch.Generator().manual_seed(1))
    ).detach()
    assert x.shape == (6, *shape) and 0 <= float(x.min()) and float(x.max()) <= 1


def test_rows_are_standardised_over_the_batch():
    x = make_seeded_generator((13,), width=4, latent=16)(
        torch.randn(50, 16, generator=torch.Generator().manual_seed(1))
    )
    assert x.shape == (50, 13)
    torch.testing.assert_close(x.mean(0), torch.zeros(13), rtol=0, atol=1e-5)
    torch.testing.assert_close(x.var(0, correction=0), torch.ones(13), rtol=0, atol=0.05)


@pytest.mark.parametrize("shape", [(1, 8, 8), (13,)])
def test_initial_weights_depend_on_the_random_stream_alone(shape):
    state = torch.get_rng_state()
    single = make_seeded_generator(shape)
    double = make_seeded_generator(shape, dtype=torch.float64)
    assert torch.equal(state, torch.get_rng_state())
    for a, b in zip(single.parameters(), double.parameters(), strict=True):
        assert torch.equal(a.double(), b)
    stream = torch.Generator().manual_seed(0)
    initialised = make_seeded_generator(shape, seed=7)
    initialised(torch.randn(8, 256))  # moves running statistics
    initialise_generator_in_place(initialised, stream)
    for (name, a), (_, b) in zip(
        single.state_dict().items(), initialised.state_dict().items(), strict=True
    ):
        assert torch.equal(a, b), name
    initialise_generator_in_place(
        initialised, stream
    )  # the stream goes on, so the weights are others
    assert not torch.equal(next(single.parameters()), next(initialised.parameters()))


def test_initial_weights_have_the_papers_spread():
    g = make_seeded_generator((3, 32, 32))
    weights = {name: p for name, p in g.named_parameters() if name.endswith("weight")}
    flat = torch.cat([p.flatten() for p in weights.values() if p.dim() > 1]).detach()
    scales = torch.cat([p for p in weights.values() if p.dim() == 1]).detach()
    assert float(flat.std()) == pytest.approx(0.02, rel=0.01)
    assert abs(float(flat.mean())) < 1e-4
    assert float(scales.mean()) == pytest.approx(1, abs=0.01)
    assert float(scales.std()) == pytest.approx(0.02, rel=0.3)
    assert all(not p.any() for name, p in g.named_parameters() if name.endswith("bias"))


def test_a_width_of_0_is_refused():
    with pytest.raises(UsageError, match="width of the generator is 0"):
        make_seeded_generator((1, 8, 8), width=0)
