"""What a published number and ours were measured under, and in what the two differ.

A claim of a paper is tried only where both are the same comparison: the same quantity, the same setting (clients and
how the data are dealt to them, and what a row or a column of the table sets), and the same budget (rounds, clients per
round, blocks; local epochs where the table sets them). What belongs to the scale may differ: data set, network, number
of local steps, rates. The paper's side is read from the table's file and the paper's set-up, ours from the plan of the
run, so that a value that the classroom changes is found.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..methods import METHODS
from ..studies.settings import Plan, Settings, make_plans
from .cells import TARGET, Wanted, paper_point
from .points import Point
from .published import PaperTable

DEALING = ("clients", "partition", "alpha", "classes_per_client", "size_sigma", "init")
BUDGET = ("rounds", "rounds_before", "rounds_after", "per_round", "blocks")
OF_THE_SCALE = ("model", "server_model", "local_epochs")
# Values of options with which nothing is done; a sentence leaves them out.
UNUSED = {
    "size_sigma": 0,
    "init": "same",
    "rounds": 0,
    "per_round": 0,
    "rounds_before": 0,
    "rounds_after": 0,
}
IN_WORDS = {
    "best": "best accuracy over the rounds",
    "numbers to target": "numbers sent until the target is reached",
}
ENSEMBLE, SERVER, CLIENT = "the ensemble", "the server's model", "a client's model"


@dataclass(frozen=True)
class Conditions:
    """What a number was measured under. `shared`: what holds for all rows of its column; `own`: of its row alone."""

    quantity: str
    dataset: str
    shared: Mapping[str, Any]
    own: Mapping[str, Any]


def quantity_of(method: str, measure: str) -> str:
    """What `measure` reads off a run of `method`, in words: "accuracy of the ensemble"."""
    if measure == "accuracy":
        if method == "local":
            return f"accuracy of {CLIENT}"
        keeps_all = METHODS[method].info.group == "Keep an ensemble"
        return f"accuracy of {ENSEMBLE if keeps_all else SERVER}"
    if measure == "ensemble":
        return f"accuracy of {ENSEMBLE}"
    if measure.startswith("client "):
        return f"accuracy of {CLIENT}"
    return measure


def is_same_quantity(published: str, read: str) -> bool:
    """Whether what was read off our run is what the paper reports; "accuracy" is that of any model that answers."""
    return read == published or read.startswith(f"{published} of ")


def value_of(plan: Plan, name: str) -> Any:
    """The value of an option in a plan, "fusefl.blocks" or "blocks"; None where its method has no such option."""
    plain = name.rpartition(".")[2]
    for part in (plan.method, plan.recipe, plan.settings):
        if hasattr(part, plain):
            return getattr(part, plain)
    return None


@functools.cache
def usual_epochs(preset: str, dataset: str) -> int:
    """Local epochs of a scale on a data set, where nobody sets them."""
    return make_plans(Settings.make(preset=preset, dataset=dataset), ["fedavg"])[0].recipe.epochs


_plans: dict[str, Plan] = {}  # by the point's key: a table asks for the same ones many times


def plan_of(point: Point) -> Plan:
    """The plan of a point's runs, whose seeds make no difference here."""
    if point.key not in _plans:
        _plans[point.key] = point.plan(0)
    return _plans[point.key]


def plans_of(table: PaperTable, run: Wanted) -> tuple[Plan, Plan]:
    """The plan of the paper's run, and that of ours."""
    there = paper_point(table, run, table.columns[run.place])
    return plan_of(there), plan_of(run.point)


def names_of(table: PaperTable, run: Wanted, plan: Plan) -> tuple[list[str], list[str]]:
    """The options that must agree: those of the whole column, and those of the row alone."""
    column = dict(table.columns[run.place].values)
    natural = plan.settings.partition == "natural"
    dealing = [name for name in DEALING if not (natural and name != "clients")]
    if plan.settings.partition == "classes":
        dealing.remove("alpha")
    elif "classes_per_client" in dealing:
        dealing.remove("classes_per_client")
    shared = dict.fromkeys([*column, *table.settings, *dealing])
    own = dict.fromkeys([*table.rows[run.row].settings, *BUDGET])
    skipped = {*OF_THE_SCALE, "epochs", TARGET}
    return (
        [name for name in shared if name not in skipped],
        [name for name in own if name not in skipped and name not in shared],
    )


def read_conditions(
    table: PaperTable, run: Wanted, plan: Plan, quantity: str, dataset: str, epochs: Any
) -> Conditions:
    """The conditions of one side, from its plan."""
    shared, own = names_of(table, run, plan)
    values = {name: value_of(plan, name) for name in shared}
    target = dict(table.columns[run.place].values).get(TARGET)
    if target is not None:
        values[TARGET] = target
    if sets_epochs(table, run):
        values["epochs"] = epochs
    rest = {name.rpartition(".")[2]: value_of(plan, name) for name in own}
    unused = {name for name in rest if rest[name] is None or rest[name] == ""}
    return Conditions(quantity, dataset, values, {k: v for k, v in rest.items() if k not in unused})


def sets_epochs(table: PaperTable, run: Wanted) -> bool:
    """Whether the table says how many local epochs there are: then they are a part of the budget."""
    column = dict(table.columns[run.place].values)
    return any("epochs" in part for part in (table.settings, table.rows[run.row].settings, column))


def both_conditions(table: PaperTable, run: Wanted) -> tuple[Conditions, Conditions]:
    """The conditions of the paper's number and of ours."""
    column, row = table.columns[run.place], table.rows[run.row]
    there, here = plans_of(table, run)
    read = quantity_of(row.method, table.measured(row.name))
    published = read_conditions(
        table, run, there, table.quantity_of(row.name), column.dataset, there.recipe.epochs
    )
    ours = read_conditions(table, run, here, read, run.dataset, here.recipe.epochs)
    return published, ours


def has_same_epochs(table: PaperTable, run: Wanted) -> bool:
    """Whether local epochs that the table sets are the paper's: as many, or the same share of the usual ones."""
    there, here = plans_of(table, run)
    usual = [usual_epochs(plan.settings.preset, plan.settings.dataset) for plan in (there, here)]
    scaled = max(1, round(there.recipe.epochs / usual[0] * usual[1]))
    return here.recipe.epochs in (there.recipe.epochs, scaled)


def find_differences(table: PaperTable, run: Wanted) -> list[str]:
    """In what our number is of another comparison than the paper's: "rounds = 20 here, 100 in the paper"."""
    there, here = both_conditions(table, run)
    found = []
    if not is_same_quantity(there.quantity, here.quantity):
        found.append(f"{here.quantity} here, {there.quantity} in the paper")
    published, ours = {**there.shared, **there.own}, {**here.shared, **here.own}
    for name in {**published, **ours}:
        if name == "epochs":
            differs = not has_same_epochs(table, run)
        else:
            differs = published.get(name) != ours.get(name)
        if differs:
            one, other = spell(ours.get(name)), spell(published.get(name))
            found.append(f"{name} = {one} here, {other} in the paper")
    return found


# ------------------------------------------------------------------------------------------------------- in words
def spell(value: Any) -> str:
    """A value as it is typed; "none" where there is none."""
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def list_values(values: Mapping[str, Any], not_given: Sequence[str] = ()) -> str:
    """'clients = 20, alpha = 0.1'; without options that do nothing, and without how the data are dealt where α or the
    number of classes says so."""
    plain = {**UNUSED, "partition": "classes" if "classes_per_client" in values else "dirichlet"}
    used = {name: value for name, value in values.items() if plain.get(name, "") != value}
    words = {name: f"{name} = {spell(value)}" for name, value in used.items()}
    return ", ".join(
        f"{text} (not given)" if name in not_given else text for name, text in words.items()
    )


def describe_side(
    rows: Sequence[str],
    sides: Sequence[Mapping[str, Conditions]],
    quantity: str,
    not_given: Sequence[str] = (),
) -> str:
    """'accuracy on cifar10 (alpha = 0.01; alpha = 0.1); with clients = 20; NN: rounds = 500; Linear: rounds = 500'.

    sides: for each column the conditions of both `rows`;   not_given: options that the paper does not name
    """
    constant = dict(sides[0][rows[0]].shared)
    for side in sides:
        for row in rows:
            shared = side[row].shared
            constant = {k: v for k, v in constant.items() if k in shared and shared[k] == v}
    places: dict[str, list[str]] = {}
    for side in sides:
        shared = side[rows[0]].shared
        varied = list_values({k: v for k, v in shared.items() if k not in constant})
        if "init" in shared and "init" not in constant:
            varied = f"init = {shared['init']}"
        place = places.setdefault(side[rows[0]].dataset, [])
        if varied and varied not in place:
            place.append(varied)
    named = []
    for dataset, settings in places.items():
        named.append(f"{dataset} ({'; '.join(settings)})" if settings else dataset)
    words = [f"{IN_WORDS.get(quantity, quantity)} on {', '.join(named)}"]
    if stated := list_values(constant, not_given):
        words.append(f"with {stated}")
    for row in rows:
        own = dict.fromkeys(list_values(side[row].own, not_given) for side in sides)
        stated = " or ".join(text for text in own if text)
        if stated:
            words.append(f"{row}: {stated}")
    return "; ".join(words)
