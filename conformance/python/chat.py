"""Chat completions, through openai."""

import asyncio
import json

import openai

from shared import *


def client_of(key=KEY, **options):
    return openai.OpenAI(base_url=f"{URL}/v1", api_key=key, timeout=TIMEOUT_SECONDS, **options)


client = client_of()
# Without retries, so that errors which the client would retry become visible.
client_without_retries = client_of(max_retries=0)


def user(text):
    return {"role": "user", "content": text}


def ask(model, text, client=client, **more):
    return client.chat.completions.create(model=model, messages=[user(text)], **more)


def tool(told):
    return {"type": "function", "function": {**told, "strict": True}}


def calls_of(message):
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]


def results_of(message, results):
    calls = message.tool_calls
    return [
        {"role": "tool", "tool_call_id": call.id, "content": result}
        for call, result in zip(calls, results, strict=True)
    ]


def turn_of(message):
    # SDK helpers add parsed members, which no upstream accepts.
    parsed = {"parsed": True, "tool_calls": {"__all__": {"function": {"parsed_arguments"}}}}
    return message.model_dump(exclude=parsed, exclude_unset=True)


def plain(upstream):
    told = PROMPTS["plain"]
    messages = [{"role": "system", "content": told["system"]}, user(told["prompt"])]
    answer = client.chat.completions.create(model=f"{upstream}/plain", messages=messages)
    same(answer.choices[0].message.content, told["answer"])
    same(answer.choices[0].finish_reason, "stop", "finish reason")
    same(answer.model, f"{upstream}/plain", "model")
    assert answer.id.startswith("chatcmpl_") and answer._request_id.startswith("req_")


def stream(upstream):
    told = PROMPTS["stream"]
    messages = [user(told["prompt"])]
    with client.chat.completions.stream(model=f"{upstream}/plain", messages=messages) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds, kinds
    has(final.choices[0].message.content, told["last"])
    same(final.choices[0].message.role, "assistant", "role")
    same(final.choices[0].finish_reason, "stop", "finish reason")


def history(upstream):
    told = PROMPTS["history"]
    messages = [user(told["first"])]
    first = client.chat.completions.create(model=f"{upstream}/plain", messages=messages)
    # As applications do: the whole message object is sent back.
    messages += [first.choices[0].message, user(told["second"])]
    second = client.chat.completions.create(model=f"{upstream}/plain", messages=messages)
    same(second.choices[0].message.content, told["answer"])


def tools(upstream):
    told = PROMPTS["tools"]
    messages = [user(told["prompt"])]
    options = {"model": f"{upstream}/plain", "messages": messages, "tools": [tool(PROMPTS["weather"])]}
    asked = client.chat.completions.create(**options).choices[0]
    same(asked.finish_reason, "tool_calls", "finish reason")
    same(calls_of(asked.message), [("get_weather", told["arguments"])], "calls")
    messages += [asked.message, *results_of(asked.message, [told["result"]])]
    answered = client.chat.completions.create(**options).choices[0]
    same(answered.finish_reason, "stop", "finish reason")
    has(answered.message.content, told["result"])


def tool_choice(upstream):
    told = PROMPTS["tool_choice"]
    declared = [tool(PROMPTS["weather"]), tool(PROMPTS["time"])]
    choice = {"type": "function", "function": {"name": told["forced"]}}
    options = {"tools": declared, "tool_choice": choice}
    forced = ask(f"{upstream}/plain", told["prompt"], **options).choices[0].message
    same([name for name, _ in calls_of(forced)], [told["forced"]], "calls")
    options = {"tools": declared, "tool_choice": "none"}
    free = ask(f"{upstream}/plain", told["forbidden"], **options).choices[0].message
    assert free.content and not free.tool_calls, free


def parallel(upstream):
    told = PROMPTS["parallel"]
    messages = [user(told["prompt"])]
    options = {"model": f"{upstream}/plain", "messages": messages, "tools": [tool(PROMPTS["weather"])]}
    asked = client.chat.completions.create(**options).choices[0].message
    called_in_parallel(asked)
    messages += [asked, *results_of(asked, told["results"])]
    answered = client.chat.completions.create(**options).choices[0].message
    for result in told["results"]:
        has(answered.content, result)


def parallel_stream(upstream):
    told = PROMPTS["parallel"]
    options = {"messages": [user(told["prompt"])], "tools": [tool(PROMPTS["weather"])]}
    with client.chat.completions.stream(model=f"{upstream}/plain", **options) as stream:
        final = stream.get_final_completion().choices[0]
    same(final.finish_reason, "tool_calls", "finish reason")
    called_in_parallel(final.message)
    same([call.function.parsed_arguments for call in final.message.tool_calls], told["arguments"])


def called_in_parallel(message):
    wanted = [("get_weather", arguments) for arguments in PROMPTS["parallel"]["arguments"]]
    same(calls_of(message), wanted, "calls")
    same(len({call.id for call in message.tool_calls}), 2, "number of ids")


def structured(upstream):
    messages = [user(PROMPTS["structured"]["prompt"])]
    options = {"model": f"{upstream}/plain", "messages": messages, "response_format": Place}
    is_place(client.chat.completions.parse(**options).choices[0].message.parsed)
    with client.chat.completions.stream(**options) as stream:
        is_place(stream.get_final_completion().choices[0].message.parsed)


def image(upstream):
    told = PROMPTS["image"]
    sees(f"{upstream}/plain", f"data:{told['mime_type']};base64,{told['png']}")


def image_url(upstream):
    sees(f"{upstream}/inline", PICTURE_URL)


def sees(model, url):
    told = PROMPTS["image"]
    parts = [
        {"type": "text", "text": told["prompt"]},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    has(ask(model, parts).choices[0].message.content, told["answer"])


def limit(upstream):
    told = PROMPTS["limit"]
    limit = told["output_tokens_max"]
    answer = ask(f"{upstream}/plain", told["prompt"], max_completion_tokens=limit)
    same(answer.choices[0].finish_reason, "length", "finish reason")
    same(answer.usage.completion_tokens, limit, "output tokens")


def usage(upstream):
    prompt = PROMPTS["usage"]["prompt"]
    whole = ask(f"{upstream}/plain", prompt).usage
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *rest, last = ask(f"{upstream}/plain", prompt, **options)
    assert all(chunk.choices and chunk.usage is None for chunk in rest)
    same(last.choices, [], "choices of the last chunk")
    is_usage(*(
        (one.prompt_tokens, one.completion_tokens, one.total_tokens) for one in (whole, last.usage)
    ))


def reasoning(upstream):
    told = PROMPTS["reasoning"]
    options = {"model": f"{upstream}/thinker", "messages": [user(told["prompt"])], "reasoning_effort": "high"}
    whole = client.chat.completions.create(**options)
    with client.chat.completions.stream(**options, stream_options={"include_usage": True}) as stream:
        streamed = stream.get_final_completion()
    for answer in (whole, streamed):
        message = answer.choices[0].message
        if told["shown_in_chat"]:
            # Not a member of the protocol, but clients of open models read it.
            has(message.reasoning_content, told["thought"])
        assert message.content
        details = answer.usage.completion_tokens_details
        is_reasoned(details and details.reasoning_tokens)


def loop(upstream):
    runs_tool_loop(upstream, lambda **body: client.chat.completions.create(**body))


def loop_stream(upstream):
    def create(**body):
        with client.chat.completions.stream(**body) as stream:
            return stream.get_final_completion()

    runs_tool_loop(upstream, create)


def runs_tool_loop(upstream, create):
    told = PROMPTS["loop"]
    messages = [user(told["prompt"])]
    declared = [tool(PROMPTS["weather"]), tool(PROMPTS["time"])]
    options = {"model": f"{upstream}/thinker", "reasoning_effort": "high", "tools": declared}
    for name in told["calls"]:
        asked = create(messages=messages, **options).choices[0].message
        same([name for name, _ in calls_of(asked)], [name], "calls")
        messages += [turn_of(asked), *results_of(asked, [told["results"][name]])]
    answered = create(messages=messages, **options).choices[0]
    for result in told["results"].values():
        has(answered.message.content, result)


def bad_key(upstream):
    with client_of(KEY_WRONG) as client:
        for call in (client.models.list, lambda: ask(f"{upstream}/plain", "hello", client)):
            same(raised(openai.AuthenticationError, call).code, "invalid_api_key", "code")


def bad_request(upstream):
    call = lambda: client.chat.completions.create(model=f"{upstream}/plain", messages=[])
    error = raised(openai.BadRequestError, call)
    same((error.code, error.param, error.type), ("invalid_request", "messages", "invalid_request_error"))
    assert error.request_id.startswith("req_")


def unknown_model(upstream):
    error = raised(openai.NotFoundError, lambda: ask(f"{upstream}/none", "hello"))
    same(error.code, "model_not_found", "code")


def rate_limit(upstream):
    with client_of(KEY_SLOW, max_retries=0) as client:
        error = limited(openai.RateLimitError, lambda: ask(f"{upstream}/plain", "hello", client))
    same(error.code, "rate_limit_exceeded", "code")
    assert 1 <= int(error.response.headers["retry-after"]) <= 60


def empty_wallet(upstream):
    # With the client's default retries, as applications use it.
    with client_of(KEY_POOR) as client:
        error = raised(openai.APIStatusError, lambda: ask(f"{upstream}/plain", "hello", client))
    same((error.status_code, error.code), (402, "insufficient_quota"))


def busy(upstream):
    error = raised(openai.InternalServerError, lambda: ask(f"{upstream}/busy", "hello", client_without_retries))
    same((error.status_code, error.code), (503, "upstream_overloaded"))


def broken_stream(upstream):
    prompt = PROMPTS["broken_stream"]["prompt"]
    error = raised(openai.APIError, lambda: list(ask(f"{upstream}/broken", prompt, stream=True)))
    has(error.code, "upstream_")


def models(_upstream):
    listed = [model.id for model in client.models.list()]
    assert "chat/plain" in listed and "messages/thinker" in listed, listed
    model = client.models.retrieve("chat/plain")
    same((model.id, model.owned_by), ("chat/plain", "chat"))
    raised(openai.NotFoundError, lambda: client.models.retrieve("chat/none"))


def several_choices(upstream):
    answer = ask(f"{upstream}/plain", "hello", n=3, logprobs=True, top_logprobs=2)
    same([choice.index for choice in answer.choices], [0, 1, 2], "choices")
    assert answer.choices[0].logprobs.content


def refused_parameters(upstream):
    for more, code in [
        ({"store": True}, "stateful_not_supported"),
        ({"service_tier": "flex"}, "service_tier_not_supported"),
        ({"extra_body": {"provider": {"only": ["x"]}}}, "routing_not_supported"),
        ({"extra_headers": {"Idempotency-Key": "1"}}, "idempotency_key_not_supported"),
    ]:
        error = raised(openai.BadRequestError, lambda: ask(f"{upstream}/plain", "hello", **more))
        same(error.code, code, "code")


def left_early(upstream):
    with ask(f"{upstream}/plain", "Reply with 500 words.", stream=True) as stream:
        next(iter(stream))


def async_client(upstream):
    async def call():
        options = {"base_url": f"{URL}/v1", "api_key": KEY, "timeout": TIMEOUT_SECONDS}
        body = {"model": f"{upstream}/plain", "messages": [user("say exactly: async")]}
        async with openai.AsyncOpenAI(**options) as client:
            whole = await client.chat.completions.create(**body)
            stream = await client.chat.completions.create(**body, stream=True)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            return whole.choices[0].message.content, "".join(pieces)

    same(asyncio.run(call()), ("async", "async"))


SAME_DIALECT_CELLS = [models, several_choices, refused_parameters, left_early, async_client]
