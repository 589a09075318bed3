"""Writes GGUF files, the model format of llama.cpp."""

import struct

ALIGNMENT = 32
VERSION = 3
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_FLOAT32 = 0


def file(metadata: dict, tensors: dict) -> bytes:
    """`tensors` maps a name to its dimensions, fastest-varying first, and its float32 bytes."""
    head = [b"GGUF", struct.pack("<IQQ", VERSION, len(tensors), len(metadata))]
    for name, value in metadata.items():
        kind, data = encoded(value)
        head += [string(name), struct.pack("<I", kind), data]
    body = []
    offset = 0
    for name, (dimensions, data) in tensors.items():
        shape = struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
        head += [string(name), shape, struct.pack("<IQ", TENSOR_FLOAT32, offset)]
        body.append(padded(data))
        offset += len(body[-1])
    return padded(b"".join(head)) + b"".join(body)


def encoded(value) -> tuple[int, bytes]:
    """The type and the bytes of a metadata value."""
    # A bool is also an int in Python, so it must be checked first.
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return UINT32, struct.pack("<I", value)
    if isinstance(value, float):
        return FLOAT32, struct.pack("<f", value)
    if isinstance(value, str):
        return STRING, string(value)
    # llama.cpp reads the only array of integers, the token types, as int32.
    items = [(INT32, struct.pack("<i", one)) if isinstance(one, int) else encoded(one) for one in value]
    return ARRAY, struct.pack("<IQ", items[0][0], len(items)) + b"".join(data for _, data in items)


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)
