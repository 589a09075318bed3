import openai
import pytest

from conftest import ask, client_of


def test_a_bad_key_is_an_authentication_error():
    with client_of("sk-tg-wrong") as client:
        for call in (client.models.list, lambda: client.chat.completions.create(**ask("hello"))):
            with pytest.raises(openai.AuthenticationError) as caught:
                call()
            assert caught.value.code == "invalid_api_key"


def test_empty_messages_are_a_bad_request(client, upstream):
    before = upstream.calls()
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="maker/chat", messages=[])
    assert caught.value.code == "invalid_request"
    assert caught.value.param == "messages"
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id.startswith("req_")
    assert upstream.calls() == before


def test_refusals_carry_their_code(client):
    for more, code in [
        ({"store": True}, "stateful_not_supported"),
        ({"service_tier": "flex"}, "service_tier_not_supported"),
        ({"extra_body": {"provider": {"only": ["x"]}}}, "routing_not_supported"),
        ({"extra_headers": {"Idempotency-Key": "1"}}, "idempotency_key_not_supported"),
    ]:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(**ask("hello"), **more)
        assert caught.value.code == code


def test_an_unknown_model_is_not_found(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(**{**ask("hello"), "model": "maker/none"})
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("maker/none")


def test_an_endpoint_that_is_not_served_is_not_found(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.files.list()
    assert caught.value.code == "not_found"


class Attempts:
    """Counts what the client really sends."""

    def __init__(self, client):
        self.count = 0
        client._client.event_hooks["request"].append(self.note)

    def note(self, _request):
        self.count += 1


def test_an_empty_wallet_is_a_402_that_is_not_retried(upstream):
    before = upstream.calls()
    with client_of("TOLLGATE_KEY_POOR") as client:
        attempts = Attempts(client)
        with pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(**ask("hello"))
    assert (caught.value.status_code, caught.value.code) == (402, "insufficient_quota")
    assert attempts.count == 1
    assert upstream.calls() == before


def test_a_rate_limit_is_told_with_its_pause():
    with client_of("TOLLGATE_KEY_SLOW", max_retries=0) as client:
        for _ in range(2):
            client.chat.completions.create(**ask("hello"))
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(**ask("hello"))
    assert caught.value.code == "rate_limit_exceeded"
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 30


def test_an_overloaded_upstream_is_retried_by_the_client(client, upstream):
    upstream.break_next("status=429")
    attempts = Attempts(client)
    answer = client.chat.completions.create(**ask("say exactly: at last"))
    assert answer.choices[0].message.content == "at last"
    assert attempts.count == 2


def test_an_upstreams_refusal_keeps_its_words_and_loses_its_names(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**ask("hello", temperature=9))
    assert (caught.value.code, caught.value.param) == ("upstream_rejected", "temperature")
    assert "sim-" not in str(caught.value)
