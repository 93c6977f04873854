"""Full logits of given token ids by mlx-lm, saved as safetensors. No tokenizer is needed.

    PEER/bin/python tests/golden/mlx_lm_logits.py MODEL_DIR --ids 1,5,9 --out FILE.safetensors [--adapter ADAPTER_DIR]
                                                  [--float32]

FILE holds `ids` (int32 [1, T]) and `logits` (float32 [1, T, V]). `--float32` computes in float32 whatever the
checkpoint's dtype is (quantised weights keep their codes; their scales and biases are widened).
One line of JSON goes to standard output: {"tokens": T, "vocab": V, "dtype": "..", "argmax": [id per position]}.
PEER is a virtual environment made from vendor/peer.txt. Nothing is fetched: both folders must exist.
"""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")

import mlx.core as mx
from mlx_lm.tuner.utils import load_adapters
from mlx_lm.utils import load_model


def main():
    parser = argparse.ArgumentParser(description="Logits of token ids by mlx-lm.")
    parser.add_argument("model")
    parser.add_argument("--ids", required=True, help="comma-separated token ids")
    parser.add_argument("--out", required=True, help="safetensors file to write")
    parser.add_argument("--adapter", help="folder with adapters.safetensors and adapter_config.json")
    parser.add_argument("--float32", action="store_true", help="widen the checkpoint to float32")
    args = parser.parse_args()
    for folder in (args.model, args.adapter):
        if folder is not None and not os.path.isdir(folder):
            sys.exit(f"{folder}: no such folder")
    mx.set_default_device(mx.cpu)
    model, _ = load_model(Path(args.model))
    if args.adapter:
        load_adapters(model, args.adapter)
    model.eval()
    if args.float32:
        model.set_dtype(mx.float32)
    ids = mx.array([[int(part) for part in args.ids.split(",")]], mx.int32)
    logits = model(ids)
    computed = str(logits.dtype).removeprefix("mlx.core.")
    logits = logits.astype(mx.float32)
    mx.save_safetensors(args.out, {"ids": ids, "logits": logits})
    print(
        json.dumps(
            {
                "tokens": ids.shape[1],
                "vocab": logits.shape[-1],
                "dtype": computed,
                "argmax": mx.argmax(logits, -1)[0].tolist(),
            }
        )
    )


if __name__ == "__main__":
    main()
