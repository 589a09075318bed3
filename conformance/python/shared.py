"""The prompts and expected answers of all dialects, and shared checks."""

import json
import os
from pathlib import Path
from typing import Literal, Optional

from pydantic import BaseModel

PROMPTS = json.loads(Path(os.environ["TOLLGATE_PROMPTS"]).read_text())
URL = os.environ["TOLLGATE_URL"]
PICTURE_URL = os.environ["TOLLGATE_PICTURE_URL"]
KEY = os.environ["TOLLGATE_KEY"]
KEY_POOR = os.environ["TOLLGATE_KEY_POOR"]
KEY_SLOW = os.environ["TOLLGATE_KEY_SLOW"]
KEY_WRONG = "sk-tg-wrong"

# The timeout of a client for one answer.
TIMEOUT_SECONDS = 60
# This many requests exceed two per minute, wherever the minute starts.
CALLS_UNTIL_LIMITED = 5


class River(BaseModel):
    name: str
    length_km: float


class Place(BaseModel):
    """A schema with a nested object, a list, an enumeration and an optional member."""

    city: str
    people: int
    kind: Literal["town", "village"]
    streets: list[str]
    river: River
    mayor: Optional[str]


def is_place(place):
    assert isinstance(place, Place), f"not parsed: {place!r}"
    assert place.city == PROMPTS["structured"]["city"], place


def raised(kind, call):
    """The error of a call, which must be an instance of `kind`."""
    try:
        answer = call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was expected, not {answer!r:.200}")


def limited(kind, call):
    """Repeats a call until the key's rate limit refuses it, and returns that error."""

    def again():
        return [call() for _ in range(CALLS_UNTIL_LIMITED)]

    return raised(kind, again)


def same(got, wanted, what="answer"):
    assert got == wanted, f"{what} is {got!r:.300}, not {wanted!r:.300}"


def has(got, part):
    assert got and part in got, f"{part!r} is not in {got!r:.300}"


def is_reasoned(tokens):
    """Upstreams that count reasoning tokens must report some."""
    assert not PROMPTS["reasoning"]["tokens_reported"] or tokens > 0, f"{tokens} tokens of thoughts"


def is_usage(whole, streamed):
    """Checks input, output and total of the same call, buffered and streamed."""
    same(streamed, whole, "streamed usage")
    told = PROMPTS["usage"]
    input_tokens, output_tokens, total_tokens = whole
    assert told["input_min"] <= input_tokens <= told["input_max"], f"{input_tokens} input tokens"
    same(output_tokens, told["output"], "output tokens")
    same(total_tokens, input_tokens + output_tokens, "total tokens")
