"""What the scripted model says to the prompts of `talk.json`."""

import json

from scripted import Script

# Said to a prompt without end: the caller's limit ends it, or the death of the engine.
ENDLESS = "And so on, and on. "


def scripts(talk: dict) -> list[Script]:
    return [*texts(talk), *calls(talk), *rounds(talk)]


def texts(talk: dict) -> list[Script]:
    plain, history, reasoning = talk["plain"], talk["history"], talk["reasoning"]
    greeting = "Hello, Ada."
    return [
        Script(plain["prompt"], plain["answer"], needs=(plain["system"],)),
        Script(talk["stream"]["prompt"], ", ".join(str(number) for number in range(1, 31))),
        Script(history["first"], greeting),
        Script(history["second"], history["answer"], needs=(history["first"], greeting)),
        Script(talk["structured"]["prompt"], place(talk["structured"]["city"])),
        Script(talk["usage"]["prompt"], "These are words, but nobody has counted them."),
        Script(talk["limit"]["prompt"], ENDLESS, endless=True),
        Script(talk["broken_stream"]["prompt"], ENDLESS, endless=True),
        Script(reasoning["prompt"], thought(reasoning["thought"] + " about light.") + "It scatters."),
        Script(talk["tool_choice"]["forbidden"], "Nobody knows."),
    ]


def calls(talk: dict) -> list[Script]:
    one, two, choice = talk["tools"], talk["parallel"], talk["tool_choice"]
    weather = talk["weather"]
    declared = (weather["name"], weather["description"])
    both = "\n".join(call(weather["name"], arguments) for arguments in two["arguments"])
    return [
        Script(one["prompt"], call(weather["name"], one["arguments"]), needs=declared),
        Script(one["prompt"], f"It has {one['result']}.", turn=1, needs=(one["result"],)),
        Script(two["prompt"], both, needs=declared),
        Script(two["prompt"], " and ".join(two["results"]), turn=1, needs=tuple(two["results"])),
        Script(choice["prompt"], call(choice["forced"], one["arguments"]), needs=(choice["forced"],)),
    ]


def rounds(talk: dict) -> list[Script]:
    """A call, its result, the next call, its result, and then the answer; a thought before each."""
    loop = talk["loop"]
    results = []
    made = []
    for turn, name in enumerate(loop["calls"]):
        says = thought(f"Now {name}.") + call(name, talk["tools"]["arguments"])
        made.append(Script(loop["prompt"], says, turn, tuple(results)))
        results.append(loop["results"][name])
    says = thought("That is all.") + ", ".join(results)
    return [*made, Script(loop["prompt"], says, len(made), tuple(results))]


def call(name: str, arguments: dict) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def thought(text: str) -> str:
    return f"<think>\n{text}\n</think>\n"


def place(city: str) -> str:
    """The `Place` that callers ask for, its members in the order of the schema."""
    river = {"name": "Akerselva", "length_km": 8.2}
    kind = {"city": city, "people": 700000, "kind": "town", "streets": ["Karl Johans gate"]}
    return json.dumps({**kind, "river": river, "mayor": None})
