"""Clients as any user of the SDK makes them, and a look behind the gateway."""

import json
import os
import urllib.request

import openai
import pytest

BASE_URL = os.environ["TOLLGATE_URL"] + "/v1"
UPSTREAM = os.environ["TOLLGATE_UPSTREAM_URL"]


def client_of(key: str, **options) -> openai.OpenAI:
    return openai.OpenAI(base_url=BASE_URL, api_key=os.environ.get(key, key), **options)


@pytest.fixture
def client():
    with client_of("TOLLGATE_KEY") as client:
        yield client


class Upstream:
    """The simulated upstream's control endpoint."""

    def calls(self) -> int:
        return self.ask("calls/count")["received"]

    def break_next(self, faults: str, times: int = 1):
        self.ask("faults", {"model": "*", "faults": faults, "times": times})

    def ask(self, path: str, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{UPSTREAM}/_sim/{path}", data) as answer:
            return json.load(answer)


@pytest.fixture
def upstream():
    return Upstream()


def ask(prompt: str, **more) -> dict:
    return {"model": "maker/chat", "messages": [{"role": "user", "content": prompt}], **more}
