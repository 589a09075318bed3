"""Messages, through anthropic."""

import json

import anthropic
from anthropic import beta_tool

from shared import *


def client_of(key=KEY, **options):
    return anthropic.Anthropic(base_url=URL, api_key=key, timeout=TIMEOUT_SECONDS, **options)


client = client_of()
# Without retries, so that errors which the client would retry become visible.
client_without_retries = client_of(max_retries=0)


def user(content):
    return {"role": "user", "content": content}


def asked(model, content, **more):
    """The members of a request with one user message, or with a list of messages."""
    messages = content if isinstance(content, list) else [user(content)]
    limit = PROMPTS["output_tokens_max"]
    return {"model": model, "messages": messages, "max_tokens": limit, **more}


def ask(model, content, client=client, **more):
    return client.messages.create(**asked(model, content, **more))


def tool(told):
    rest = {name: told[name] for name in ("name", "description")}
    return {**rest, "input_schema": told["parameters"]}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def calls_of(message):
    return [block for block in message.content if block.type == "tool_use"]


def called(message):
    return [(call.name, call.input) for call in calls_of(message)]


def results_of(message, results):
    return user([
        {"type": "tool_result", "tool_use_id": call.id, "content": result}
        for call, result in zip(calls_of(message), results, strict=True)
    ])


def turn_of(message):
    return {"role": "assistant", "content": message.content}


def plain(upstream):
    told = PROMPTS["plain"]
    answer = ask(f"{upstream}/plain", told["prompt"], system=told["system"])
    same(text_of(answer), told["answer"])
    same((answer.stop_reason, answer.model), ("end_turn", f"{upstream}/plain"))
    assert answer.id.startswith("msg_") and answer._request_id.startswith("req_")


def stream(upstream):
    told = PROMPTS["stream"]
    with client.messages.stream(**asked(f"{upstream}/plain", told["prompt"])) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    has(text, told["last"])
    same(text_of(final), text)
    same((final.role, final.stop_reason), ("assistant", "end_turn"))


def history(upstream):
    told = PROMPTS["history"]
    messages = [user(told["first"])]
    first = ask(f"{upstream}/plain", messages)
    messages += [turn_of(first), user(told["second"])]
    same(text_of(ask(f"{upstream}/plain", messages)), told["answer"])


def tools(upstream):
    told = PROMPTS["tools"]
    messages = [user(told["prompt"])]
    first = ask(f"{upstream}/plain", messages, tools=[tool(PROMPTS["weather"])])
    same(first.stop_reason, "tool_use", "stop reason")
    same(called(first), [("get_weather", told["arguments"])], "calls")
    messages += [turn_of(first), results_of(first, [told["result"]])]
    second = ask(f"{upstream}/plain", messages, tools=[tool(PROMPTS["weather"])])
    same(second.stop_reason, "end_turn", "stop reason")
    has(text_of(second), told["result"])


def tool_choice(upstream):
    told = PROMPTS["tool_choice"]
    declared = [tool(PROMPTS["weather"]), tool(PROMPTS["time"])]
    options = {"tools": declared, "tool_choice": {"type": "tool", "name": told["forced"]}}
    forced = ask(f"{upstream}/plain", told["prompt"], **options)
    same([name for name, _ in called(forced)], [told["forced"]], "calls")
    options = {"tools": declared, "tool_choice": {"type": "none"}}
    free = ask(f"{upstream}/plain", told["forbidden"], **options)
    assert text_of(free) and not called(free), free


def parallel(upstream):
    told = PROMPTS["parallel"]
    messages = [user(told["prompt"])]
    first = ask(f"{upstream}/plain", messages, tools=[tool(PROMPTS["weather"])])
    called_in_parallel(first)
    messages += [turn_of(first), results_of(first, told["results"])]
    second = ask(f"{upstream}/plain", messages, tools=[tool(PROMPTS["weather"])])
    for result in told["results"]:
        has(text_of(second), result)


def parallel_stream(upstream):
    options = {"tools": [tool(PROMPTS["weather"])]}
    body = asked(f"{upstream}/plain", PROMPTS["parallel"]["prompt"], **options)
    with client.messages.stream(**body) as stream:
        final = stream.get_final_message()
    same(final.stop_reason, "tool_use", "stop reason")
    called_in_parallel(final)


def called_in_parallel(message):
    wanted = [("get_weather", arguments) for arguments in PROMPTS["parallel"]["arguments"]]
    same(called(message), wanted, "calls")
    same(len({call.id for call in calls_of(message)}), 2, "number of ids")


def structured(upstream):
    body = asked(f"{upstream}/plain", PROMPTS["structured"]["prompt"], output_format=Place)
    is_place(client.messages.parse(**body).parsed_output)
    with client.messages.stream(**body) as stream:
        is_place(stream.get_final_message().parsed_output)


def image(upstream):
    told = PROMPTS["image"]
    source = {"type": "base64", "media_type": told["mime_type"], "data": told["png"]}
    sees(f"{upstream}/plain", source)


def image_url(upstream):
    sees(f"{upstream}/inline", {"type": "url", "url": PICTURE_URL})


def sees(model, source):
    told = PROMPTS["image"]
    content = [{"type": "image", "source": source}, {"type": "text", "text": told["prompt"]}]
    has(text_of(ask(model, [user(content)])), told["answer"])


def limit(upstream):
    told = PROMPTS["limit"]
    limit = told["output_tokens_max"]
    answer = ask(f"{upstream}/plain", told["prompt"], max_tokens=limit)
    same((answer.stop_reason, answer.usage.output_tokens), ("max_tokens", limit))


def usage(upstream):
    body = asked(f"{upstream}/plain", PROMPTS["usage"]["prompt"])
    whole = client.messages.create(**body).usage
    with client.messages.stream(**body) as stream:
        streamed = stream.get_final_message().usage
    is_usage(figures(whole), figures(streamed))


def figures(usage):
    """The protocol reports cached input separately, without a total."""
    input_tokens = usage.input_tokens + (usage.cache_read_input_tokens or 0)
    return input_tokens, usage.output_tokens, input_tokens + usage.output_tokens


THINKING = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}


def reasoning(upstream):
    told = PROMPTS["reasoning"]
    body = asked(f"{upstream}/thinker", told["prompt"], **THINKING)
    whole = client.messages.create(**body)
    with client.messages.stream(**body) as stream:
        streamed = stream.get_final_message()
    for answer in (whole, streamed):
        thoughts = [block for block in answer.content if block.type == "thinking"]
        has("".join(block.thinking for block in thoughts), told["thought"])
        assert text_of(answer)


def loop(upstream):
    runs_tool_loop(upstream, stream=False)


def loop_stream(upstream):
    runs_tool_loop(upstream, stream=True)


def runs_tool_loop(upstream, **more):
    told = PROMPTS["loop"]
    made = []

    def run(name):
        made.append(name)
        return told["results"][name]

    @beta_tool(name="get_weather", description=PROMPTS["weather"]["description"])
    def get_weather(city: str) -> str:
        return run("get_weather")

    @beta_tool(name="get_time", description=PROMPTS["time"]["description"])
    def get_time(city: str) -> str:
        return run("get_time")

    # The runner first asks the server to store the thread, and continues without it if that is refused.
    body = asked(f"{upstream}/thinker", told["prompt"], tools=[get_weather, get_time], **THINKING)
    final = client.beta.messages.tool_runner(**body, max_iterations=5, **more).until_done()
    same(made, told["calls"], "calls")
    for result in told["results"].values():
        has(text_of(final), result)


def bad_key(upstream):
    with client_of(KEY_WRONG) as client:
        call = lambda: ask(f"{upstream}/plain", "hello", client)
        same(raised(anthropic.AuthenticationError, call).type, "authentication_error", "type")


def bad_request(upstream):
    error = raised(anthropic.BadRequestError, lambda: ask(f"{upstream}/plain", []))
    same(error.type, "invalid_request_error", "type")
    assert error.request_id.startswith("req_")


def unknown_model(upstream):
    error = raised(anthropic.NotFoundError, lambda: ask(f"{upstream}/none", "hello"))
    same(error.type, "not_found_error", "type")


def rate_limit(upstream):
    with client_of(KEY_SLOW, max_retries=0) as client:
        call = lambda: ask(f"{upstream}/plain", "hello", client)
        same(limited(anthropic.RateLimitError, call).type, "rate_limit_error", "type")


def empty_wallet(upstream):
    # With the client's default retries, as applications use it.
    with client_of(KEY_POOR) as client:
        call = lambda: ask(f"{upstream}/plain", "hello", client)
        error = raised(anthropic.APIStatusError, call)
    same((error.status_code, error.type), (402, "billing_error"))


def busy(upstream):
    call = lambda: ask(f"{upstream}/busy", "hello", client_without_retries)
    same(raised(anthropic.ServiceUnavailableError, call).type, "overloaded_error", "type")


def broken_stream(upstream):
    body = asked(f"{upstream}/broken", PROMPTS["broken_stream"]["prompt"])

    def call():
        with client.messages.stream(**body) as stream:
            return stream.get_final_message()

    error = raised(anthropic.APIStatusError, call)
    assert error.type in ("api_error", "overloaded_error"), error.type


def without_a_limit(upstream):
    body = asked(f"{upstream}/plain", "hello")
    del body["max_tokens"]
    raised(anthropic.BadRequestError, lambda: client.post("/v1/messages", body=body, cast_to=object))


SAME_DIALECT_CELLS = [without_a_limit]
