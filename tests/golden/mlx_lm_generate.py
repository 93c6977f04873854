"""Loads a model folder, with or without an adapter folder, through mlx_lm.load, and prints what it says as JSON.

    PEER/bin/python tests/golden/mlx_lm_generate.py MODEL_DIR [--adapter ADAPTER_DIR] [--prompt TEXT] [--chat]
                                                    [--max-tokens 16]

One line on standard output:

    {"prompt_ids": [..], "logits": [first 32 of the prompt's last position], "argmax": id, "tokens": [greedy ids],
     "text": "..", "adapter_tensors": N}

`adapter_tensors` counts the LoRA tensors in the loaded model (0 without an adapter). The logits are float32.
PEER is a virtual environment made from vendor/peer.txt. Nothing is fetched: both folders must exist.
"""

import argparse
import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")

import mlx.core as mx
import mlx_lm
from mlx.utils import tree_flatten

SHOWN = 32


def prompt_ids(tokenizer, text, chat):
    if chat:
        messages = [{"role": "user", "content": text}]
        return list(tokenizer.apply_chat_template(messages, add_generation_prompt=True))
    return list(tokenizer.encode(text))


def greedy(model, ids, count, stop):
    """`count` greedy ids after the prompt through mlx-lm's cache, and the logits of the prompt's last position."""
    cache = mlx_lm.models.cache.make_prompt_cache(model)
    first = logits = model(mx.array([ids]), cache=cache)[0, -1].astype(mx.float32)
    out = []
    for _ in range(count):
        out.append(mx.argmax(logits).item())
        if out[-1] in stop:
            break
        logits = model(mx.array([[out[-1]]]), cache=cache)[0, -1]
    return first, out


def main():
    parser = argparse.ArgumentParser(description="What mlx-lm says with our model and adapter.")
    parser.add_argument("model")
    parser.add_argument("--adapter", help="folder with adapters.safetensors and adapter_config.json")
    parser.add_argument("--prompt", default="The capital of France is")
    parser.add_argument("--chat", action="store_true", help="render the prompt with the model's chat template")
    parser.add_argument("--max-tokens", type=int, default=16)
    args = parser.parse_args()
    for folder in (args.model, args.adapter):
        if folder is not None and not os.path.isdir(folder):
            sys.exit(f"{folder}: no such folder")
    mx.set_default_device(mx.cpu)
    model, tokenizer = mlx_lm.load(args.model, adapter_path=args.adapter)
    ids = prompt_ids(tokenizer, args.prompt, args.chat)
    logits, out = greedy(model, ids, args.max_tokens, tokenizer.eos_token_ids)
    names = [name for name, _ in tree_flatten(model.parameters())]
    print(
        json.dumps(
            {
                "prompt_ids": ids,
                "logits": logits[:SHOWN].tolist(),
                "argmax": mx.argmax(logits).item(),
                "tokens": out,
                "text": tokenizer.decode(out),
                "adapter_tensors": sum(name.endswith((".lora_a", ".lora_b")) for name in names),
            }
        )
    )


if __name__ == "__main__":
    main()
