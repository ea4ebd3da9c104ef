"""No number of a text contradicts a picture of its lesson, as the stored notebook shows it.

The bars of a lesson are declared beside its figures under the same names, so a bar "FedLPA" of the
picture and a figure `capstone.fedlpa` of the text are the same measurement. Sentences of other
pictures are listed here by hand with the figure that they show.
"""

import re

import pytest
from lessons import NOTEBOOKS, SOURCES, read_screen, read_teachers_page

from fedlab_nb.course import COURSE
from fedlab_nb.declared import ROOT, read_toml

MARKED = re.compile(r"<!--n (\w+)\.(\w+)(@\S*?)?(?::(\w+))?-->([^<]*)<!--/n-->")
MEANS = ("", "mean", "fine")  # forms of a figure that write a mean in per cent
# {lesson: {figure with its form: what the screen says of it}}
SENTENCES = {
    "2_heterogeneity": {
        "heterogeneity.loudest@4:tenths": r"Largest logit ([\d.]+), smallest",
        "heterogeneity.weights@4:mean": r"Right: FedAvg (\d+) %, most often",
        "heterogeneity.probabilities@4:mean": r"and mean of probabilities (\d+) %, most often",
    },
    "3_fens": {
        "fens.fens@4:mean": r"FENS reaches (\d+) %",
        "fens.owners@4:counts": r"After round 50 of 50, (\d+) of 10 classes trust",
    },
    "4_closed_form": {
        "day.gauss@4:mean": r"Gaussian heads, 258 kB (\d+) %",
        "afl.bells_of_the_plane:mean": r"the bells that the sums give get (\d+) %",
        "day.afl_up@4:bytes": r"AFL: two sums, (\d+ kB) \d+ %",
        "day.gauss_up@4:bytes": r"Gaussian heads, (\d+ kB) \d+ %",
    },
    "5_send_data": {
        "day.eights_afl@4:mean": r"AFL: two sums, all ten (\d+) %",
        "day.eights_afl_without@4:mean": r"AFL: two sums, without E and F (\d+) %",
        "day.eights_gauss@4:mean": r"Gaussian heads, all ten (\d+) %",
        "day.eights_gauss_without@4:mean": r"Gaussian heads, without E and F (\d+) %",
    },
    "6_capstone": {
        "harbour.probabilities": r"try mean of probabilities \(try 1\), validation accuracy, % (\d+ ± \d+)",
        "harbour.fens": r"try FENS \(try 2\), validation accuracy, % (\d+ ± \d+)",
        "harbour.distilled": r"try Distilled data \(try 3\), validation accuracy, % (\d+ ± \d+)",
    },
}


def read_bars(name):
    """{figure: per cent} of all bars that a lesson declares and its stored notebook shows."""
    folder = COURSE[name]
    if not (ROOT / f"course/{folder}/figures.toml").exists():
        return {}
    figures = read_toml(f"course/{folder}/figures.toml")
    screen = read_screen(name)
    drawn = {}
    for bars in figures.get("bars", {}).values():
        for figure, bar in bars.items():
            if not isinstance(bar, dict):
                continue
            label = bar["label"]
            if "detail" in bar:
                label = f"{label} ({bar['detail']})"
            pattern = rf"method {re.escape(label)}, setting {re.escape(bars['setting'])}, accuracy (\d+) %"
            found = re.search(pattern, screen)
            if found:
                drawn[f"{folder}.{figure}"] = float(found[1])
    return drawn


def find_contradictions(text, drawn):
    """What a text says of a bar, and the picture does not."""
    found = []
    for study, figure, seeds, form, shown in MARKED.findall(text):
        name = f"{study}.{figure}"
        if name not in drawn or seeds or form not in MEANS:
            continue
        if abs(float(shown.split(" ")[0]) - drawn[name]) > 0.5:
            found.append(f"{name}: the text says {shown}, the picture {drawn[name]:.0f}")
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_no_number_of_a_text_contradicts_a_bar_of_its_lesson(name):
    drawn = read_bars(name)
    for text in (SOURCES[name], read_teachers_page(name)):
        assert find_contradictions(text, drawn) == []


@pytest.mark.parametrize(
    ("name", "figure"), [(name, figure) for name in SENTENCES for figure in SENTENCES[name]]
)
def test_no_number_of_a_text_contradicts_the_sentence_of_a_picture(name, figure):
    sentence = re.search(SENTENCES[name][figure], read_screen(name))
    assert sentence, "the picture says it in other words: mend SENTENCES"
    stated = re.findall(
        rf"<!--n {re.escape(figure)}-->([^<]*)<!--/n-->", SOURCES[name] + read_teachers_page(name)
    )
    assert stated, "no text says it any more: take it out of SENTENCES"
    assert {text.strip() for text in stated} == {sentence[1]}


def test_a_contradiction_is_found_and_bars_are_read():
    text = "FedAvg gets <!--n capstone.fedavg-->80 ± 1<!--/n-->, sums <!--n capstone.afl-->48 ± 1<!--/n--> %"
    assert find_contradictions(text, read_bars("6_capstone")) == [
        "capstone.afl: the text says 48 ± 1, the picture 85"
    ]
    counts = {name: len(read_bars(name)) for name in SOURCES}
    assert counts["5_send_data"] == 8 and counts["6_capstone"] == 6
    assert sum(count > 0 for count in counts.values()) >= 10


def test_no_mark_leaves_a_space_before_a_comma():
    """A mark is not seen: "borders <!--c x-->, and" is read "borders , and"."""
    texts = list(SOURCES.values())
    texts += [read_teachers_page(name) for name in SOURCES]
    for page in [*NOTEBOOKS.glob("*.md"), *NOTEBOOKS.glob("guide/*.md")]:
        texts.append(page.read_text(encoding="utf-8"))
    for text in texts:
        assert re.findall(r".{0,20} <!--c [^>]*-->[,.;:]", text) == []
