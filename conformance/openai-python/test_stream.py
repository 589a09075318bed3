import openai
import pytest

from conftest import ask


def test_a_stream_ends_with_the_usage_that_was_asked_for(client):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client.chat.completions.create(**ask("reply with 40 words"), **options))
    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.model for chunk in chunks} == {"maker/chat"}
    *rest, last = chunks
    assert last.choices == [] and last.usage.completion_tokens == 40
    text = "".join(chunk.choices[0].delta.content or "" for chunk in rest)
    assert len(text.split()) == 40
    assert rest[-1].choices[0].finish_reason == "stop"


def test_every_chunk_has_a_choice_when_usage_was_not_asked_for(client):
    chunks = list(client.chat.completions.create(**ask("reply with 9 words"), stream=True))
    assert all(chunk.choices for chunk in chunks)
    assert all(chunk.usage is None for chunk in chunks)


def test_the_stream_helper_puts_the_answer_together(client):
    with client.chat.completions.stream(**ask("reply with 25 words")) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert len(final.choices[0].message.content.split()) == 25
    assert final.choices[0].message.role == "assistant"
    assert final.choices[0].finish_reason == "stop"


def test_leaving_a_stream_early_is_no_error(client):
    with client.chat.completions.create(**ask("reply with 500 words"), stream=True) as stream:
        next(iter(stream))


def test_a_stream_that_breaks_raises_our_error(client, upstream):
    upstream.break_next("error-event=3")
    with pytest.raises(openai.APIError) as caught:
        for _ in client.chat.completions.create(**ask("reply with 40 words"), stream=True):
            pass
    assert caught.value.code == "upstream_error"
    assert "sim" not in str(caught.value).lower()
