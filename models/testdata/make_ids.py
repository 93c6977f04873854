"""Checks and rewrites the ids in smollm2_ids.json with the Python tokenizers library.

    python make_ids.py SmolLM2-135M-Instruct.Q4_1.gguf

The pipeline is the one of the model's own tokenizer.json: single digits apart, then GPT-2's byte-level BPE.
"""

import json
import pathlib
import struct
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def metadata(path):
    data = open(path, "rb")

    def number(code):
        return struct.unpack("<" + code, data.read(struct.calcsize("<" + code)))[0]

    def text():
        return data.read(number("Q")).decode("utf-8")

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            kind = number("I")
            return [value(kind) for _ in range(number("Q"))]
        return number(NUMBERS[kind])

    data.seek(16)
    return {text(): value(number("I")) for _ in range(number("Q"))}


meta = metadata(sys.argv[1])
tokens = meta["tokenizer.ggml.tokens"]
merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
    [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
)
tokenizer.decoder = decoders.ByteLevel()
kinds = zip(tokens, meta["tokenizer.ggml.token_type"])
tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token, kind in kinds if kind == 3])

place = pathlib.Path(__file__).with_name("smollm2_ids.json")
rows = json.loads(place.read_text())
changed = 0
for row in rows:
    ids = tokenizer.encode(row["text"], add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == row["text"]
    changed += ids != row["ids"]
    row["ids"] = ids
place.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
print(len(rows), "texts,", changed, "changed")
