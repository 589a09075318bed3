"""Interactions, through google-genai."""

import json

from google import genai
from google.genai import _interactions as errors, types

from talk import *


def client_of(key=KEY, attempts=None):
    retry = types.HttpRetryOptions(attempts=attempts) if attempts else None
    options = {"base_url": URL, "timeout": TIMEOUT_SECONDS * 1000, "retry_options": retry}
    return genai.Client(api_key=key, http_options=types.HttpOptions(**options))


client = client_of()
# Errors that a client would try again on are to be seen.
hasty = client_of(attempts=1)


def ask(model, input, client=client, **more):
    return client.interactions.create(model=model, input=input, **more)


def user(*content):
    return {"type": "user_input", "content": list(content)}


def text(text):
    return {"type": "text", "text": text}


def tool(told):
    return {"type": "function", **told}


def calls_of(steps):
    return [step for step in steps if step.type == "function_call"]


def called(steps):
    return [(call.name, call.arguments) for call in calls_of(steps)]


def results_of(steps, results):
    return [
        {"type": "function_result", "call_id": call.id, "name": call.name, "result": [text(result)]}
        for call, result in zip(calls_of(steps), results, strict=True)
    ]


def gathered(events):
    """The kinds, text, calls and last interaction of a stream; the client gathers none of them."""
    kinds, said, calls, last = [], "", {}, None
    for event in events:
        kinds.append(event.event_type)
        if event.event_type == "step.start" and event.step.type == "function_call":
            calls[event.index] = [event.step.name, ""]
        elif event.event_type == "step.delta" and event.delta.type == "text":
            said += event.delta.text
        elif event.event_type == "step.delta" and event.delta.type == "arguments_delta":
            calls[event.index][1] += event.delta.arguments
        elif event.event_type == "interaction.completed":
            last = event.interaction
    return kinds, said, [(name, json.loads(text)) for name, text in calls.values()], last


def plain(upstream):
    told = TALK["plain"]
    answer = ask(f"{upstream}/plain", told["prompt"], system_instruction=told["system"])
    same(answer.output_text, told["answer"])
    same((answer.status, answer.model), ("completed", f"{upstream}/plain"))
    assert answer.id.startswith("int_")


def stream(upstream):
    told = TALK["stream"]
    kinds, said, _, last = gathered(ask(f"{upstream}/plain", told["prompt"], stream=True))
    same(kinds[:2], ["interaction.created", "interaction.status_update"], "events")
    same(kinds[-1], "interaction.completed", "last event")
    has(said, told["last"])
    same(last.status, "completed", "status")


def history(upstream):
    told = TALK["history"]
    input = [user(text(told["first"]))]
    first = ask(f"{upstream}/plain", input)
    input += [*first.steps, user(text(told["second"]))]
    same(ask(f"{upstream}/plain", input).output_text, told["answer"])


def tools(upstream):
    told = TALK["tools"]
    input = [user(text(told["prompt"]))]
    asked = ask(f"{upstream}/plain", input, tools=[tool(TALK["weather"])])
    same(asked.status, "requires_action", "status")
    same(called(asked.steps), [("get_weather", told["arguments"])], "calls")
    input += [*asked.steps, *results_of(asked.steps, [told["result"]])]
    answered = ask(f"{upstream}/plain", input, tools=[tool(TALK["weather"])])
    same(answered.status, "completed", "status")
    has(answered.output_text, told["result"])


def parallel(upstream):
    told = TALK["parallel"]
    input = [user(text(told["prompt"]))]
    asked = ask(f"{upstream}/plain", input, tools=[tool(TALK["weather"])])
    called_in_parallel(called(asked.steps))
    same(len({call.id for call in calls_of(asked.steps)}), 2, "number of ids")
    input += [*asked.steps, *results_of(asked.steps, told["results"])]
    answered = ask(f"{upstream}/plain", input, tools=[tool(TALK["weather"])])
    for result in told["results"]:
        has(answered.output_text, result)


def parallel_stream(upstream):
    options = {"tools": [tool(TALK["weather"])], "stream": True}
    events = ask(f"{upstream}/plain", TALK["parallel"]["prompt"], **options)
    _, _, calls, last = gathered(events)
    same(last.status, "requires_action", "status")
    called_in_parallel(calls)


def called_in_parallel(calls):
    wanted = [("get_weather", arguments) for arguments in TALK["parallel"]["arguments"]]
    same(calls, wanted, "calls")


def structured(upstream):
    schema = Place.model_json_schema()
    format = {"type": "text", "mime_type": "application/json", "schema": schema}
    prompt = TALK["structured"]["prompt"]
    answer = ask(f"{upstream}/plain", prompt, response_format=format)
    is_place(Place.model_validate_json(answer.output_text))


def image(upstream):
    told = TALK["image"]
    picture = {"type": "image", "data": told["png"], "mime_type": told["mime_type"]}
    answer = ask(f"{upstream}/plain", [user(text(told["prompt"]), picture)])
    has(answer.output_text, told["answer"])


def limit(upstream):
    told = TALK["limit"]
    limit = told["output_tokens_max"]
    config = {"max_output_tokens": limit}
    answer = ask(f"{upstream}/plain", told["prompt"], generation_config=config)
    same((answer.status, answer.usage.total_output_tokens), ("incomplete", limit))


def usage(upstream):
    prompt = TALK["usage"]["prompt"]
    whole = ask(f"{upstream}/plain", prompt).usage
    *_, last = gathered(ask(f"{upstream}/plain", prompt, stream=True))
    is_usage(*(
        (one.total_input_tokens, one.total_output_tokens, one.total_tokens)
        for one in (whole, last.usage)
    ))


THINKING = {"generation_config": {"thinking_level": "high", "thinking_summaries": "auto"}}


def reasoning(upstream):
    told = TALK["reasoning"]
    answer = ask(f"{upstream}/thinker", told["prompt"], **THINKING)
    thoughts = [step for step in answer.steps if step.type == "thought"]
    summaries = [part.text for step in thoughts for part in step.summary or []]
    has("".join(summaries), told["thought"])
    assert answer.output_text
    assert answer.usage.total_thought_tokens > 0, answer.usage
    events = list(ask(f"{upstream}/thinker", told["prompt"], stream=True, **THINKING))
    deltas = [event.delta for event in events if event.event_type == "step.delta"]
    summaries = [delta.content.text for delta in deltas if delta.type == "thought_summary"]
    has("".join(summaries), told["thought"])


def loop(upstream):
    told = TALK["loop"]
    input = [user(text(told["prompt"]))]
    options = {"tools": [tool(TALK["weather"]), tool(TALK["time"])], "store": False, **THINKING}
    for name in told["calls"]:
        asked = ask(f"{upstream}/thinker", input, **options)
        same([name for name, _ in called(asked.steps)], [name], "calls")
        input += [*asked.steps, *results_of(asked.steps, [told["results"][name]])]
    answered = ask(f"{upstream}/thinker", input, **options)
    for result in told["results"].values():
        has(answered.output_text, result)


def bad_key(upstream):
    client = client_of(KEY_WRONG)
    raised(errors.AuthenticationError, lambda: ask(f"{upstream}/plain", "hello", client))


def bad_request(upstream):
    raised(errors.BadRequestError, lambda: ask(f"{upstream}/plain", []))


def unknown_model(upstream):
    raised(errors.NotFoundError, lambda: ask(f"{upstream}/none", "hello"))


def rate_limit(upstream):
    client = client_of(KEY_SLOW, attempts=1)
    limited(errors.RateLimitError, lambda: ask(f"{upstream}/plain", "hello", client))


def empty_wallet(upstream):
    # With the client's own retries: this is no error to try again on.
    client = client_of(KEY_POOR)
    error = raised(errors.APIStatusError, lambda: ask(f"{upstream}/plain", "hello", client))
    same(error.status_code, 402, "status")


def busy(upstream):
    call = lambda: ask(f"{upstream}/busy", "hello", hasty)
    same(raised(errors.InternalServerError, call).status_code, 503, "status")


def broken_stream(upstream):
    # The client tells a stream that failed by its last event.
    prompt = TALK["broken_stream"]["prompt"]
    *_, last = ask(f"{upstream}/broken", prompt, stream=True)
    same(last.event_type, "error", "last event")
    assert last.error.message


def refused_parameters(upstream):
    for more in ({"store": True}, {"background": True}, {"previous_interaction_id": "int_1"}):
        raised(errors.BadRequestError, lambda: ask(f"{upstream}/plain", "hello", **more))


OWN = [refused_parameters]
