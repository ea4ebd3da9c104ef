"""FedCVAE-Ens: the loss against closed forms, training alone and with others, generated samples, bytes."""

import functools
import math

import byte_formulas
import method_runs
import pytest
import torch
import torch.nn.functional as F
from collected_steps import run_and_collect_steps
from method_runs import make_torch_generator

from fedlab_nb.methods.fedcvae import (
    TRUNCATION,
    Cvae,
    FedCVAE,
    compute_negative_elbo_per_sample,
    generate_samples_of_labels,
    train_cvaes_in_place,
)

EXACT = torch.float64
QUICK = {"steps": 20, "samples": 200, "server_epochs": 2}


context = functools.partial(method_runs.make_context, alpha=0.3, epochs=1)


# ------------------------------------------------------------------------------------------------ the loss
def test_loss_against_torchs_own_kl_and_cross_entropy():
    x = torch.rand(5, 12, generator=make_torch_generator(), dtype=EXACT)
    one_hot = F.one_hot(torch.arange(5), 5).to(EXACT)
    noise = torch.randn(5, 3, generator=make_torch_generator(1), dtype=EXACT)
    cvae = Cvae((1, 3, 4), 5, latent=3, hidden=7, stream=make_torch_generator(2)).to("cpu", EXACT)
    mean, log_variance = cvae.encoder(torch.cat([x, one_hot], 1)).split(3, 1)
    q = torch.distributions.Normal(mean, (log_variance / 2).exp())
    kl = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum(1)
    decoded = cvae.decoder(torch.cat([mean + q.stddev * noise, one_hot], 1))
    bernoulli_likelihood = (
        torch.distributions.Bernoulli(logits=decoded, validate_args=False).log_prob(x).sum(1)
    )
    torch.testing.assert_close(
        compute_negative_elbo_per_sample(
            cvae.encoder, cvae.decoder, x, one_hot, noise, are_pixels=True
        ),
        kl - bernoulli_likelihood,
    )
    normal_likelihood = torch.distributions.Normal(decoded, 1.0).log_prob(x).sum(1)
    normal_likelihood += 12 / 2 * math.log(2 * math.pi)  # the method leaves the constant out
    torch.testing.assert_close(
        compute_negative_elbo_per_sample(
            cvae.encoder, cvae.decoder, x, one_hot, noise, are_pixels=False
        ),
        kl - normal_likelihood,
    )


def test_a_client_trains_the_same_alone_with_others_and_in_a_plain_loop():
    stream = make_torch_generator()
    shards = [
        (torch.rand(n, 1, 2, 3, generator=stream, dtype=EXACT), torch.arange(n) % 4)
        for n in (9, 30)
    ]

    def make_cvaes():
        return [
            Cvae((1, 2, 3), 4, latent=2, hidden=5, stream=make_torch_generator(k)).to("cpu", EXACT)
            for k in range(2)
        ]

    def train(cvaes, client_ids):
        streams = [make_torch_generator(10 + k) for k in client_ids]
        client_shards = [shards[k] for k in client_ids]
        return list(
            train_cvaes_in_place(cvaes, client_shards, streams, steps=6, batch_size=4, lr=0.01)
        )

    trained_together = make_cvaes()
    trained_alone = make_cvaes()[1]
    plain = make_cvaes()[1]
    losses = train(trained_together, [0, 1])
    train([trained_alone], [1])
    stream = make_torch_generator(11)
    x, y = shards[1]
    optimizer = torch.optim.Adam(
        [*plain.encoder.parameters(), *plain.decoder.parameters()], lr=0.01
    )
    batches = torch.randint(30, (6, 4), generator=stream)
    noises = torch.randn(6, 4, 2, generator=stream).to(EXACT)
    for step, (rows, noise) in enumerate(zip(batches, noises, strict=True)):
        loss = compute_negative_elbo_per_sample(
            plain.encoder,
            plain.decoder,
            x[rows].flatten(1),
            F.one_hot(y[rows], 4).to(x),
            noise,
            are_pixels=True,
        )
        torch.testing.assert_close(losses[step][1], loss.mean())
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()
    for part in ("encoder", "decoder"):
        trios = (getattr(c, part).parameters() for c in (trained_together[1], trained_alone, plain))
        for a, b, c in zip(*trios, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
            torch.testing.assert_close(a, c, rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------------------------ the server
def test_generated_samples_have_the_right_shape_range_and_prior():
    images = Cvae((1, 4, 4), 3, latent=2, hidden=8, stream=make_torch_generator())
    x = generate_samples_of_labels(
        images.decoder, torch.tensor([0, 2, 2]), 2, (1, 4, 4), 3, make_torch_generator(1)
    )
    assert x.shape == (3, 1, 4, 4) and 0 < x.min() and x.max() < 1

    class ShowLatent(torch.nn.Linear):
        """A decoder that returns its input."""

        def forward(self, latent_and_label):
            return latent_and_label

    latent = generate_samples_of_labels(
        ShowLatent(1, 1), torch.zeros(4000, dtype=torch.long), 5, (7,), 2, make_torch_generator(2)
    )[:, :5]
    assert latent.abs().max() <= TRUNCATION
    assert latent.std().item() == pytest.approx(
        0.880, abs=0.01
    )  # of a standard normal truncated at 2


def test_only_decoders_and_counts_go_up_and_nothing_comes_down():
    ctx = context()
    out, steps = run_and_collect_steps(FedCVAE(**QUICK).run(ctx))
    decoder = (8 + 10) * 64 + 64 + 64 * 64 + 64
    assert ctx.link.ledger.by_client() == {
        k: (byte_formulas.count_fedcvae_bytes(decoder, 10), 0) for k in range(3)
    }
    assert decoder + 10 < out.parameters and ctx.server_steps == 1
    assert [s.done for s in steps if s.phase == "VAE training"] == list(range(1, 21))


def test_a_decoder_generates_only_classes_that_its_client_has():
    ctx = context()
    method = FedCVAE(**QUICK)
    received = [
        {
            "decoder": method._make_cvae(ctx, make_torch_generator(k)).decoder.state_dict(),
            "counts": counts,
        }
        for k, counts in enumerate(torch.tensor([[5, 0, 0] + [0] * 7, [0, 0, 15] + [0] * 7]))
    ]
    x, y = method._generate_labelled_samples(ctx, received)
    assert y.tolist() == [0] * 50 + [2] * 150 and len(x) == 200
