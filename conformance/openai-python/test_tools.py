import json

from conftest import ask

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


def test_a_tool_is_called_and_its_result_taken_back(client):
    messages = [{"role": "user", "content": 'What is the weather in "Oslo"?'}]
    options = {"model": "maker/chat", "messages": messages, "tools": [TOOL]}
    asked = client.chat.completions.create(**options).choices[0]
    assert asked.finish_reason == "tool_calls"
    (call,) = asked.message.tool_calls
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Oslo"}
    messages += [
        asked.message,
        {"role": "tool", "tool_call_id": call.id, "content": "12 degrees"},
    ]
    told = client.chat.completions.create(**options).choices[0]
    assert told.finish_reason == "stop"
    assert "12 degrees" in told.message.content


def test_tools_are_called_in_parallel(client):
    prompt = 'What is the weather in both "Oslo" and "Rome"?'
    message = client.chat.completions.create(**ask(prompt, tools=[TOOL])).choices[0].message
    cities = [json.loads(call.function.arguments)["city"] for call in message.tool_calls]
    assert cities == ["Oslo", "Rome"]
    assert len({call.id for call in message.tool_calls}) == 2
    one = client.chat.completions.create(**ask(prompt, tools=[TOOL], parallel_tool_calls=False))
    assert len(one.choices[0].message.tool_calls) == 1


def test_streamed_calls_are_put_together_by_the_helper(client):
    prompt = 'What is the weather in both "Oslo" and "Rome"?'
    with client.chat.completions.stream(**ask(prompt, tools=[TOOL])) as stream:
        final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls"
    calls = final.message.tool_calls
    assert [call.function.parsed_arguments["city"] for call in calls] == ["Oslo", "Rome"]
    assert all(call.id and call.type == "function" for call in calls)


def test_a_choice_of_tool_is_obeyed(client):
    choice = {"type": "function", "function": {"name": "get_weather"}}
    forced = client.chat.completions.create(**ask("hello", tools=[TOOL], tool_choice=choice))
    assert forced.choices[0].message.tool_calls[0].function.name == "get_weather"
    never = client.chat.completions.create(**ask("The weather?", tools=[TOOL], tool_choice="none"))
    assert never.choices[0].message.tool_calls is None
