"""Creates a language model that gives scripted answers, as a GGUF file.

The weights hold the scripts. The embedding of a token is a one-hot vector, attention and feed-forward
layers are zero, and the output matrix is a table of successors. So the next token depends on the last
one only, and no two places in the scripts share a token.

The chat template ends each prompt with the start token of one script. It chooses the script by the
last user message, by the number of assistant turns since, and by whether the prompt contains the texts
that the script needs. So an answer proves that those texts have reached the engine.
"""

import json
import struct
from dataclasses import dataclass

import gguf

# The answer when no script fits the prompt.
NO_SCRIPT = "The prompt lacks something."
CONTEXT_TOKENS = 65536
HEAD_WIDTH = 16
WIDTH_STEP = 32
FEED_FORWARD_WIDTH = 32
PIECE_LENGTH_MIN = 3
# The weight of a successor. All other logits are so much lower that sampling chooses it at any temperature.
SUCCESSOR_WEIGHT = 10.0

# Token types of the format.
UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6
SPECIAL = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
BOS, EOS = 1, 2


@dataclass(frozen=True)
class Script:
    """The answer to a user message after `turn` assistant turns, if the prompt contains all of `needs`."""

    prompt: str
    says: str
    turn: int = 0
    needs: tuple = ()
    endless: bool = False


@dataclass(frozen=True)
class Model:
    """The GGUF file, and the number of tokens of each script including its end token."""

    file: bytes
    tokens: dict


def model(scripts: list[Script]) -> Model:
    vocabulary = SPECIAL + [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    used = {text for text, _ in vocabulary}
    successors = {}
    tokens = {}
    for number, script in enumerate([Script("", NO_SCRIPT), *scripts]):
        token = len(vocabulary)
        vocabulary.append((start_token(number), CONTROL))
        answer_pieces = pieces(script.says, used)
        for piece in answer_pieces:
            successors[token] = len(vocabulary)
            token = len(vocabulary)
            vocabulary.append((piece, USER_DEFINED))
        successors[token] = token - len(answer_pieces) + 1 if script.endless else EOS
        tokens[script] = len(answer_pieces) + 1
    return Model(gguf.file(metadata(vocabulary, template(scripts)), weights(vocabulary, successors)), tokens)


def start_token(number: int) -> str:
    return f"<|script {number}|>"


def pieces(text: str, used: set) -> list[str]:
    """Cuts a text into the shortest pieces that are not used yet, and adds them to `used`."""
    cut = []
    start = 0
    while start < len(text):
        ends = range(start + PIECE_LENGTH_MIN, len(text) + 1)
        end = next((end for end in ends if text[start:end] not in used), None)
        if end is None:
            # The rest is already used or too short, so it is joined to the pieces before it.
            end = len(text)
            while text[start:end] in used or end - start < PIECE_LENGTH_MIN:
                used.discard(cut[-1])
                start -= len(cut.pop())
        cut.append(text[start:end])
        used.add(cut[-1])
        start = end
    return cut


def template(scripts: list[Script]) -> str:
    """A Jinja template. The engine learns from it how answers spell calls and thoughts."""
    choices = "".join(
        "{%- elif ns.prompt == " + json.dumps(script.prompt) + f" and ns.turn == {script.turn}"
        + "".join(f" and {json.dumps(text)} in ns.said" for text in script.needs)
        + " %}" + start_token(number)
        for number, script in enumerate(scripts, start=1)
    )
    return TEMPLATE.replace("CHOICES", choices).replace("NO_SCRIPT", start_token(0))


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
{%- if false %}CHOICES{% else %}NO_SCRIPT{% endif %}
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
        "llama.attention.head_count": 1,
        "llama.attention.key_length": HEAD_WIDTH,
        "llama.attention.value_length": HEAD_WIDTH,
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


def weights(vocabulary: list, successors: dict) -> dict:
    width, count = width_of(vocabulary), len(vocabulary)
    norm = ((width,), struct.pack(f"<{width}f", *[1.0] * width))
    return {
        "token_embd.weight": matrix(width, count, {(token, token): 1.0 for token in range(count)}),
        "output.weight": matrix(width, count, {(after, token): SUCCESSOR_WEIGHT for token, after in successors.items()}),
        "output_norm.weight": norm,
        "blk.0.attn_norm.weight": norm,
        "blk.0.attn_q.weight": matrix(width, HEAD_WIDTH),
        "blk.0.attn_k.weight": matrix(width, HEAD_WIDTH),
        "blk.0.attn_v.weight": matrix(width, HEAD_WIDTH),
        "blk.0.attn_output.weight": matrix(HEAD_WIDTH, width),
        "blk.0.ffn_norm.weight": norm,
        "blk.0.ffn_gate.weight": matrix(width, FEED_FORWARD_WIDTH),
        "blk.0.ffn_up.weight": matrix(width, FEED_FORWARD_WIDTH),
        "blk.0.ffn_down.weight": matrix(FEED_FORWARD_WIDTH, width),
    }


def width_of(vocabulary: list) -> int:
    """One dimension for each token, rounded up to a multiple that the engine's kernels need."""
    return -(-len(vocabulary) // WIDTH_STEP) * WIDTH_STEP


def matrix(columns: int, rows: int, numbers: dict = {}) -> tuple:
    """A matrix of zeros, except for the given numbers at (row, column)."""
    data = bytearray(struct.calcsize("<f") * columns * rows)
    for (row, column), number in numbers.items():
        struct.pack_into("<f", data, struct.calcsize("<f") * (row * columns + column), number)
    return (columns, rows), bytes(data)
