"""Responses, through openai."""

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


def ask(model, input, client=client, **more):
    return client.responses.create(model=model, input=input, **more)


def tool(told):
    return {"type": "function", **told, "strict": True}


def calls_of(response):
    return [item for item in response.output if item.type == "function_call"]


def called(response):
    return [(call.name, json.loads(call.arguments)) for call in calls_of(response)]


def results_of(response, results):
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": result}
        for call, result in zip(calls_of(response), results, strict=True)
    ]


def plain(upstream):
    told = PROMPTS["plain"]
    answer = ask(f"{upstream}/plain", told["prompt"], instructions=told["system"])
    same(answer.output_text, told["answer"])
    same((answer.status, answer.model), ("completed", f"{upstream}/plain"))
    assert answer.id.startswith("resp_") and answer._request_id.startswith("req_")


def stream(upstream):
    told = PROMPTS["stream"]
    with client.responses.stream(model=f"{upstream}/plain", input=told["prompt"]) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    same((kinds[0], kinds[-1]), ("response.created", "response.completed"), "events")
    has(final.output_text, told["last"])
    same(final.status, "completed", "status")


def history(upstream):
    told = PROMPTS["history"]
    input = [user(told["first"])]
    first = ask(f"{upstream}/plain", input)
    # As applications do: all items are sent back.
    input += [*first.output, user(told["second"])]
    same(ask(f"{upstream}/plain", input).output_text, told["answer"])


def tools(upstream):
    told = PROMPTS["tools"]
    input = [user(told["prompt"])]
    asked = ask(f"{upstream}/plain", input, tools=[tool(PROMPTS["weather"])])
    same(called(asked), [("get_weather", told["arguments"])], "calls")
    input += [*asked.output, *results_of(asked, [told["result"]])]
    answered = ask(f"{upstream}/plain", input, tools=[tool(PROMPTS["weather"])])
    same(answered.status, "completed", "status")
    has(answered.output_text, told["result"])


def tool_choice(upstream):
    told = PROMPTS["tool_choice"]
    declared = [tool(PROMPTS["weather"]), tool(PROMPTS["time"])]
    options = {"tools": declared, "tool_choice": {"type": "function", "name": told["forced"]}}
    forced = ask(f"{upstream}/plain", told["prompt"], **options)
    same([name for name, _ in called(forced)], [told["forced"]], "calls")
    free = ask(f"{upstream}/plain", told["forbidden"], tools=declared, tool_choice="none")
    assert free.output_text and not called(free), free


def parallel(upstream):
    told = PROMPTS["parallel"]
    input = [user(told["prompt"])]
    asked = ask(f"{upstream}/plain", input, tools=[tool(PROMPTS["weather"])])
    called_in_parallel(asked)
    input += [*asked.output, *results_of(asked, told["results"])]
    answered = ask(f"{upstream}/plain", input, tools=[tool(PROMPTS["weather"])])
    for result in told["results"]:
        has(answered.output_text, result)


def parallel_stream(upstream):
    options = {"input": PROMPTS["parallel"]["prompt"], "tools": [tool(PROMPTS["weather"])]}
    with client.responses.stream(model=f"{upstream}/plain", **options) as stream:
        called_in_parallel(stream.get_final_response())


def called_in_parallel(response):
    wanted = [("get_weather", arguments) for arguments in PROMPTS["parallel"]["arguments"]]
    same(called(response), wanted, "calls")
    same(len({call.call_id for call in calls_of(response)}), 2, "number of ids")


def structured(upstream):
    prompt = PROMPTS["structured"]["prompt"]
    options = {"model": f"{upstream}/plain", "input": prompt, "text_format": Place}
    is_place(client.responses.parse(**options).output_parsed)
    with client.responses.stream(**options) as stream:
        is_place(stream.get_final_response().output_parsed)


def image(upstream):
    told = PROMPTS["image"]
    sees(f"{upstream}/plain", f"data:{told['mime_type']};base64,{told['png']}")


def image_url(upstream):
    sees(f"{upstream}/inline", PICTURE_URL)


def sees(model, url):
    told = PROMPTS["image"]
    parts = [
        {"type": "input_text", "text": told["prompt"]},
        {"type": "input_image", "image_url": url},
    ]
    has(ask(model, [user(parts)]).output_text, told["answer"])


def limit(upstream):
    told = PROMPTS["limit"]
    limit = told["output_tokens_max"]
    answer = ask(f"{upstream}/plain", told["prompt"], max_output_tokens=limit)
    same((answer.status, answer.incomplete_details.reason), ("incomplete", "max_output_tokens"))
    same(answer.usage.output_tokens, limit, "output tokens")


def usage(upstream):
    prompt = PROMPTS["usage"]["prompt"]
    whole = ask(f"{upstream}/plain", prompt).usage
    with client.responses.stream(model=f"{upstream}/plain", input=prompt) as stream:
        streamed = stream.get_final_response().usage
    is_usage(*((one.input_tokens, one.output_tokens, one.total_tokens) for one in (whole, streamed)))


def reasoning(upstream):
    told = PROMPTS["reasoning"]
    options = {"reasoning": {"effort": "high", "summary": "auto"}}
    whole = ask(f"{upstream}/thinker", told["prompt"], **options)
    options = {"model": f"{upstream}/thinker", "input": told["prompt"], **options}
    with client.responses.stream(**options) as stream:
        streamed = stream.get_final_response()
    for answer in (whole, streamed):
        thoughts = [item for item in answer.output if item.type == "reasoning"]
        # Open models return their thoughts instead of a summary.
        parts = [part for item in thoughts for part in item.summary or item.content or []]
        has("".join(part.text for part in parts), told["thought"])
        assert answer.output_text
        details = answer.usage.output_tokens_details
        is_reasoned(details and details.reasoning_tokens)


def loop(upstream):
    runs_tool_loop(upstream, client.responses.create)


def loop_stream(upstream):
    def create(**body):
        with client.responses.stream(**body) as stream:
            return stream.get_final_response()

    runs_tool_loop(upstream, create)


def runs_tool_loop(upstream, create):
    told = PROMPTS["loop"]
    input = [user(told["prompt"])]
    declared = [tool(PROMPTS["weather"]), tool(PROMPTS["time"])]
    options = {
        "model": f"{upstream}/thinker",
        "reasoning": {"effort": "high"},
        "tools": declared,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    for name in told["calls"]:
        asked = create(input=input, **options)
        same([name for name, _ in called(asked)], [name], "calls")
        input += [*asked.output, *results_of(asked, [told["results"][name]])]
    answered = create(input=input, **options)
    for result in told["results"].values():
        has(answered.output_text, result)


def bad_key(upstream):
    with client_of(KEY_WRONG) as client:
        call = lambda: ask(f"{upstream}/plain", "hello", client)
        same(raised(openai.AuthenticationError, call).code, "invalid_api_key", "code")


def bad_request(upstream):
    error = raised(openai.BadRequestError, lambda: ask(f"{upstream}/plain", []))
    same((error.code, error.param, error.type), ("invalid_request", "input", "invalid_request_error"))
    assert error.request_id.startswith("req_")


def unknown_model(upstream):
    error = raised(openai.NotFoundError, lambda: ask(f"{upstream}/none", "hello"))
    same(error.code, "model_not_found", "code")


def rate_limit(upstream):
    with client_of(KEY_SLOW, max_retries=0) as client:
        error = limited(openai.RateLimitError, lambda: ask(f"{upstream}/plain", "hello", client))
    same(error.code, "rate_limit_exceeded", "code")


def empty_wallet(upstream):
    # With the client's default retries, as applications use it.
    with client_of(KEY_POOR) as client:
        error = raised(openai.APIStatusError, lambda: ask(f"{upstream}/plain", "hello", client))
    same((error.status_code, error.code), (402, "insufficient_quota"))


def busy(upstream):
    error = raised(openai.InternalServerError, lambda: ask(f"{upstream}/busy", "hello", client_without_retries))
    same((error.status_code, error.code), (503, "upstream_overloaded"))


def broken_stream(upstream):
    # The client recognises a failed stream by its last event.
    prompt = PROMPTS["broken_stream"]["prompt"]
    *_, last = ask(f"{upstream}/broken", prompt, stream=True)
    same(last.type, "response.failed", "last event")
    same(last.response.status, "failed", "status")
    assert last.response.error.message


def refused_parameters(upstream):
    for more, code in [
        ({"store": True}, "stateful_not_supported"),
        ({"background": True}, "stateful_not_supported"),
        ({"previous_response_id": "resp_1"}, "stateful_not_supported"),
        ({"service_tier": "flex"}, "service_tier_not_supported"),
    ]:
        error = raised(openai.BadRequestError, lambda: ask(f"{upstream}/plain", "hello", **more))
        same(error.code, code, "code")


SAME_DIALECT_CELLS = [refused_parameters]
