"""Speed of mlx-lm's own LoRA training step on the shape of SmolLM2-135M; one line of JSON.

    PEER/bin/python tests/bench/peer_step.py --dtype f32|bf16|4bit [--tokens N] [--steps K] [--seed S] [--model DIR]

The step is the compiled one inside mlx_lm.tuner.trainer.train, untouched, with its loss and AdamW; LoRA of rank 8 on the
seven projections of the last 16 layers. PEER is a virtual environment made from vendor/peer.txt.

Printed:

    {"case": "f32", "tokens": N, "steps": K, "step_seconds": [..], "step_cpu_seconds": [..], "tokens_per_second": x,
     "peak_memory_bytes": n, "peak_rss_bytes": n, "loss": [..], "trainable_parameters": n, "versions": {..}}

`step_seconds` has every step; the first also traces and, on the CPU, runs g++ for the fused kernels, so
`tokens_per_second` is N over the fastest of the others (of the only one, with --steps 1). `peak_memory_bytes` is MLX's
allocator, `peak_rss_bytes` the process. MLX's CPU backend computes on one thread, so `step_cpu_seconds` (this process
alone) well below `step_seconds` means that other work had the machine and the figure is too low. `loss` is before each update.

The same work elsewhere: without --model the weights are random (their values do not change the speed); with it, the
checkpoint in DIR is trained, cast to the dtype, and quantised if it is not yet. The row is
`random.randint(0, vocab, [1, N + 1], key(S))`, all N targets count, and the adapters are mlx-lm's draws after
`random.seed(S)`. Tokens default to 512, in 4bit to 32: the stock 4-bit product runs at about 0.75 tokens a second on
the CPU.
"""

import argparse
import contextlib
import importlib.metadata
import io
import json
import resource
import tempfile
import time
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten
from mlx_lm.models import llama
from mlx_lm.tuner.callbacks import TrainingCallback
from mlx_lm.tuner.trainer import TrainingArgs, train
from mlx_lm.tuner.utils import linear_to_lora_layers
from mlx_lm.utils import load_model

SMOLLM2_135M = {
    "model_type": "llama",
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
LORA = {"rank": 8, "scale": 20.0, "dropout": 0.0}
LORA_LAYERS = 16
LEARNING_RATE = 1e-4
DTYPES = {"f32": mx.float32, "bf16": mx.bfloat16, "4bit": mx.bfloat16}


class Recorder(TrainingCallback):
    """Seconds and loss of every step, as mlx-lm's trainer reports them."""

    def __init__(self):
        self.seconds, self.cpu_seconds, self.losses = [], [], []
        self._cpu = time.process_time()

    def on_train_loss_report(self, info):
        self.seconds.append(1.0 / info["iterations_per_second"])
        self.losses.append(info["train_loss"])
        now = time.process_time()
        self.cpu_seconds.append(now - self._cpu)
        self._cpu = now


def build(args):
    """The model, cast and quantised, with LoRA attached; evaluated."""
    if args.model:
        model, _ = load_model(Path(args.model))
    else:
        mx.random.seed(args.seed)
        model = llama.Model(llama.ModelArgs.from_dict(SMOLLM2_135M))
    quantised = any(isinstance(m, (nn.QuantizedLinear, nn.QuantizedEmbedding)) for _, m in model.named_modules())
    if quantised and args.dtype != "4bit":
        raise SystemExit(f"{args.model} is quantised; it can only be trained with --dtype 4bit")
    model.set_dtype(DTYPES[args.dtype])
    if args.dtype == "4bit" and not quantised:
        nn.quantize(model, args.group_size, 4)
    mx.random.seed(args.seed)
    model.freeze()
    layers = min(LORA_LAYERS, len(model.layers))
    linear_to_lora_layers(model, layers, {**LORA, "keys": None})
    mx.eval(model.parameters())
    return model


def measure(model, args):
    """Runs the steps; returns the recorder."""
    vocab = model.args.vocab_size
    row = mx.random.randint(0, vocab, (1, args.tokens + 1), key=mx.random.key(args.seed)).astype(mx.int32)
    lengths = mx.array([[0, args.tokens + 1]])
    mx.eval(row, lengths)

    def forever(**_):
        while True:
            yield row, lengths

    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        train(
            model,
            optim.AdamW(learning_rate=LEARNING_RATE),
            train_dataset=[],
            args=TrainingArgs(
                batch_size=1,
                iters=args.steps,
                steps_per_report=1,
                steps_per_save=args.steps + 1,
                adapter_file=str(Path(folder) / "adapters.safetensors"),
            ),
            iterate_batches=forever,
            training_callback=recorder,
        )
    return recorder


def main():
    parser = argparse.ArgumentParser(description="Time mlx-lm's LoRA training step.")
    parser.add_argument("--dtype", choices=sorted(DTYPES), required=True)
    parser.add_argument("--tokens", type=int, help="targets in the row (default 512; 32 for 4bit)")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--group-size", type=int, default=32, help="of the 4-bit quantisation (default 32)")
    parser.add_argument("--model", help="checkpoint folder; without it, random weights of the SmolLM2-135M shape")
    args = parser.parse_args()
    if args.tokens is None:
        args.tokens = 32 if args.dtype == "4bit" else 512
    if args.tokens < 1 or args.steps < 1:
        parser.error("--tokens and --steps must be at least 1")
    mx.set_default_device(mx.cpu)
    model = build(args)
    mx.reset_peak_memory()
    recorder = measure(model, args)
    steady = recorder.seconds[1:] or recorder.seconds
    trained = sum(value.size for _, value in tree_flatten(model.trainable_parameters()))
    print(
        json.dumps(
            {
                "case": args.dtype,
                "tokens": args.tokens,
                "steps": args.steps,
                "step_seconds": [round(value, 4) for value in recorder.seconds],
                "step_cpu_seconds": [round(value, 4) for value in recorder.cpu_seconds],
                "tokens_per_second": round(args.tokens / min(steady), 3),
                "peak_memory_bytes": mx.get_peak_memory(),
                "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "loss": recorder.losses,
                "trainable_parameters": trained,
                "versions": {name: importlib.metadata.version(name) for name in ("mlx", "mlx-lm")},
            }
        )
    )


if __name__ == "__main__":
    main()
