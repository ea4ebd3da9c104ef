"""What the stage calls things: who holds the samples, what samples are, and methods if there is room for two words.

Page and panels take their words from here, so that both say the same.
"""

WordByRole = dict[str, str]  # {"one": "client", "many": "clients", "thing": "image", …}
ClassForBrowser = dict[str, str]  # name, colour and, for a digit, plural

# What samples are, and who holds them, in sentences. The page and the stage of lesson 1 tell of post offices;
# everywhere else, as in every table and menu, whoever holds samples is a client.
DIGITS = {"things": "digits", "thing": "digit", "kind": "digit", "kinds": "digits"}
CLIENTS = {
    "one": "client",
    "many": "clients",
    "things": "images",
    "thing": "image",
    "kind": "class",
    "kinds": "classes",
}
OFFICES = {"one": "office", "many": "offices", **DIGITS}
# What samples are in a sentence: several and one, by the data set's name, else by their kind.
NAMED_SAMPLES = {"heart": ("patients", "patient"), "mails": ("mails", "mail")}
SAMPLE_KINDS = {
    "images": ("images", "image"),
    "recordings": ("recordings", "recording"),
    "feature rows": ("rows", "row"),
}
# What a sample of one class is called if there are several of it.
PLURALS = {
    "0": "zeros",
    "1": "ones",
    "2": "twos",
    "3": "threes",
    "4": "fours",
    "5": "fives",
    "6": "sixes",
    "7": "sevens",
    "8": "eights",
    "9": "nines",
}
# Beside a bar and on a card there is room for two words.
SHORT_NAMES = {
    "logits": "Mean of logits",
    "ensemble": "Mean of prob.",
}
# At the beginning of a sentence.
PHRASES = {
    "logits": "The mean of logits",
    "ensemble": "The mean of probabilities",
    "gauss": "The model with Gaussian heads",
}


def choose_words_for_clients_and_samples(dataset_name: str, sample_kind: str) -> WordByRole:
    """Choose what sentences about a data set call clients, samples and classes.

    sample_kind: "images", "feature rows" or "recordings"
    """
    if dataset_name == "digits":
        return {**CLIENTS, **DIGITS}
    family = dataset_name.partition(":")[0]
    things, thing = NAMED_SAMPLES.get(family, SAMPLE_KINDS[sample_kind])
    return {**CLIENTS, "things": things, "thing": thing}


def choose_words_of_post_office_story(dataset_name: str, sample_kind: str) -> WordByRole:
    """Choose the same words where the story of the post offices is told: whoever holds digits is an office."""
    if dataset_name == "digits":
        return OFFICES
    return choose_words_for_clients_and_samples(dataset_name, sample_kind)


def describe_classes_for_browser(
    class_names: list[str], class_colours: list[str]
) -> list[ClassForBrowser]:
    """Describe each class by `name` and `colour`; a digit also by `plural`, what several of it are called.

    class_colours: CSS colours, one for each class
    """
    classes = []
    for name, colour in zip(class_names, class_colours, strict=True):
        about = {"name": name, "colour": colour}
        if name in PLURALS:
            about["plural"] = PLURALS[name]
        classes.append(about)
    return classes


# How a method comes to its answer to one sample, where that is a sum over clients: in a sentence.
MEAN_SUM = "All clients count the same: the sum is the mean of what they say."
FENS_SUM = (
    "FENS adds up what the clients say, each times a weight for this client and class, which the "
    "small rounds have learnt."
)
