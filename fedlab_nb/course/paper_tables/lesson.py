"""The papers' tables: five claims to bet on, and how they came out."""

from collections.abc import Sequence
from typing import Any

from ..kit import Card

# (table, the other method): one rival each that is weak, strong, of another kind.
BETS = (
    ("fens:1", "FedAvg"),
    ("fens:10", "FedAdam"),
    ("coboosting:1", "FedDF"),
    ("coboosting:3", "DENSE"),
    ("fedlpa:1", "DENSE"),
)


def find_bets(claims: Sequence[Any]) -> list[Any]:
    """The claims of BETS, in their order, from `fl.paper_tables().claims`."""
    by_name = {}
    for claim in claims:
        for method in (claim.better, claim.worse):
            by_name[claim.table.name, method] = claim
    return [by_name[bet] for bet in BETS]


def describe_bet(number: int, claim: Any) -> str:
    """'1. FENS is ahead of FedAvg (fens:1)'."""
    return f"{number}. {claim.better} is ahead of {claim.worse} ({claim.table.name})"


def five_claims(claims: Sequence[Any]) -> Card:
    """The five claims, without their outcomes."""
    lines = []
    for number, claim in enumerate(find_bets(claims), 1):
        lines.append(f"{describe_bet(number, claim)}.")
    return Card("worked", "\n".join(lines), "As published")


def count_held(claims: Sequence[Any]) -> int:
    """How many of the five hold in the package's runs."""
    return sum(claim.outcome == "holds" for claim in find_bets(claims))


def five_outcomes(claims: Sequence[Any]) -> Card:
    """The five claims, and how each came out."""
    lines = []
    for number, claim in enumerate(find_bets(claims), 1):
        lines.append(f"{describe_bet(number, claim)}: {claim.outcome}.")
    return Card("worked", "\n".join(lines), "In our runs")
