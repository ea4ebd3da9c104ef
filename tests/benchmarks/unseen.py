"""Is the answer of `fedlab-nb which` among the ties on federations that its study does not have?

    python tests/benchmarks/unseen.py            # all
    python tests/benchmarks/unseen.py shapes     # those whose name begins so
    python tests/benchmarks/unseen.py --study    # the study's own data, each with the shortlist of the others
    python tests/benchmarks/unseen.py blurred "digits behind" "table of corr" > fresh.txt
    python tests/benchmarks/unseen.py --write fresh fresh.txt     # what was printed goes into RESULTS.md

The rule is a rehearsal: the study names a shortlist for each case, its members are run with a fifth of the training
samples held out, and these decide (`fedlab_nb.papers.which`). Then the shortlist and most other methods are run on all
training samples, five seeds each, and the rule's answer is judged on the test samples. Prints a table; `--write`
puts it into the place of RESULTS.md with that name.

SEEN were looked at while the rule was made: wine, breast cancer, noisy letters and noisy stripes, on which an earlier
rule failed. KNOWN were drawn after that, and the rule then got all candidates in closed form, because the best one on
the last of them was on few shortlists. FRESH were drawn after this, and nothing was changed after they had been run.
What the study's list alone would have chosen stands beside it.
"""

import math
import sys
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from scipy.ndimage import gaussian_filter
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)

import fedlab_nb as fl
from fedlab_nb.errors import FedlabError
from fedlab_nb.papers.which import (
    REFERENCES,
    Answers,
    Candidate,
    StudiedFederation,
    choose_cheapest_candidate_near_best,
    choose_seed_count_of_rehearsal,
    choose_shortlist_greedily,
    compute_accuracy_regret_by_candidate,
    find_candidates_tied_for_best,
    has_candidates_for_images_alone,
    list_cases_of_answers_with_names,
    list_variants_of_method_to_rehearse,
    load_stored_federations,
    make_shortlist_with_closed_forms,
    rehearse_candidates,
)

# Searches for images, and those of the methods of many rounds that are nowhere ahead in the study: they take long.
LEFT_OUT = (
    *("fedkt", "dense", "coboosting", "fdafl", "fadi", "dsfl", "fedcvae", "fedet"),
    *("fedavg_multi", "fedprox", "scaffold", "fedyogi", "moon", "fedgkt", "fedma"),
)
SEEDS = range(5)
RESULTS = Path(__file__).parent / "RESULTS.md"


def table(bunch):
    """A table of scikit-learn as data of one's own: a fifth of the rows is for testing."""
    frame = bunch.data.copy()
    frame["label"] = [str(bunch.target_names[label]) for label in bunch.target]
    return fl.load(frame, label="label")


FONTS = (
    *("DejaVuSans", "DejaVuSans-Oblique", "DejaVuSerif-Bold", "DejaVuSansMono", "STIXGeneral"),
    *("STIXGeneralItalic", "cmr10", "cmtt10", "cmss10", "DejaVuSerif-Italic"),
)
SIDE = 16  # pixels of a letter's image
LETTERS_OF_A_KIND = 18  # of one font
STRIPES_SIDE = 12
STRIPES = 1600  # images


def load_centred_outline(font, letter):
    """The outline of a letter in a font of matplotlib's, with its middle at 0."""
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    properties = FontProperties(fname=folder / f"{font}.ttf")
    outline = TextPath((0, 0), letter, size=10, prop=properties)
    return Outline(outline.vertices - outline.vertices.mean(0), outline.codes)


def list_pixel_centres():
    """The middle of each pixel of a letter's image, row by row from above, `[256, 2]`."""
    centres = np.arange(SIDE) + 0.5
    return np.stack(np.meshgrid(centres, centres[::-1]), -1).reshape(-1, 2)


def draw_letters_by_font(fonts, letters, count, draw_letter):
    """Images of letters, each font a client: `x [fonts * letters * count, 1, 16, 16]`.

    count: images of one letter in one font
    draw_letter: makes one image `[16, 16]` of a centred outline
    """
    images = []
    labels = []
    clients = []
    for client, font in enumerate(fonts):
        for label, letter in enumerate(letters):
            outline = load_centred_outline(font, letter)
            for _ in range(count):
                images.append(draw_letter(outline)[None])
                labels.append(label)
                clients.append(client)
    x = np.clip(np.array(images, np.float32), 0, 1)
    return {"x": x, "y": np.array(labels), "client": np.array(clients)}


def draw_noisy_letters():
    """The letters A to J in ten fonts, `x [1800, 1, 16, 16]`, each font a client."""
    rng = np.random.default_rng(480)
    pixels = list_pixel_centres()

    def draw_letter(outline):
        angle = rng.normal(0, 0.15)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        scale = rng.uniform(0.8, 1.3)
        place = SIDE / 2 + rng.normal(0, 1, 2)
        moved = Outline(scale * outline.vertices @ turn.T + place, outline.codes)
        ink = [
            moved.contains_points(pixels + offset)
            for offset in ((-0.25, -0.25), (0.25, 0.25), (-0.25, 0.25), (0.25, -0.25))
        ]
        image = np.mean(ink, axis=0).reshape(SIDE, SIDE)
        return image + rng.normal(0, 0.15, image.shape)

    return draw_letters_by_font(FONTS, "ABCDEFGHIJ", LETTERS_OF_A_KIND, draw_letter)


def draw_noisy_stripes():
    """Stripes of four directions and two widths, `x [1600, 1, 12, 12]`: eight classes."""
    rng = np.random.default_rng(480)
    labels = rng.integers(0, 8, STRIPES)
    centres = np.arange(STRIPES_SIDE) - (STRIPES_SIDE - 1) / 2
    across, down = np.meshgrid(centres, centres)
    images = np.empty((STRIPES, 1, STRIPES_SIDE, STRIPES_SIDE), np.float32)
    for image, label in zip(images, labels, strict=True):
        angle = (label % 4) * np.pi / 4 + rng.normal(0, 0.2)
        frequency = (0.55, 0.85)[label // 4] * np.exp(rng.normal(0, 0.12))
        phase = frequency * (across * np.cos(angle) + down * np.sin(angle))
        contrast = rng.uniform(0.3, 1)
        waves = contrast * np.cos(phase + rng.uniform(0, 2 * np.pi))
        image[0] = waves + rng.normal(0, 0.6, waves.shape)
    images = (images - images.min()) / (images.max() - images.min())
    return {"x": images, "y": labels}


FONTS_OF_OTHER_LETTERS = (
    *("STIXGeneralBol", "STIXGeneralBolIta", "DejaVuSerif", "DejaVuSansMono-Oblique"),
    *("DejaVuSans-BoldOblique", "cmb10", "cmmi10", "DejaVuSansMono-Bold"),
)
SHAPES = 900  # images
TEXTURES = 900
DISTORTIONS = ("turned", "noisy", "negative", "faded", "covered", "moved")
TABLE_ROWS = 900


def draw_other_letters():
    """The letters K to T in eight other fonts on a ground that is shaded and noisy, `x [960, 1, 16, 16]`; each font
    is a client."""
    rng = np.random.default_rng(481)
    pixels = list_pixel_centres()

    def draw_letter(outline):
        place = SIDE / 2 + rng.normal(0, 0.8, 2)
        moved = Outline(rng.uniform(0.9, 1.4) * outline.vertices + place, outline.codes)
        ink = moved.contains_points(pixels).reshape(SIDE, SIDE)
        direction = rng.normal(0, 1, 2)
        shade = (pixels @ direction).reshape(SIDE, SIDE)
        shade = 0.5 * (shade - shade.min()) / (shade.max() - shade.min())
        return shade + rng.uniform(0.3, 0.6) * ink + rng.normal(0, 0.1, ink.shape)

    return draw_letters_by_font(FONTS_OF_OTHER_LETTERS, "KLMNOPQRST", 12, draw_letter)


def draw_shapes():
    """Discs, rings, squares, frames, triangles and crosses of any size and place, on speckles, `x [900, 1, 16, 16]`."""
    rng = np.random.default_rng(482)
    labels = rng.integers(0, 6, SHAPES)
    rows, columns = np.mgrid[:SIDE, :SIDE].astype(float)
    images = np.empty((SHAPES, 1, SIDE, SIDE), np.float32)
    for image, label in zip(images, labels, strict=True):
        size = rng.uniform(3.5, 6.5)
        down = rows - rng.uniform(6, 9)
        across = columns - rng.uniform(6, 9)
        radius = np.hypot(down, across)
        square = np.maximum(abs(down), abs(across))
        ink = [
            radius < size,
            (radius < size) & (radius > size - 2),
            square < size,
            (square < size) & (square > size - 2),
            (down < size) & (abs(across) < (down + size) / 2),
            (np.minimum(abs(down), abs(across)) < 1.2) & (square < size),
        ][label]
        speckles = rng.random(ink.shape) < 0.12
        image[0] = np.where(speckles, rng.random(ink.shape), rng.uniform(0.4, 1) * ink)
    return {"x": images, "y": labels}


def draw_textures():
    """Checks, rings, dots and three kinds of correlated noise, `x [900, 1, 12, 12]`: textures without a place."""
    rng = np.random.default_rng(483)
    labels = rng.integers(0, 6, TEXTURES)
    rows, columns = np.mgrid[:STRIPES_SIDE, :STRIPES_SIDE].astype(float)
    images = np.empty((TEXTURES, 1, STRIPES_SIDE, STRIPES_SIDE), np.float32)
    for image, label in zip(images, labels, strict=True):
        phase = rng.uniform(0, 2 * np.pi, 2)
        white = rng.normal(0, 1, rows.shape)
        beside = np.roll(white, 1, 1)
        below = np.roll(white, 1, 0)
        texture = [
            np.sign(np.cos(1.1 * rows + phase[0]) * np.cos(1.1 * columns + phase[1])),
            np.cos(1.3 * np.hypot(rows - 6 - phase[0], columns - 6 - phase[1])),
            2.5 * (np.cos(1.6 * rows + phase[0]) * np.cos(1.6 * columns + phase[1]) > 0.4) - 1,
            white + beside,
            white + below,
            white,
        ][label]
        image[0] = texture + rng.normal(0, 0.7, rows.shape)
    images = (images - images.min()) / (images.max() - images.min())
    return {"x": images, "y": labels}


def distort_digits():
    """1,200 of scikit-learn's digits, six clients, each with a distortion of its own, `x [1200, 1, 8, 8]`."""
    rng = np.random.default_rng(484)
    digits = load_digits()
    chosen = rng.permutation(len(digits.target))[:1200]
    clients = np.arange(1200) % len(DISTORTIONS)
    images = digits.images[chosen] / 16
    for k, image in enumerate(images):
        distortion = DISTORTIONS[clients[k]]
        if distortion == "turned":
            image[:] = np.rot90(image).copy()
        if distortion == "noisy":
            image += rng.normal(0, 0.3, image.shape)
        if distortion == "negative":
            image[:] = 1 - image
        if distortion == "faded":
            image[:] = 0.4 + 0.2 * image
        if distortion == "covered":
            row, column = rng.integers(0, 5, 2)
            image[row : row + 3, column : column + 3] = 1
        if distortion == "moved":
            image[:] = np.roll(image, rng.integers(-2, 3, 2), (0, 1))
    x = np.clip(images, 0, 1).astype(np.float32)[:, None]
    return {"x": x, "y": digits.target[chosen], "client": clients}


GRAIN = 900  # images
GRAIN_BLURS = (
    (0.7, 0.7),
    (1.3, 1.3),
    (0.5, 1.6),
    (1.6, 0.5),
    (1.1, 0.6),
)  # pixels, down and across
BARRED_DIGITS = 1000
CORRELATED_ROWS = 1200
FACTORS = 5
CORRELATED_COLUMNS = 20
SITES = 5


def draw_blurred_grain():
    """Grain that is blurred in five ways, each with its own width down and across, `x [900, 1, 12, 12]`; its
    brightness, its contrast and a fine noise differ from image to image."""
    rng = np.random.default_rng(4811)
    labels = rng.integers(0, len(GRAIN_BLURS), GRAIN)
    images = np.empty((GRAIN, 1, STRIPES_SIDE, STRIPES_SIDE), np.float32)
    for image, label in zip(images, labels, strict=True):
        grain = gaussian_filter(rng.normal(0, 1, image[0].shape), GRAIN_BLURS[label], mode="wrap")
        grain /= grain.std()
        noise = rng.normal(0, 0.08, grain.shape)
        image[0] = rng.uniform(0.35, 0.65) + rng.uniform(0.1, 0.25) * grain + noise
    return {"x": np.clip(images, 0, 1), "y": labels}


def put_digits_behind_bars():
    """1,000 of scikit-learn's digits, each with a grey bar of two pixels' width over it, upright or level,
    `x [1000, 1, 8, 8]`."""
    rng = np.random.default_rng(4812)
    digits = load_digits()
    chosen = rng.permutation(len(digits.target))[:BARRED_DIGITS]
    images = (digits.images[chosen] / 16).astype(np.float32)
    for image in images:
        first = rng.integers(0, 7)
        grey = rng.uniform(0.2, 0.8)
        if rng.random() < 0.5:
            image[first : first + 2] = grey
        else:
            image[:, first : first + 2] = grey
    return {"x": images[:, None], "y": digits.target[chosen]}


def draw_correlated_table():
    """1,200 rows of 20 correlated columns, mixed from five factors; four classes by which two of the factors
    are large. Five sites: each sees some classes more often and measures the columns in its own proportion."""
    rng = np.random.default_rng(4813)
    factors = rng.normal(0, 1, (CORRELATED_ROWS, FACTORS))
    labels = 2 * (factors[:, 0] * factors[:, 1] > 0) + (factors[:, 2] + 0.7 * factors[:, 3] > 0)
    mixing = rng.normal(0, 1, (FACTORS, CORRELATED_COLUMNS))
    columns = factors @ mixing + rng.normal(0, 0.3, (CORRELATED_ROWS, CORRELATED_COLUMNS))
    sites_of_classes = rng.dirichlet(np.full(SITES, 1.0), 4)
    sites = np.array([rng.choice(SITES, p=sites_of_classes[label]) for label in labels])
    columns *= rng.uniform(0.8, 1.25, (SITES, CORRELATED_COLUMNS))[sites]
    return {"x": columns.astype(np.float32), "y": labels, "client": sites}


def draw_table():
    """900 rows of 16 features in five classes, of scikit-learn's `make_classification`; six sites, each with an
    instrument of its own that shifts and stretches what it measures."""
    rng = np.random.default_rng(485)
    x, y = make_classification(
        TABLE_ROWS, 16, n_informative=8, n_classes=5, n_clusters_per_class=2, random_state=485
    )
    sites = rng.integers(0, 6, TABLE_ROWS)
    x = x * rng.uniform(0.7, 1.4, (6, 16))[sites] + rng.normal(0, 0.5, (6, 16))[sites]
    return {"x": x.astype(np.float32), "y": y, "client": sites}


STUDIED = {
    "heart, four hospitals": ("heart", {}),
    "digits, α = 0.1": ("digits", {"alpha": 0.1, "clients": 10}),
    "digits, α = 10": ("digits", {"alpha": 10.0, "clients": 10}),
    "mails, six mailing lists": ("mails", {}),
    "glyphs:16g, α = 0.1": ("glyphs:16g", {"alpha": 0.1, "clients": 10}),
    "mnist:5k, α = 0.3": ("mnist:5k", {"alpha": 0.3, "clients": 10, "model": "mlp"}),
}
SEEN = {
    "breast cancer, α = 0.3, five clients": (
        lambda: table(load_breast_cancer(as_frame=True)),
        {"alpha": 0.3, "clients": 5},
    ),
    "wine, α = 0.3, five clients": (
        lambda: table(load_wine(as_frame=True)),
        {"alpha": 0.3, "clients": 5},
    ),
    "noisy stripes, α = 0.3, eight clients": (
        lambda: fl.load(draw_noisy_stripes()),
        {"alpha": 0.3, "clients": 8},
    ),
    "letters A-J, ten other fonts, noisy, a font a client": (
        lambda: fl.load(draw_noisy_letters()),
        {},
    ),
}
KNOWN = {
    "table of six sites": (lambda: fl.load(draw_table()), {}),
    "iris, α = 0.3, five clients": (
        lambda: table(load_iris(as_frame=True)),
        {"alpha": 0.3, "clients": 5},
    ),
    "digits, six distortions, one a client": (lambda: fl.load(distort_digits()), {}),
    "shapes on speckles, α = 0.1, six clients": (
        lambda: fl.load(draw_shapes()),
        {"alpha": 0.1, "clients": 6},
    ),
    "textures, α = 0.3, six clients": (
        lambda: fl.load(draw_textures()),
        {"alpha": 0.3, "clients": 6},
    ),
    "letters K-T, eight other fonts, shaded and noisy, a font a client": (
        lambda: fl.load(draw_other_letters()),
        {},
    ),
}
FRESH = {
    "blurred grain, α = 0.3, six clients": (
        lambda: fl.load(draw_blurred_grain()),
        {"alpha": 0.3, "clients": 6},
    ),
    "digits behind bars, α = 0.1, eight clients": (
        lambda: fl.load(put_digits_behind_bars()),
        {"alpha": 0.1, "clients": 8},
    ),
    "table of correlated columns, five sites": (lambda: fl.load(draw_correlated_table()), {}),
}
FEDERATIONS = {**SEEN, **KNOWN, **FRESH}


def run_federation(name, dataset, setting):
    """All candidates that can run, with their accuracies on the test samples."""
    candidates = []
    for method in fl.METHODS:
        if method in REFERENCES or method in LEFT_OUT:
            continue
        for options, knobs in list_variants_of_method_to_rehearse(method):
            try:
                outcomes = [
                    fl.run(method, dataset=dataset, seed=seed, device="cpu", **setting, **knobs)
                    for seed in SEEDS
                ]
            except FedlabError:  # images alone, or public samples
                continue
            accuracy = {o.settings.seed: o.accuracy for o in outcomes}
            sent = fmean(o.bytes_up + o.bytes_down for o in outcomes)
            clients = len(outcomes[0].settings.participating_clients)
            candidates.append(Candidate(method, options, accuracy, sent / clients))
    return StudiedFederation(name, name, candidates)


def rehearse(dataset, setting, lists):
    """Rehearse the members of all lists; those that are left out here are not run.

    lists: the shortlist of each case
    """
    names = {
        name for names in lists.values() for name in names if name.split(" ")[0] not in LEFT_OUT
    }
    seeds = choose_seed_count_of_rehearsal(len(dataset.y_train))
    settings = {"device": "cpu", **setting}
    return rehearse_candidates(
        dataset, Answers(), math.inf, seeds, settings, sorted(names)
    ).candidates


def choose_in_each_case(rehearsed, lists):
    """What the rule chooses in each case with these shortlists: {case: name}."""
    choices = {}
    for case in list_cases_of_answers_with_names():
        members = [
            c
            for c in rehearsed
            if c.name in lists[case.name] and case.answers.is_method_allowed(c.method)
        ]
        choices[case.name] = choose_cheapest_candidate_near_best(members).name
    return choices


def make_lists(federations, image_options, make):
    """The shortlist of each case: {case: names}.

    make: `make_shortlist_with_closed_forms`, or `choose_shortlist_greedily` for the study's list alone
    """
    return {
        case.name: make(federations, case.answers, allows_image_options=image_options)
        for case in list_cases_of_answers_with_names()
    }


def judge_on_other_data(name, dataset, setting):
    """A line of the table for each case; returns the judgements of the rule and of the study's list alone."""
    federations = load_stored_federations()
    image_options = dataset.x_train.ndim == 4
    lists = make_lists(federations, image_options, make_shortlist_with_closed_forms)
    lists_alone = make_lists(federations, image_options, choose_shortlist_greedily)
    rehearsed = rehearse(dataset, setting, lists)
    federation = run_federation(name, dataset, setting)
    choices = choose_in_each_case(rehearsed, lists)
    choices_alone = choose_in_each_case(rehearsed, lists_alone)
    return print_judgements(federation, choices, choices_alone)


def judge_on_study():
    """The rule on federations of the study, each with the shortlist that the other data sets give; the
    accuracies that it is judged by are the stored ones, of ten seeds."""
    federations = load_stored_federations()
    judgements = []
    for federation in federations:
        if federation.name not in STUDIED:
            continue
        source, setting = STUDIED[federation.name]
        others = [other for other in federations if other.data != federation.data]
        ran = [c.name for c in federation.candidates]
        lists = make_lists(
            others, has_candidates_for_images_alone(federation), make_shortlist_with_closed_forms
        )
        lists_alone = make_lists(
            others, has_candidates_for_images_alone(federation), choose_shortlist_greedily
        )
        for each in (lists, lists_alone):
            for case, names in each.items():
                each[case] = [name for name in names if name in ran]
        rehearsed = rehearse(fl.load(source), setting, lists)
        choices = choose_in_each_case(rehearsed, lists)
        choices_alone = choose_in_each_case(rehearsed, lists_alone)
        judgements += print_judgements(federation, choices, choices_alone)
    return judgements


class Judgement(NamedTuple):
    """How far an answer lies below the best, in points, and whether it is among the ties."""

    points: float
    is_tie: bool


def judge(federation, answers, choice):
    """How good a choice is among what the answers allow."""
    allowed = [c for c in federation.candidates if answers.is_method_allowed(c.method)]
    ties = [c.name for c in find_candidates_tied_for_best(allowed)]
    return Judgement(
        100 * compute_accuracy_regret_by_candidate(federation, answers)[choice], choice in ties
    )


def print_judgements(federation, choices, choices_alone):
    """A line of the table for each case; returns the judgements of both, a pair for each case.

    choices: {case: name of what the rule chose}
    choices_alone: the same with the study's list alone
    """
    judgements = []
    for case in list_cases_of_answers_with_names():
        rule = judge(federation, case.answers, choices[case.name])
        alone = judge(federation, case.answers, choices_alone[case.name])
        allowed = [c for c in federation.candidates if case.answers.is_method_allowed(c.method)]
        ties = [c.name for c in find_candidates_tied_for_best(allowed)]
        shown = ", ".join(ties[:6]) + (", …" if len(ties) > 6 else "")
        print(
            f"| {federation.name} | {case.name} | {choices[case.name]} | {rule.points:.1f} "
            f"| {'yes' if rule.is_tie else 'no'} | {shown} "
            f"| {choices_alone[case.name]}, {alone.points:.1f} |",
            flush=True,
        )
        judgements.append((rule, alone))
    return judgements


def describe_judgements(judgements):
    """How often answers were among the ties, and how far below the best they were."""
    points = [judgement.points for judgement in judgements]
    tie_count = sum(judgement.is_tie for judgement in judgements)
    return (
        f"among the ties in {tie_count} of {len(judgements)} cases, {fmean(points):.1f} points "
        f"below the best on average and at most {max(points):.1f}"
    )


def print_summary(judgements):
    """How good the rule's answers were, and those of the study's list alone."""
    rules, alone = zip(*judgements, strict=True)
    print(f"\nThe rule: {describe_judgements(rules)}.")
    print(f"With the study's list alone: {describe_judgements(alone)}.")


def write_results(place, printed):
    """Put what a run printed between the comments of RESULTS.md that name the place."""
    text = RESULTS.read_text(encoding="utf-8")
    begin = f"<!-- {place}: written by unseen.py -->\n"
    end = f"<!-- end of {place} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    RESULTS.write_text(f"{before}{begin}{printed.strip()}\n{end}{after}", encoding="utf-8")


def main():
    if sys.argv[1:2] == ["--write"]:
        _, _, place, printed = sys.argv
        write_results(place, Path(printed).read_text(encoding="utf-8"))
        return 0
    print(
        "| federation | case | the rule says | below the best, points | among the ties | ties "
        "| the study's list alone says |"
    )
    print("|---|---|---|---|---|---|---|")
    if sys.argv[1:] == ["--study"]:
        print_summary(judge_on_study())
        return 0
    wanted = tuple(sys.argv[1:]) or ("",)
    judgements = []
    for name, (make, setting) in FEDERATIONS.items():
        if name.startswith(wanted):
            judgements += judge_on_other_data(name, make(), setting)
    print_summary(judgements)
    return 0


if __name__ == "__main__":
    sys.exit(main())
