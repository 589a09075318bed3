"""Interactions, through google-genai."""

import json
from types import SimpleNamespace

from google import genai
from google.genai import _interactions as errors, interactions, types
from pydantic import TypeAdapter

from shared import *


def client_of(key=KEY, attempts=None):
    retry = types.HttpRetryOptions(attempts=attempts) if attempts else None
    options = {"base_url": URL, "timeout": TIMEOUT_SECONDS * 1000, "retry_options": retry}
    return genai.Client(api_key=key, http_options=types.HttpOptions(**options))


client = client_of()
# Without retries, so that errors which the client would retry become visible.
client_without_retries = client_of(attempts=1)


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


def answer_of_stream(events):
    """Builds the interaction from its stream, which the client does not do."""
    kinds, steps, last = [], [], None
    for event in events:
        kinds.append(event.event_type)
        if event.event_type == "step.start":
            steps.append(event.step.model_dump(exclude_none=True))
        elif event.event_type == "step.delta":
            append_delta(steps[event.index], event.delta)
        elif event.event_type == "interaction.completed":
            last = event.interaction
    for step in steps:
        if "fragments" in step:
            step["arguments"] = json.loads(step.pop("fragments"))
    steps = TypeAdapter(list[interactions.Step]).validate_python(steps)
    return SimpleNamespace(kinds=kinds, steps=steps, status=last.status, usage=last.usage)


def append_delta(step, delta):
    if delta.type == "text":
        [content] = step.setdefault("content", [text("")])
        content["text"] += delta.text
    elif delta.type == "arguments_delta":
        step["fragments"] = step.get("fragments", "") + delta.arguments
    elif delta.type == "thought_summary":
        step.setdefault("summary", []).append(text(delta.content.text))
    elif delta.type == "thought_signature":
        step["signature"] = delta.signature


def text_of(steps):
    outputs = [step for step in steps if step.type == "model_output"]
    return "".join(part.text for step in outputs for part in step.content)


def thoughts_of(steps):
    thoughts = [step for step in steps if step.type == "thought"]
    return "".join(part.text for step in thoughts for part in step.summary or [])


def plain(upstream):
    told = PROMPTS["plain"]
    answer = ask(f"{upstream}/plain", told["prompt"], system_instruction=told["system"])
    same(answer.output_text, told["answer"])
    same((answer.status, answer.model), ("completed", f"{upstream}/plain"))
    assert answer.id.startswith("int_")


def stream(upstream):
    told = PROMPTS["stream"]
    answer = answer_of_stream(ask(f"{upstream}/plain", told["prompt"], stream=True))
    same(answer.kinds[:2], ["interaction.created", "interaction.status_update"], "events")
    same(answer.kinds[-1], "interaction.completed", "last event")
    has(text_of(answer.steps), told["last"])
    same(answer.status, "completed", "status")


def history(upstream):
    told = PROMPTS["history"]
    input = [user(text(told["first"]))]
    first = ask(f"{upstream}/plain", input)
    input += [*first.steps, user(text(told["second"]))]
    same(ask(f"{upstream}/plain", input).output_text, told["answer"])


def tools(upstream):
    told = PROMPTS["tools"]
    input = [user(text(told["prompt"]))]
    asked = ask(f"{upstream}/plain", input, tools=[tool(PROMPTS["weather"])])
    same(asked.status, "requires_action", "status")
    same(called(asked.steps), [("get_weather", told["arguments"])], "calls")
    input += [*asked.steps, *results_of(asked.steps, [told["result"]])]
    answered = ask(f"{upstream}/plain", input, tools=[tool(PROMPTS["weather"])])
    same(answered.status, "completed", "status")
    has(answered.output_text, told["result"])


def tool_choice(upstream):
    told = PROMPTS["tool_choice"]
    declared = [tool(PROMPTS["weather"]), tool(PROMPTS["time"])]
    choice = {"allowed_tools": {"mode": "any", "tools": [told["forced"]]}}
    options = {"tools": declared, "generation_config": {"tool_choice": choice}}
    forced = ask(f"{upstream}/plain", told["prompt"], **options)
    same([name for name, _ in called(forced.steps)], [told["forced"]], "calls")
    options = {"tools": declared, "generation_config": {"tool_choice": "none"}}
    free = ask(f"{upstream}/plain", told["forbidden"], **options)
    assert free.output_text and not called(free.steps), free


def parallel(upstream):
    told = PROMPTS["parallel"]
    input = [user(text(told["prompt"]))]
    asked = ask(f"{upstream}/plain", input, tools=[tool(PROMPTS["weather"])])
    called_in_parallel(asked)
    input += [*asked.steps, *results_of(asked.steps, told["results"])]
    answered = ask(f"{upstream}/plain", input, tools=[tool(PROMPTS["weather"])])
    for result in told["results"]:
        has(answered.output_text, result)


def parallel_stream(upstream):
    options = {"tools": [tool(PROMPTS["weather"])], "stream": True}
    called_in_parallel(answer_of_stream(ask(f"{upstream}/plain", PROMPTS["parallel"]["prompt"], **options)))


def called_in_parallel(answer):
    same(answer.status, "requires_action", "status")
    wanted = [("get_weather", arguments) for arguments in PROMPTS["parallel"]["arguments"]]
    same(called(answer.steps), wanted, "calls")
    same(len({call.id for call in calls_of(answer.steps)}), 2, "number of ids")


def structured(upstream):
    schema = Place.model_json_schema()
    format = {"type": "text", "mime_type": "application/json", "schema": schema}
    prompt = PROMPTS["structured"]["prompt"]
    answer = ask(f"{upstream}/plain", prompt, response_format=format)
    is_place(Place.model_validate_json(answer.output_text))


def image(upstream):
    told = PROMPTS["image"]
    sees(f"{upstream}/plain", {"data": told["png"], "mime_type": told["mime_type"]})


def image_url(upstream):
    sees(f"{upstream}/inline", {"uri": PICTURE_URL})


def sees(model, source):
    told = PROMPTS["image"]
    answer = ask(model, [user(text(told["prompt"]), {"type": "image", **source})])
    has(answer.output_text, told["answer"])


def limit(upstream):
    told = PROMPTS["limit"]
    limit = told["output_tokens_max"]
    config = {"max_output_tokens": limit}
    answer = ask(f"{upstream}/plain", told["prompt"], generation_config=config)
    same((answer.status, answer.usage.total_output_tokens), ("incomplete", limit))


def usage(upstream):
    prompt = PROMPTS["usage"]["prompt"]
    whole = ask(f"{upstream}/plain", prompt).usage
    streamed = answer_of_stream(ask(f"{upstream}/plain", prompt, stream=True)).usage
    is_usage(*(
        (one.total_input_tokens, one.total_output_tokens, one.total_tokens)
        for one in (whole, streamed)
    ))


THINKING = {"generation_config": {"thinking_level": "high", "thinking_summaries": "auto"}}


def reasoning(upstream):
    told = PROMPTS["reasoning"]
    whole = ask(f"{upstream}/thinker", told["prompt"], **THINKING)
    streamed = answer_of_stream(ask(f"{upstream}/thinker", told["prompt"], stream=True, **THINKING))
    for answer in (whole, streamed):
        has(thoughts_of(answer.steps), told["thought"])
        assert text_of(answer.steps)
        is_reasoned(answer.usage.total_thought_tokens)


def loop(upstream):
    runs_tool_loop(upstream, ask)


def loop_stream(upstream):
    runs_tool_loop(upstream, lambda *asked, **more: answer_of_stream(ask(*asked, stream=True, **more)))


def runs_tool_loop(upstream, ask):
    told = PROMPTS["loop"]
    input = [user(text(told["prompt"]))]
    options = {"tools": [tool(PROMPTS["weather"]), tool(PROMPTS["time"])], "store": False, **THINKING}
    for name in told["calls"]:
        asked = ask(f"{upstream}/thinker", input, **options)
        same([name for name, _ in called(asked.steps)], [name], "calls")
        input += [*asked.steps, *results_of(asked.steps, [told["results"][name]])]
    answered = ask(f"{upstream}/thinker", input, **options)
    for result in told["results"].values():
        has(text_of(answered.steps), result)


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
    # With the client's default retries, as applications use it.
    client = client_of(KEY_POOR)
    error = raised(errors.APIStatusError, lambda: ask(f"{upstream}/plain", "hello", client))
    same(error.status_code, 402, "status")


def busy(upstream):
    call = lambda: ask(f"{upstream}/busy", "hello", client_without_retries)
    same(raised(errors.InternalServerError, call).status_code, 503, "status")


def broken_stream(upstream):
    # The client recognises a failed stream by its last event.
    prompt = PROMPTS["broken_stream"]["prompt"]
    *_, last = ask(f"{upstream}/broken", prompt, stream=True)
    same(last.event_type, "error", "last event")
    assert last.error.message


def refused_parameters(upstream):
    for more in ({"store": True}, {"background": True}, {"previous_interaction_id": "int_1"}):
        raised(errors.BadRequestError, lambda: ask(f"{upstream}/plain", "hello", **more))


SAME_DIALECT_CELLS = [refused_parameters]
