"""Token ids of texts, and of a chat turn with each, by the tokenizer that mlx-lm loads from a folder.

    PEER/bin/python tests/golden/mlx_lm_tokens.py MODEL_DIR TEXTS.json

TEXTS.json is a list of strings. One line of JSON goes to standard output:
{"ids": [[..] per text], "chat": [[..] per text, as a user's turn with the answer opened], "eos": [ids that end a text]}.
`chat` is null when the tokenizer has no template. PEER is a virtual environment made from vendor/peer.txt.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")

from mlx_lm.utils import load_tokenizer


def chat_ids(tokenizer, text):
    return list(tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tokenizer = load_tokenizer(Path(sys.argv[1]))
    texts = json.loads(Path(sys.argv[2]).read_text())
    chat = [chat_ids(tokenizer, text) for text in texts] if tokenizer.chat_template else None
    ids = [list(tokenizer.encode(text)) for text in texts]
    print(json.dumps({"ids": ids, "chat": chat, "eos": sorted(tokenizer.eos_token_ids)}))


if __name__ == "__main__":
    main()
