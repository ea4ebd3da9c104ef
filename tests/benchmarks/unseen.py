"""Is the answer of `fedlab-nb which` among the ties on federations that its study does not have?

    python tests/benchmarks/unseen.py

Wine and breast cancer (tables that come with scikit-learn, five clients), and the digits dealt out in another way
(two classes a client, other seeds). For each case of the study the rule's answer is taken from the stored study alone;
then it and most other methods are run, five seeds each. Prints a table for RESULTS.md.
"""

import sys
from statistics import fmean

from sklearn.datasets import load_breast_cancer, load_wine

import fedlab_nb as fl
from fedlab_nb.errors import FedlabError
from fedlab_nb.papers.which import (
    REFERENCES,
    Candidate,
    Federation,
    choose_by_rule,
    compute_regret,
    find_ties,
    list_cases,
    list_variants,
    load_stored_federations,
    select_without_images,
)

# Searches for images, and those of the methods of many rounds that are nowhere ahead in the study: they take long.
LEFT_OUT = (
    *("fedkt", "dense", "coboosting", "fdafl", "fadi", "dsfl", "fedcvae", "fedet"),
    *("fedavg_multi", "fedprox", "scaffold", "fedyogi", "moon", "fedgkt", "fedma"),
)
SEEDS = range(5)


def table(bunch):
    """A table of scikit-learn as data of one's own: a fifth of the rows is for testing."""
    frame = bunch.data.copy()
    frame["label"] = [str(bunch.target_names[label]) for label in bunch.target]
    return fl.load(frame, label="label")


FEDERATIONS = {
    "breast cancer, α = 0.3, five clients": (
        lambda: table(load_breast_cancer(as_frame=True)),
        {"alpha": 0.3, "clients": 5},
        SEEDS,
    ),
    "wine, α = 0.3, five clients": (
        lambda: table(load_wine(as_frame=True)),
        {"alpha": 0.3, "clients": 5},
        SEEDS,
    ),
    "digits, two classes a client, seeds 11–15": (
        lambda: "digits",
        {"partition": "classes", "classes_per_client": 2, "clients": 10},
        range(11, 16),
    ),
}


def run_federation(name, dataset, setting, seeds):
    """All candidates that can run."""
    candidates = []
    for method in fl.METHODS:
        if method in REFERENCES or method in LEFT_OUT:
            continue
        for options, knobs in list_variants(method):
            try:
                outcomes = [
                    fl.run(method, dataset=dataset, seed=seed, device="cpu", **setting, **knobs)
                    for seed in seeds
                ]
            except FedlabError:  # images alone, or public samples
                continue
            accuracy = {o.settings.seed: o.accuracy for o in outcomes}
            sent = fmean(o.bytes_up + o.bytes_down for o in outcomes)
            clients = len(outcomes[0].settings.members)
            candidates.append(Candidate(method, options, accuracy, sent / clients))
    return Federation(name, name, candidates)


def main():
    study = load_stored_federations()
    print("| federation | case | the rule says | below the best, points | among the ties | ties |")
    print("|---|---|---|---|---|---|")
    for name, (make, setting, seeds) in FEDERATIONS.items():
        federation = run_federation(name, make(), setting, seeds)
        has_images = any(c.name.endswith("(lite0)") for c in federation.candidates)
        known = study if has_images else select_without_images(study)
        there = [c.name for c in federation.candidates]
        for words, answers in list_cases():
            choice = choose_by_rule(known, answers)
            if choice is None or choice[0] not in there:
                print(f"| {name} | {words} | {choice and choice[0]} | not run | | |")
                continue
            allowed = [c for c in federation.candidates if answers.is_allowed(c.method)]
            ties = [c.name for c in find_ties(allowed)]
            regret = compute_regret(choice[0], federation, answers)
            verdict = "yes" if choice[0] in ties else "no"
            shown = ", ".join(ties[:6]) + (", …" if len(ties) > 6 else "")
            print(
                f"| {name} | {words} | {choice[0]} | {100 * regret:.1f} | {verdict} | {shown} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
