"""Embeddings, through openai and google-genai."""

import openai
from google import genai
from google.genai import types

from shared import *

TEXTS = ["the cat sleeps", "the cat slept", "STOCKS FELL"]

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, timeout=TIMEOUT_SECONDS)
google = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL))


def near(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def are_near(vectors):
    """The first two vectors must be closer to each other than to the third."""
    first, second, third = vectors
    assert abs(near(first, first) - 1) < 1e-3, near(first, first)
    assert near(first, second) > near(first, third), (near(first, second), near(first, third))


def floats(upstream):
    are_embedded(upstream, encoding_format="float")


def base64(upstream):
    # By default, the client requests base64 and decodes it.
    are_embedded(upstream)


def are_embedded(upstream, **more):
    answer = client.embeddings.create(model=f"{upstream}/plain", input=TEXTS, **more)
    same(answer.model, f"{upstream}/plain", "model")
    are_near([item.embedding for item in answer.data])
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0, answer.usage


def contents(upstream):
    answer = google.models.embed_content(model=f"{upstream}/plain", contents=TEXTS)
    are_near([one.values for one in answer.embeddings])
