"""What the gateway has written down of calls to real engines, against what the engines counted."""

import re
from typing import Optional

from engines import UPSTREAMS, EngineStage, killed_name
from grid import Outcome

ROWS_MAX = 10_000

ENDPOINTS = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/v1beta/models/{id}:generateContent": "generate",
    "/v1beta/interactions": "interactions",
}
# What callers say and the upstream's dialect has no word for; without numbers of items. Thoughts of a
# model that does not sign them go back to it in its own dialect alone.
DROPPED = {
    ("chat", "responses"): {"messages[].reasoning_content"},
    ("chat", "messages"): {"messages[].reasoning_content"},
    ("responses", "chat"): {"input[]", "reasoning.summary"},
    ("responses", "messages"): {"input[]"},
    ("messages", "chat"): {"messages[].content[]", "thinking.display"},
    ("messages", "responses"): {"messages[].content[]"},
    ("generate", "chat"): {
        "contents[].parts[]",
        "generationConfig.thinkingConfig.includeThoughts",
        "tools.response_json_schema",
    },
    ("generate", "responses"): {"contents[].parts[]", "tools.response_json_schema"},
    ("generate", "messages"): {"contents[].parts[]", "tools.response_json_schema"},
    ("interactions", "chat"): {"generation_config.thinking_summaries", "input[]"},
    ("interactions", "responses"): {"input[]"},
    ("interactions", "messages"): {"input[]"},
}


def checked(stage: EngineStage, dialects: list, languages: list) -> list[Outcome]:
    report = {row["model"]: row for row in stage.rows("ledger", "report", "--by", "model")}
    calls = stage.rows("logs", "--limit", str(ROWS_MAX))
    found = [outcome("all", "books", differences(stage))]
    for protocol in UPSTREAMS:
        for language in languages:
            channel = killed_name(protocol, language)
            broken = [call for call in calls if call["channel"] == channel]
            found.append(outcome(channel, "settlement", unsettled(broken, len(dialects))))
        found += [
            outcome(protocol, f"dropped of {dialect}", dropped(calls, dialect, protocol))
            for dialect in dialects
        ]
    texts = [f"{protocol}/{name}" for protocol in UPSTREAMS for name in ("plain", "thinker")]
    for engine, models in {"serving": texts, "vectors": ["embeddings/plain"]}.items():
        reason = unbilled(report, models, stage.counters(engine))
        if reason:
            # Calls that a busy machine or a slow client cut short are not in the engine's counters.
            cut = [call["request_id"] for call in calls if call["model"] in models and call["code"]]
            reason += f"; calls with an error: {cut}"
        found.append(outcome(engine, "bill", reason))
    return found


def outcome(upstream: str, cell: str, reason: Optional[str]) -> Outcome:
    return Outcome("books", "all", upstream, cell, reason)


def differences(stage: EngineStage) -> Optional[str]:
    """Why the books are not clean: a difference, or credits that a hold still keeps."""
    [proof] = stage.rows("ledger", "verify")
    [wallets] = stage.rows("wallet", "list")
    frozen = [wallet["name"] for wallet in wallets if wallet["frozen_micro"] != "0"]
    if proof["ok"] and proof["open_holds"] == 0 and not frozen:
        return None
    return f"{proof}, frozen in {frozen}"


def unsettled(calls: list[dict], wanted: int) -> Optional[str]:
    """Why the calls of an engine that was killed are not closed as they must be."""
    ends = {(call["outcome"], call["code"], call["stream"]) for call in calls}
    if len(calls) != wanted or ends != {("settled", "upstream_error", True)}:
        return f"{len(calls)} calls of {wanted}, ended {ends}"
    unpaid = [call["request_id"] for call in calls if call["charge_micro"] == "0" or not call["usage"]["output"]]
    return f"not charged: {unpaid}" if unpaid else None


def dropped(calls: list[dict], dialect: str, protocol: str) -> Optional[str]:
    """Why other members were dropped between a dialect and an upstream than those that must be."""
    lists = [
        call["dropped_params"] or ""
        for call in calls
        if ENDPOINTS.get(call["endpoint"]) == dialect and call["channel"] == protocol
    ]
    got = {re.sub(r"\[\d+\]", "[]", name) for names in lists for name in names.split(",") if name}
    wanted = DROPPED.get((dialect, protocol), set())
    return None if got == wanted else f"dropped {sorted(got)}, not {sorted(wanted)}"


def unbilled(report: dict, models: list[str], counted: dict) -> Optional[str]:
    """Why what was billed for models is not what their engine counted."""
    sums = {
        kind: sum(report[model][kind] for model in models if model in report)
        for kind in ("input", "cached_input", "output")
    }
    wanted = {
        "input": counted["prompt_tokens_total"],
        "cached_input": counted["prompt_tokens_cached_total"],
        "output": counted["tokens_predicted_total"],
    }
    if sums == wanted and sums["input"]:
        return None
    return f"billed {sums}, but the engine counted {wanted}"
