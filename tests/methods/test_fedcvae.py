"""FedCVAE-Ens: the loss against closed forms, clients that do not depend on their company, shares, dreams, bytes."""

import functools
import math

import byte_formulas
import method_runs
import pytest
import torch
import torch.nn.functional as F
from method_runs import seeded
from watched import watched

from fedlab_nb.methods.fedcvae import (
    TRUNCATION,
    Cvae,
    FedCVAE,
    compute_negative_elbo_per_sample,
    generate_samples,
    train_cvaes_in_place,
)

EXACT = torch.float64
QUICK = {"steps": 20, "samples": 200, "server_epochs": 2}


context = functools.partial(method_runs.context, alpha=0.3, epochs=1)


# ------------------------------------------------------------------------------------------------ the loss
def test_loss_against_torchs_own_kl_and_cross_entropy():
    x, hot = (
        torch.rand(5, 12, generator=seeded(), dtype=EXACT),
        F.one_hot(torch.arange(5), 5).to(EXACT),
    )
    noise = torch.randn(5, 3, generator=seeded(1), dtype=EXACT)
    cvae = Cvae((1, 3, 4), 5, latent=3, hidden=7, stream=seeded(2)).to("cpu", EXACT)
    mean, log_variance = cvae.encoder(torch.cat([x, hot], 1)).split(3, 1)
    q = torch.distributions.Normal(mean, (log_variance / 2).exp())
    kl = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum(1)
    out = cvae.decoder(torch.cat([mean + q.stddev * noise, hot], 1))
    likelihood = torch.distributions.Bernoulli(logits=out, validate_args=False).log_prob(x).sum(1)
    torch.testing.assert_close(
        compute_negative_elbo_per_sample(
            cvae.encoder, cvae.decoder, x, hot, noise, are_pixels=True
        ),
        kl - likelihood,
    )
    normal = torch.distributions.Normal(out, 1.0).log_prob(x).sum(1) + 12 / 2 * math.log(
        2 * math.pi
    )
    torch.testing.assert_close(
        compute_negative_elbo_per_sample(
            cvae.encoder, cvae.decoder, x, hot, noise, are_pixels=False
        ),
        kl - normal,
    )


def test_a_client_trains_alike_alone_and_in_company_and_as_a_plain_loop_does():
    g = seeded()
    shards = [
        (torch.rand(n, 1, 2, 3, generator=g, dtype=EXACT), torch.arange(n) % 4) for n in (9, 30)
    ]

    def made():
        return [
            Cvae((1, 2, 3), 4, latent=2, hidden=5, stream=seeded(k)).to("cpu", EXACT)
            for k in range(2)
        ]

    def run(cvaes, which):
        streams = [seeded(10 + k) for k in which]
        return [
            loss
            for loss in train_cvaes_in_place(
                cvaes, [shards[k] for k in which], streams, steps=6, batch_size=4, lr=0.01
            )
        ]

    together, alone, plain = made(), made()[1], made()[1]
    losses = run(together, [0, 1])
    run([alone], [1])
    stream, (x, y) = seeded(11), shards[1]
    optimizer = torch.optim.Adam(
        [*plain.encoder.parameters(), *plain.decoder.parameters()], lr=0.01
    )
    drawn = (
        torch.randint(30, (6, 4), generator=stream),
        torch.randn(6, 4, 2, generator=stream).to(EXACT),
    )
    for step, (rows, noise) in enumerate(zip(*drawn, strict=True)):
        loss = compute_negative_elbo_per_sample(
            plain.encoder,
            plain.decoder,
            x[rows].flatten(1),
            F.one_hot(y[rows], 4).to(x),
            noise,
            are_pixels=True,
        )
        torch.testing.assert_close(losses[step][1], loss.mean())
        optimizer.zero_grad(), loss.mean().backward(), optimizer.step()
    for part in ("encoder", "decoder"):
        trios = (getattr(c, part).parameters() for c in (together[1], alone, plain))
        for a, b, c in zip(*trios, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
            torch.testing.assert_close(a, c, rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------------------------ the server
def test_dreams_have_the_shape_range_and_prior_that_they_should():
    images = Cvae((1, 4, 4), 3, latent=2, hidden=8, stream=seeded())
    x = generate_samples(images.decoder, torch.tensor([0, 2, 2]), 2, (1, 4, 4), 3, seeded(1))
    assert x.shape == (3, 1, 4, 4) and 0 < x.min() and x.max() < 1

    class ShowLatent(torch.nn.Linear):
        def forward(self, both):
            return both

    latent = generate_samples(
        ShowLatent(1, 1), torch.zeros(4000, dtype=torch.long), 5, (7,), 2, seeded(2)
    )[:, :5]
    assert latent.abs().max() <= TRUNCATION
    assert latent.std().item() == pytest.approx(0.880, abs=0.01)  # of a standard normal cut at 2


def test_only_decoders_and_counts_go_up_and_nothing_comes_down():
    ctx = context()
    out, steps = watched(FedCVAE(**QUICK).run(ctx))
    decoder = (8 + 10) * 64 + 64 + 64 * 64 + 64
    assert ctx.link.ledger.by_client() == {
        k: (byte_formulas.fedcvae_bytes(decoder, 10), 0) for k in range(3)
    }
    assert decoder + 10 < out.parameters and ctx.server_steps == 1
    assert [s.done for s in steps if s.phase == "VAE training"] == list(range(1, 21))


def test_a_class_that_a_client_lacks_is_never_asked_of_it():
    ctx = context()
    method = FedCVAE(**QUICK)
    received = [
        {"decoder": method._make_cvae(ctx, seeded(k)).decoder.state_dict(), "counts": counts}
        for k, counts in enumerate(torch.tensor([[5, 0, 0] + [0] * 7, [0, 0, 15] + [0] * 7]))
    ]
    x, y = method._generate_labelled_samples(ctx, received)
    assert y.tolist() == [0] * 50 + [2] * 150 and len(x) == 200
