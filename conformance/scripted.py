"""A language model that recites scripted answers, as a GGUF file.

The weights are the script. A token's embedding has one number that is not zero, attention and
feed-forward add nothing, and the output matrix is a table of which token follows which. So the next
token depends on the last one alone, and every token of every script is a different one.

The chat template ends a prompt in a token that starts one script. It chooses the script by the last
user message, by the number of assistant turns since, and by whether the prompt contains the texts
that the script needs: an answer proves that the engine was told what it was to be told.
"""

import json
import struct
from dataclasses import dataclass

import gguf

# What the model says when no script fits the prompt.
LOST = "The prompt lacks something."
CONTEXT_TOKENS = 32768
HEAD_WIDTH = 16
FEED_FORWARD_WIDTH = 32
PIECE_LENGTH_MIN = 3
# So far above all other logits that sampling at any temperature takes this token.
LOGIT = 10.0

# Token types of the format.
UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6
SPECIAL = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
BOS, EOS = 1, 2


@dataclass(frozen=True)
class Script:
    """What the model says to a prompt, in its assistant turn number `turn` since then."""

    prompt: str
    says: str
    turn: int = 0
    needs: tuple = ()
    endless: bool = False


@dataclass(frozen=True)
class Model:
    """The file, and how many tokens each script takes, its end included."""

    file: bytes
    tokens: dict


def model(scripts: list[Script]) -> Model:
    vocabulary = SPECIAL + [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    used = {text for text, _ in vocabulary}
    following = {}
    tokens = {}
    for number, script in enumerate([Script("", LOST), *scripts]):
        token = len(vocabulary)
        vocabulary.append((mark(number), CONTROL))
        said = pieces(script.says, used)
        for piece in said:
            following[token] = len(vocabulary)
            token = len(vocabulary)
            vocabulary.append((piece, USER_DEFINED))
        following[token] = token - len(said) + 1 if script.endless else EOS
        tokens[script] = len(said) + 1
    return Model(gguf.file(metadata(vocabulary, template(scripts)), weights(vocabulary, following)), tokens)


def mark(number: int) -> str:
    return f"<|script {number}|>"


def pieces(text: str, used: set) -> list[str]:
    """Cuts a text into pieces that are not used yet, each as short as can be, and marks them as used."""
    cut = []
    start = 0
    while start < len(text):
        ends = range(start + PIECE_LENGTH_MIN, len(text) + 1)
        end = next((end for end in ends if text[start:end] not in used), None)
        if end is None:
            # The rest is used or too short: it joins the piece before it.
            used.discard(cut[-1])
            start -= len(cut.pop())
            end = len(text)
            while text[start:end] in used:
                used.discard(cut[-1])
                start -= len(cut.pop())
        cut.append(text[start:end])
        used.add(cut[-1])
        start = end
    return cut


def template(scripts: list[Script]) -> str:
    """Jinja. The forms of calls and thoughts are those by which the engine then reads answers."""
    choices = "".join(
        "{%- elif ns.prompt == " + json.dumps(script.prompt) + f" and ns.turn == {script.turn}"
        + "".join(f" and {json.dumps(text)} in ns.said" for text in script.needs)
        + " %}" + mark(number)
        for number, script in enumerate(scripts, start=1)
    )
    return TEMPLATE.replace("CHOICES", choices).replace("LOST", mark(0))


TEMPLATE = """
{%- set ns = namespace(prompt="", turn=0, said="") -%}
{%- if tools %}
  {%- set ns.said = ns.said ~ "<|system|>\\nTools:\\n" %}
  {%- for tool in tools %}{% set ns.said = ns.said ~ (tool | tojson) ~ "\\n" %}{% endfor %}
{%- endif %}
{%- for message in messages %}
  {%- if message.role == "user" %}
    {%- set ns.prompt = message.content %}
    {%- set ns.turn = 0 %}
  {%- elif message.role == "assistant" %}
    {%- set ns.turn = ns.turn + 1 %}
  {%- endif %}
  {%- set ns.said = ns.said ~ "<|" ~ message.role ~ "|>\\n" %}
  {%- if message.reasoning_content %}
    {%- set ns.said = ns.said ~ "<think>\\n" ~ message.reasoning_content ~ "\\n</think>\\n" %}
  {%- endif %}
  {%- if message.content %}{% set ns.said = ns.said ~ message.content %}{% endif %}
  {%- for call in message.tool_calls or [] %}
    {%- set ns.said = ns.said ~ '\\n<tool_call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' %}
    {%- set ns.said = ns.said ~ (call.function.arguments | tojson) ~ "}\\n</tool_call>" %}
  {%- endfor %}
  {%- set ns.said = ns.said ~ "</s>\\n" %}
{%- endfor %}
{{- ns.said }}
{%- if add_generation_prompt %}
{{- "<|assistant|>\\n" }}
{%- if false %}CHOICES{% else %}LOST{% endif %}
{%- endif %}
""".strip()


def metadata(vocabulary: list, template: str) -> dict:
    width = width_of(vocabulary)
    texts, kinds = zip(*vocabulary)
    return {
        "general.architecture": "llama",
        "general.name": "scripted",
        "llama.vocab_size": len(vocabulary),
        "llama.context_length": CONTEXT_TOKENS,
        "llama.embedding_length": width,
        "llama.block_count": 1,
        "llama.feed_forward_length": FEED_FORWARD_WIDTH,
        "llama.attention.head_count": width // HEAD_WIDTH,
        "llama.attention.head_count_kv": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": HEAD_WIDTH,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.scores": [0.0] * len(vocabulary),
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": EOS,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.chat_template": template,
    }


def weights(vocabulary: list, following: dict) -> dict:
    width, count = width_of(vocabulary), len(vocabulary)
    norm = ((width,), struct.pack(f"<{width}f", *[1.0] * width))
    return {
        "token_embd.weight": matrix(width, count, {(token, token): 1.0 for token in range(count)}),
        "output.weight": matrix(width, count, {(after, token): LOGIT for token, after in following.items()}),
        "output_norm.weight": norm,
        "blk.0.attn_norm.weight": norm,
        "blk.0.attn_q.weight": matrix(width, width),
        "blk.0.attn_k.weight": matrix(width, HEAD_WIDTH),
        "blk.0.attn_v.weight": matrix(width, HEAD_WIDTH),
        "blk.0.attn_output.weight": matrix(width, width),
        "blk.0.ffn_norm.weight": norm,
        "blk.0.ffn_gate.weight": matrix(width, FEED_FORWARD_WIDTH),
        "blk.0.ffn_up.weight": matrix(width, FEED_FORWARD_WIDTH),
        "blk.0.ffn_down.weight": matrix(FEED_FORWARD_WIDTH, width),
    }


def width_of(vocabulary: list) -> int:
    """A number for each token, rounded up to whole heads."""
    return -(-len(vocabulary) // HEAD_WIDTH) * HEAD_WIDTH


def matrix(columns: int, rows: int, numbers: dict = {}) -> tuple:
    """Zeros but for the numbers at (row, column)."""
    data = bytearray(struct.calcsize("<f") * columns * rows)
    for (row, column), number in numbers.items():
        struct.pack_into("<f", data, struct.calcsize("<f") * (row * columns + column), number)
    return (columns, rows), bytes(data)
