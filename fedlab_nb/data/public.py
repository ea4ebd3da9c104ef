"""Where the unlabelled public samples of a federation come from: `choice` is one of

- "own": the data set's own public part, as it is loaded (nothing is changed);
- a share from 0 to 0.9: so much of the training set, drawn once and for all (it does not depend on a run's seed); 0:
  no public samples, the clients share all of the set;
- the name of another data set or the path of an `.npz`: its whole training set without labels, at full size. The own
  set is then shared out whole.

In the last two, an own public part whose labels are known goes back to the training set first. An own part without
labels is left out. `describe_with_public` says the same of a description, without loading a sample.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

import numpy as np

from fedlab_nb.data import registry
from fedlab_nb.data.dataset import Dataset, Description, digest_of
from fedlab_nb.errors import UsageError, choose, demand, number, parsed
from fedlab_nb.rng import numpy_rng

OWN = "own"
MOST = 0.9  # largest share

Choice = str | float


def checked_public(choice: object, about: Description) -> Choice:
    """`choice` for the data set `about`, in its plain form; UsageError, in one sentence, if it cannot be had."""
    value = str(choice) if isinstance(choice, PathLike) else parsed(choice)
    if not isinstance(value, str):
        return number(
            "public", value, 0, MOST, hint="it is a share of the training set, or a data set's name"
        )
    if value == OWN:
        return value
    if value in ("noise", "held-out", "other-mix"):
        raise UsageError(
            f"public={value} is a source of Fed-ET alone; set it as fedet.public={value}."
        )
    if not registry.is_path(value):
        choose("public data", value, (OWN, *registry.DATASETS, "a share from 0 to 0.9", "PATH.npz"))
    other = registry.describe(value)
    same = (
        other.name == about.name
        and not registry.is_path(value)
        or about.digest
        and other.digest == about.digest
    )
    share = "give a share of the training set, such as public=0.1"
    demand(
        not same,
        f"public names the data set {about.name} itself, whose samples are the clients'; {share}.",
    )
    shapes = f"has samples of shape {other.input_shape}, but those of {about.name} have {about.input_shape}"
    demand(
        other.input_shape == about.input_shape,
        f"public={other.name} {shapes}; choose like samples, or {share}.",
    )
    return value


def share_size(choice: Choice, samples: int) -> int:
    """Public samples of `samples` that the share `choice` means: at least 1 where it is above 0."""
    return max(1, round(choice * samples)) if isinstance(choice, float) and choice > 0 else 0


def describe_with_public(about: Description, choice: Choice) -> Description:
    """The description of `with_public(dataset, choice)`, from that of the data set."""
    if choice == OWN:
        return about
    samples = about.n_train + (about.n_public if about.public_labelled else 0)
    if isinstance(choice, str):
        other = registry.describe(choice)
        known, public = about.digest and other.digest, other.n_train + other.n_public
        digest = digest_of(about.digest, "public", other.digest) if known else None
    else:
        public = share_size(choice, samples)
        samples -= public
        digest = digest_of(about.digest, "public", choice) if about.digest else None
    return replace(
        about,
        n_train=samples,
        n_public=public,
        digest=digest,
        public_labelled=not isinstance(choice, str),
    )


def with_public(dataset: Dataset, choice: Choice) -> Dataset:
    """`dataset` with the public samples that `choice`, already checked, means, and a digest of its own.

    Samples that come from its public part belong to none of the clients that the data name. UsageError where one of
    these loses all of its samples to a share.

    A share keeps its labels for choosing settings (`y_public`); of another data set no label is kept.
    """
    import torch

    if choice == OWN:
        return dataset
    x, y = dataset.x_train, dataset.y_train
    if dataset.x_public is not None and dataset.y_public is not None:
        x, y = torch.cat([x, dataset.x_public]), torch.cat([y, dataset.y_public])
    owned = {
        name: ids
        for name in ("client_train", "font_train")
        if (ids := getattr(dataset, name)) is not None
    }
    more = torch.full((len(x) - len(dataset.y_train),), -1)  # nobody's, in no known font
    owned = {name: torch.cat([ids, more]) for name, ids in owned.items()}
    dataset = replace(dataset, x_train=x, y_train=y, **owned)
    if isinstance(choice, str):
        other = registry.load(choice)
        parts = [other.x_train] + ([] if other.x_public is None else [other.x_public])
        note = f"Public data: all {sum(map(len, parts)):,} training samples of {other.name}, without labels."
        digest = digest_of(dataset.digest, "public", other.digest)
        return renewed(dataset, x, y, torch.cat(parts), None, digest, note)
    digest, size = digest_of(dataset.digest, "public", choice), share_size(choice, len(x))
    if not size:
        note = f"All {len(x):,} training samples are the clients'; there is no public data."
        return renewed(dataset, x, y, None, None, digest, note)
    order = numpy_rng(0, "public part").permutation(len(x))
    public, private = (torch.from_numpy(np.sort(rows)) for rows in (order[:size], order[size:]))
    note = f"{size:,} of {len(x):,} training samples are held back as unlabelled public data."
    owned = {name: ids[private] for name, ids in owned.items()}
    if "client_train" in owned:
        ids = owned["client_train"]
        lost = sorted(set(range(len(dataset.client_names))) - set(ids.tolist()))
        who = ", ".join(repr(dataset.client_names[k]) for k in lost[:1])
        less = "set a smaller share, or another partition"
        demand(
            not lost,
            f"public is {choice}, which leaves client {who} without a training sample; {less}.",
        )
    dataset = replace(dataset, x_train=x[private], y_train=y[private], **owned)
    return renewed(dataset, x[private], y[private], x[public], y[public], digest, note)


def renewed(dataset: Dataset, x, y, x_public, y_public, digest: str, note: str) -> Dataset:
    """`dataset` with these training and public samples; its own note stays, unless that is of its public part."""
    before = "" if "held back" in dataset.note else dataset.note
    note = f"{before} {note}".strip()
    return replace(
        dataset,
        x_train=x,
        y_train=y,
        x_public=x_public,
        y_public=y_public,
        digest=digest,
        note=note,
    )
