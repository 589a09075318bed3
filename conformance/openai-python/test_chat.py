import base64

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from conftest import BASE_URL, ask

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154"
        "78da6364f8cf500f00038601805a347d6b0000000049454e44ae426082"
    )
).decode()


def test_a_chat_is_answered(client):
    answer = client.chat.completions.create(**ask("say exactly: hello there"))
    assert answer.id.startswith("chatcmpl_")
    assert answer.model == "maker/chat"
    assert answer.choices[0].message.content == "hello there"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id.startswith("req_")


def test_raw_answers_carry_our_headers_alone(client):
    raw = client.chat.completions.with_raw_response.create(**ask("hello"))
    assert raw.headers["x-request-id"].startswith("req_")
    for name in ("openai-organization", "server", "set-cookie", "cf-ray"):
        assert name not in raw.headers
    assert raw.parse().model == "maker/chat"


def test_a_conversation_goes_on(client):
    messages = [{"role": "user", "content": "My name is Ada."}]
    first = client.chat.completions.create(model="maker/chat", messages=messages)
    # As people write it: the whole message object goes back.
    messages += [first.choices[0].message, {"role": "user", "content": "What is my name?"}]
    second = client.chat.completions.create(model="maker/chat", messages=messages)
    assert second.choices[0].message.content == "Your name is Ada."


def test_an_image_goes_in(client):
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    ]
    messages = [{"role": "user", "content": parts}]
    answer = client.chat.completions.create(model="maker/chat", messages=messages)
    assert "1x1 PNG" in answer.choices[0].message.content


def test_an_answer_is_parsed_by_its_schema(client):
    class Place(BaseModel):
        city: str
        people: int

    answer = client.chat.completions.parse(**ask("Where is it?"), response_format=Place)
    place = answer.choices[0].message.parsed
    assert isinstance(place, Place)
    assert isinstance(place.people, int)


def test_reasoning_is_told_and_counted(client):
    body = {**ask("Why?"), "model": "maker/reason", "reasoning_effort": "high"}
    answer = client.chat.completions.create(**body)
    assert answer.choices[0].message.reasoning_content
    assert answer.usage.completion_tokens_details.reasoning_tokens > 0


def test_several_choices_and_logprobs(client):
    answer = client.chat.completions.create(**ask("hello", n=3, logprobs=True, top_logprobs=2))
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert answer.choices[0].logprobs.content


def test_a_limit_cuts_the_answer(client):
    answer = client.chat.completions.create(**ask("reply with 50 words", max_completion_tokens=5))
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 5


@pytest.mark.parametrize("stream", [False, True])
def test_the_async_client_works_alike(stream):
    import asyncio
    import os

    async def call():
        async with AsyncOpenAI(base_url=BASE_URL, api_key=os.environ["TOLLGATE_KEY"]) as client:
            answer = await client.chat.completions.create(**ask("say exactly: async"), stream=stream)
            if not stream:
                return answer.choices[0].message.content
            return "".join([chunk.choices[0].delta.content or "" async for chunk in answer])

    assert asyncio.run(call()) == "async"
