"""Generate Content, through google-genai."""

import base64

from google import genai
from google.genai import errors, types

from shared import *


def client_of(key=KEY, attempts=None):
    retry = types.HttpRetryOptions(attempts=attempts) if attempts else None
    options = {"base_url": URL, "timeout": TIMEOUT_SECONDS * 1000, "retry_options": retry}
    return genai.Client(api_key=key, http_options=types.HttpOptions(**options))


client = client_of()
# Without retries, so that errors which the client would retry become visible.
client_without_retries = client_of(attempts=1)


def ask(model, contents, client=client, **config):
    return client.models.generate_content(model=model, contents=contents, config=config)


def stream_of(model, contents, **config):
    return client.models.generate_content_stream(model=model, contents=contents, config=config)


def user(text):
    return types.Content(role="user", parts=[types.Part.from_text(text=text)])


def tool(*told):
    declared = [
        {
            "name": one["name"],
            "description": one["description"],
            "parameters_json_schema": one["parameters"],
        }
        for one in told
    ]
    return {"tools": [{"function_declarations": declared}]}


def called(calls):
    return [(call.name, call.args) for call in calls]


def results_of(calls, results):
    parts = [
        types.Part(function_response={"id": call.id, "name": call.name, "response": {"output": result}})
        for call, result in zip(calls, results, strict=True)
    ]
    return types.Content(role="user", parts=parts)


def finish(answer):
    return answer.candidates[0].finish_reason


def plain(upstream):
    told = PROMPTS["plain"]
    answer = ask(f"{upstream}/plain", told["prompt"], system_instruction=told["system"])
    same(answer.text, told["answer"])
    same((finish(answer), answer.model_version), (types.FinishReason.STOP, f"{upstream}/plain"))
    assert answer.response_id


def stream(upstream):
    # The chat keeps the streamed answer as its history if every chunk was valid.
    told = PROMPTS["stream"]
    chat = client.chats.create(model=f"{upstream}/plain")
    text = "".join(chunk.text or "" for chunk in chat.send_message_stream(told["prompt"]))
    has(text, told["last"])
    kept = [part.text or "" for turn in chat.get_history(curated=True)[1:] for part in turn.parts]
    same("".join(kept), text, "history")


def history(upstream):
    told = PROMPTS["history"]
    chat = client.chats.create(model=f"{upstream}/plain")
    for _ in chat.send_message_stream(told["first"]):
        pass
    same(chat.send_message(told["second"]).text, told["answer"])


def tools(upstream):
    told = PROMPTS["tools"]
    contents = [user(told["prompt"])]
    asked = ask(f"{upstream}/plain", contents, **tool(PROMPTS["weather"]))
    same(finish(asked), types.FinishReason.STOP, "finish reason")
    same(called(asked.function_calls), [("get_weather", told["arguments"])], "calls")
    contents += [asked.candidates[0].content, results_of(asked.function_calls, [told["result"]])]
    has(ask(f"{upstream}/plain", contents, **tool(PROMPTS["weather"])).text, told["result"])


def tool_choice(upstream):
    told = PROMPTS["tool_choice"]
    declared = tool(PROMPTS["weather"], PROMPTS["time"])
    calling = {"mode": "ANY", "allowed_function_names": [told["forced"]]}
    config = {**declared, "tool_config": {"function_calling_config": calling}}
    forced = ask(f"{upstream}/plain", told["prompt"], **config)
    same([name for name, _ in called(forced.function_calls)], [told["forced"]], "calls")
    config = {**declared, "tool_config": {"function_calling_config": {"mode": "NONE"}}}
    free = ask(f"{upstream}/plain", told["forbidden"], **config)
    assert free.text and not free.function_calls, free


def parallel(upstream):
    told = PROMPTS["parallel"]
    contents = [user(told["prompt"])]
    asked = ask(f"{upstream}/plain", contents, **tool(PROMPTS["weather"]))
    called_in_parallel(asked.function_calls)
    contents += [asked.candidates[0].content, results_of(asked.function_calls, told["results"])]
    answered = ask(f"{upstream}/plain", contents, **tool(PROMPTS["weather"]))
    for result in told["results"]:
        has(answered.text, result)


def parallel_stream(upstream):
    chunks = stream_of(f"{upstream}/plain", PROMPTS["parallel"]["prompt"], **tool(PROMPTS["weather"]))
    called_in_parallel([call for chunk in chunks for call in chunk.function_calls or []])


def called_in_parallel(calls):
    wanted = [("get_weather", arguments) for arguments in PROMPTS["parallel"]["arguments"]]
    same(called(calls), wanted, "calls")


def structured(upstream):
    prompt = PROMPTS["structured"]["prompt"]
    config = {"response_mime_type": "application/json"}
    for schema in ({"response_schema": Place}, {"response_json_schema": Place.model_json_schema()}):
        answer = ask(f"{upstream}/plain", prompt, **config, **schema)
        is_place(Place.model_validate(answer.parsed))


def image(upstream):
    told = PROMPTS["image"]
    data = base64.b64decode(told["png"])
    sees(f"{upstream}/plain", types.Part.from_bytes(data=data, mime_type=told["mime_type"]))


def image_url(upstream):
    mime_type = PROMPTS["image"]["mime_type"]
    sees(f"{upstream}/inline", types.Part.from_uri(file_uri=PICTURE_URL, mime_type=mime_type))


def sees(model, picture):
    told = PROMPTS["image"]
    has(ask(model, [picture, told["prompt"]]).text, told["answer"])


def limit(upstream):
    told = PROMPTS["limit"]
    limit = told["output_tokens_max"]
    answer = ask(f"{upstream}/plain", told["prompt"], max_output_tokens=limit)
    same(finish(answer), types.FinishReason.MAX_TOKENS, "finish reason")
    same(answer.usage_metadata.candidates_token_count, limit, "output tokens")


def usage(upstream):
    prompt = PROMPTS["usage"]["prompt"]
    whole = ask(f"{upstream}/plain", prompt).usage_metadata
    *_, last = stream_of(f"{upstream}/plain", prompt)
    is_usage(*(
        (one.prompt_token_count, one.candidates_token_count, one.total_token_count)
        for one in (whole, last.usage_metadata)
    ))


def thinking():
    return {"thinking_config": {"include_thoughts": True, "thinking_level": "HIGH"}}


def reasoning(upstream):
    told = PROMPTS["reasoning"]
    whole = ask(f"{upstream}/thinker", told["prompt"], **thinking())
    streamed = list(stream_of(f"{upstream}/thinker", told["prompt"], **thinking()))
    for answers in ([whole], streamed):
        parts = [part for one in answers for part in one.candidates[0].content.parts]
        has("".join(part.text for part in parts if part.thought), told["thought"])
        assert any(part.text and not part.thought for part in parts), parts
        is_reasoned(answers[-1].usage_metadata.thoughts_token_count)


def loop(upstream):
    runs_tool_loop(upstream, lambda *asked, **config: [ask(*asked, **config)])


def loop_stream(upstream):
    runs_tool_loop(upstream, stream_of)


def runs_tool_loop(upstream, answers):
    told = PROMPTS["loop"]
    made = []

    def run(name):
        made.append(name)
        return told["results"][name]

    def get_weather(city: str) -> str:
        """The weather of a city."""
        return run("get_weather")

    def get_time(city: str) -> str:
        """The time of day in a city."""
        return run("get_time")

    # The client runs the functions itself and sends their results without ids.
    config = {"tools": [get_weather, get_time], **thinking()}
    told_all = answers(f"{upstream}/thinker", told["prompt"], **config)
    text = "".join(answer.text or "" for answer in told_all)
    same(made, told["calls"], "calls")
    for result in told["results"].values():
        has(text, result)


def refused(call, code, status):
    error = raised(errors.ClientError, call)
    same((error.code, error.status), (code, status))


def bad_key(upstream):
    client = client_of(KEY_WRONG)
    refused(lambda: ask(f"{upstream}/plain", "hello", client), 401, "UNAUTHENTICATED")


def bad_request(upstream):
    # The client itself refuses a request without contents.
    empty = [types.Content(role="user", parts=[])]
    refused(lambda: ask(f"{upstream}/plain", empty), 400, "INVALID_ARGUMENT")


def unknown_model(upstream):
    refused(lambda: ask(f"{upstream}/none", "hello"), 404, "NOT_FOUND")


def rate_limit(upstream):
    client = client_of(KEY_SLOW, attempts=1)
    error = limited(errors.ClientError, lambda: ask(f"{upstream}/plain", "hello", client))
    same((error.code, error.status), (429, "RESOURCE_EXHAUSTED"))


def empty_wallet(upstream):
    # With the client's default retries, as applications use it.
    client = client_of(KEY_POOR)
    refused(lambda: ask(f"{upstream}/plain", "hello", client), 402, "RESOURCE_EXHAUSTED")


def busy(upstream):
    error = raised(errors.ServerError, lambda: ask(f"{upstream}/busy", "hello", client_without_retries))
    same((error.code, error.status), (503, "UNAVAILABLE"))


def broken_stream(upstream):
    chunks = stream_of(f"{upstream}/broken", PROMPTS["broken_stream"]["prompt"])
    raised(errors.ServerError, lambda: list(chunks))
