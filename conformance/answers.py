"""The scripted model's answers to the prompts of `prompts.json`."""

import json

from scripted import Script

# The model repeats this until the request's output limit is reached or the engine is killed.
ENDLESS = "And so on, and on. "


def scripts(prompts: dict) -> list[Script]:
    return [*texts(prompts), *calls(prompts), *tool_loop(prompts)]


def texts(prompts: dict) -> list[Script]:
    plain, history, reasoning = prompts["plain"], prompts["history"], prompts["reasoning"]
    greeting = "Hello, Ada."
    return [
        Script(plain["prompt"], plain["answer"], needs=(plain["system"],)),
        Script(prompts["stream"]["prompt"], ", ".join(str(number) for number in range(1, 31))),
        Script(history["first"], greeting),
        Script(history["second"], history["answer"], needs=(history["first"], greeting)),
        Script(prompts["structured"]["prompt"], format_place(prompts["structured"]["city"])),
        Script(prompts["usage"]["prompt"], "These are words, but nobody has counted them."),
        Script(prompts["limit"]["prompt"], ENDLESS, endless=True),
        Script(prompts["broken_stream"]["prompt"], ENDLESS, endless=True),
        Script(reasoning["prompt"], format_thought(reasoning["thought"] + " about light.") + "It scatters."),
        Script(prompts["tool_choice"]["forbidden"], "Nobody knows."),
    ]


def calls(prompts: dict) -> list[Script]:
    one, two, choice = prompts["tools"], prompts["parallel"], prompts["tool_choice"]
    weather = prompts["weather"]
    declared = (weather["name"], weather["description"])
    both = "\n".join(format_call(weather["name"], arguments) for arguments in two["arguments"])
    return [
        Script(one["prompt"], format_call(weather["name"], one["arguments"]), needs=declared),
        Script(one["prompt"], f"It has {one['result']}.", turn=1, needs=(one["result"],)),
        Script(two["prompt"], both, needs=declared),
        Script(two["prompt"], " and ".join(two["results"]), turn=1, needs=tuple(two["results"])),
        Script(choice["prompt"], format_call(choice["forced"], one["arguments"]), needs=(choice["forced"],)),
    ]


def tool_loop(prompts: dict) -> list[Script]:
    """Calls one tool after the other, then answers with the results. Each step begins with a thought."""
    loop = prompts["loop"]
    results = []
    made = []
    for turn, name in enumerate(loop["calls"]):
        says = format_thought(f"Now {name}.") + format_call(name, prompts["tools"]["arguments"])
        made.append(Script(loop["prompt"], says, turn, tuple(results)))
        results.append(loop["results"][name])
    says = format_thought("That is all.") + ", ".join(results)
    return [*made, Script(loop["prompt"], says, len(made), tuple(results))]


def format_call(name: str, arguments: dict) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def format_thought(text: str) -> str:
    return f"<think>\n{text}\n</think>\n"


def format_place(city: str) -> str:
    """The `Place` object that clients request, with its members in the order of the schema."""
    river = {"name": "Akerselva", "length_km": 8.2}
    kind = {"city": city, "people": 700000, "kind": "town", "streets": ["Karl Johans gate"]}
    return json.dumps({**kind, "river": river, "mayor": None})
