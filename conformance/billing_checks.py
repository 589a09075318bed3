"""Compares what the gateway has recorded of calls to real engines with what the engines counted."""

import re
from typing import Optional

from engines import UPSTREAMS, EngineStage, killed_channel
from grid import Outcome

ROWS_MAX = 10_000

ENDPOINTS = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/v1beta/models/{id}:generateContent": "generate",
    "/v1beta/interactions": "interactions",
}
# The members that the cells send and a converted route drops, without the indexes of items. Thoughts
# of this engine have no signature, so they are sent back to it on native routes only.
DROPPED = {
    ("chat", "responses"): {"messages[].reasoning_content"},
    ("chat", "messages"): {"messages[].reasoning_content"},
    ("responses", "chat"): {"input[]", "reasoning.summary"},
    ("responses", "messages"): {"input[]"},
    ("messages", "chat"): {"messages[].content[]"},
    ("messages", "responses"): {"messages[].content[]"},
    ("generate", "chat"): {
        "contents[].parts[]",
        "generationConfig.thinkingConfig.includeThoughts",
        "tools[].functionDeclarations[].responseJsonSchema",
    },
    ("generate", "responses"): {
        "contents[].parts[]",
        "tools[].functionDeclarations[].responseJsonSchema",
    },
    ("generate", "messages"): {
        "contents[].parts[]",
        "tools[].functionDeclarations[].responseJsonSchema",
    },
    ("interactions", "chat"): {"generation_config.thinking_summaries", "input[]"},
    ("interactions", "responses"): {"input[]"},
    ("interactions", "messages"): {"input[]"},
}


def check(stage: EngineStage, dialects: list, languages: list) -> list[Outcome]:
    """Reads the ledger and the journal. The gateway must have stopped, so that both are complete."""
    calls = stage.rows("logs", "--limit", str(ROWS_MAX))
    outcomes = [outcome("all", "ledger", ledger_error(stage))]
    for upstream in UPSTREAMS:
        for language in languages:
            channel = killed_channel(upstream, language)
            broken = [call for call in calls if call["channel"] == channel]
            outcomes.append(outcome(channel, "settlement", settlement_error(broken, len(dialects))))
        for dialect in dialects:
            reason = dropped_error(calls, dialect, upstream)
            outcomes.append(outcome(upstream, f"dropped members of {dialect}", reason))
    return outcomes + bills(stage, calls)


def outcome(upstream: str, cell: str, reason: Optional[str]) -> Outcome:
    return Outcome("books", "all", upstream, cell, reason)


def ledger_error(stage: EngineStage) -> Optional[str]:
    """Differences in the ledger, holds that are still open, or credits that are still frozen."""
    [proof] = stage.rows("ledger", "verify")
    [wallets] = stage.rows("wallet", "list")
    frozen = [wallet["name"] for wallet in wallets if wallet["frozen_micro"] != "0"]
    if proof["ok"] and proof["open_holds"] == 0 and not frozen:
        return None
    return f"{proof}, frozen in {frozen}"


def settlement_error(calls: list[dict], expected: int) -> Optional[str]:
    """Each call to a killed engine must be settled once, as an upstream error, for what it delivered."""
    ends = {(call["outcome"], call["code"], call["stream"]) for call in calls}
    if len(calls) != expected or ends != {("settled", "upstream_error", True)}:
        return f"{len(calls)} of {expected} calls ended as {ends}"
    free = [call["request_id"] for call in calls if call["charge_micro"] == "0" or not call["usage"]["output"]]
    return f"not charged: {free}" if free else None


def dropped_error(calls: list[dict], dialect: str, upstream: str) -> Optional[str]:
    lists = [
        call["dropped_params"] or ""
        for call in calls
        if ENDPOINTS.get(call["endpoint"]) == dialect and call["channel"] == upstream
    ]
    dropped = {re.sub(r"\[\d+\]", "[]", name) for names in lists for name in names.split(",") if name}
    expected = DROPPED.get((dialect, upstream), set())
    return None if dropped == expected else f"dropped {sorted(dropped)}, not {sorted(expected)}"


def bills(stage: EngineStage, calls: list[dict]) -> list[Outcome]:
    report = {row["model"]: row for row in stage.rows("ledger", "report", "--by", "model")}
    texts = [f"{upstream}/{name}" for upstream in UPSTREAMS for name in ("plain", "thinker")]
    outcomes = []
    for engine, models in {"serving": texts, "vectors": ["embeddings/plain"]}.items():
        reason = bill_error(report, models, stage.counters(engine))
        if reason:
            # The engine does not count a call whose client left, for example after a timeout.
            failed = [call["request_id"] for call in calls if call["model"] in models and call["code"]]
            reason += f"; failed calls: {failed}"
        outcomes.append(outcome(engine, "bill", reason))
    return outcomes


def bill_error(report: dict, models: list[str], counters: dict) -> Optional[str]:
    """Compares the tokens that were billed for models with those that their engine counted."""
    billed = {
        kind: sum(report[model][kind] for model in models if model in report)
        for kind in ("input", "cached_input", "output")
    }
    counted = {
        "input": counters["prompt_tokens_total"],
        "cached_input": counters["prompt_tokens_cached_total"],
        "output": counters["tokens_predicted_total"],
    }
    return None if billed == counted and billed["input"] else f"billed {billed}, but the engine counted {counted}"
