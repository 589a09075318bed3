"""Formats outcomes as a table: a row for each client dialect, a column for each upstream dialect."""

from dataclasses import dataclass
from typing import Optional

LABEL_WIDTH = 14
LANGUAGE_WIDTH = 8
COLUMN_WIDTH = 14


@dataclass(frozen=True)
class Outcome:
    """The result of one cell for one pair of dialects, in one language."""

    language: str
    dialect: str
    upstream: str
    cell: str
    reason: Optional[str] = None


def table(outcomes: list[Outcome], dialects: list[str], upstreams: list[str], languages: list[str]):
    rows = [row("caller", "", [f"to {upstream}" for upstream in upstreams])]
    for dialect in dialects:
        for language in languages:
            counts = [count(outcomes, language, dialect, upstream) for upstream in upstreams]
            rows.append(row(dialect if language == languages[0] else "", language, counts))
    return "\n".join(rows)


def row(label: str, language: str, columns: list[str]) -> str:
    cells = "".join(column.ljust(COLUMN_WIDTH) for column in columns)
    return (label.ljust(LABEL_WIDTH) + language.ljust(LANGUAGE_WIDTH) + cells).rstrip()


def count(outcomes: list[Outcome], language: str, dialect: str, upstream: str) -> str:
    pair = [
        one
        for one in outcomes
        if (one.language, one.dialect, one.upstream) == (language, dialect, upstream)
    ]
    return f"{sum(one.reason is None for one in pair)}/{len(pair)}"


def failures(outcomes: list[Outcome]) -> list[str]:
    return [
        f"FAILED {one.dialect} to {one.upstream} in {one.language}, {one.cell}: {one.reason}"
        for one in outcomes
        if one.reason is not None
    ]
