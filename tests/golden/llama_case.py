"""One llama golden: forward, SFT loss, LoRA gradients and AdamW curves by mlx-lm's own model code and tuner.

Used by make_goldens.py; not run on its own.
"""

import contextlib
import io
import tempfile
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten, tree_map
from mlx_lm.tuner.callbacks import TrainingCallback
from mlx_lm.tuner.trainer import TrainingArgs, default_loss, train
from mlx_lm.tuner.utils import linear_to_lora_layers

import tiny_llama

LORA_SEED = 7
START_SEED = 1007
DATA_SEED = 2007
STEPS = 10
OPTIMIZER = {"learning_rate": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}

# Two rows of unequal length in a batch as wide as the longer one, so the shorter one is padded with id 0.
LENGTHS = [14, 9]
PROMPT_LENGTHS = [4, 3]
WIDTH = 14
PROMPT_WIDTH = 9
CHUNKS = [4, 3, 2]


def tokens(seed, lengths, width, vocab):
    """Random rows without the ids 0, 1 and 2, padded to the right with 0."""
    ids = mx.random.randint(3, vocab, (len(lengths), width), key=mx.random.key(seed))
    real = mx.arange(width)[None] < mx.array(lengths)[:, None]
    return mx.where(real, ids, 0).astype(mx.int32)


def attach(model, lora, start=True):
    """mlx-lm's LoRA on the model with its own seeded draws; returns (initial, starting) adapters.

    With `start` the b matrices are then filled with seeded noise: with b = 0 every gradient of a is zero.
    """
    mx.random.seed(LORA_SEED)
    model.freeze()
    linear_to_lora_layers(model, lora["num_layers"], {**tiny_llama.LORA, "keys": _keys(lora)})
    initial = adapters(model)
    mx.eval(initial)
    if start:
        names = sorted(name for name in initial if name.endswith("lora_b"))
        for name, key in zip(names, mx.random.split(mx.random.key(START_SEED), len(names))):
            noise = 0.05 * mx.random.normal(initial[name].shape, key=key)
            model.load_weights([(name, noise)], strict=False)
    starting = adapters(model)
    mx.eval(starting)
    return initial, starting


def _keys(lora):
    return None if lora["keys"] is None else set(lora["keys"])


def adapters(model):
    return dict(tree_flatten(model.trainable_parameters()))


def set_adapters(model, values):
    model.load_weights(list(values.items()), strict=False)


def to_float64(model):
    model.update(tree_map(lambda value: value.astype(mx.float64), model.parameters()))


def right_mask(lengths):
    """The lengths to hand to mlx-lm's loss so that it stops before the first pad token.

    Its mask keeps the targets with index <= length, one too many: index `length` is the first pad. Index < length is
    the same as index <= length - 1.
    """
    return mx.array([[prompt, length - 1] for prompt, length in lengths])


class _Losses(TrainingCallback):
    def __init__(self):
        self.values = []

    def on_train_loss_report(self, info):
        self.values.append(info["train_loss"])


def train_curve(model, batch, loss, bias_correction):
    """Ten steps of mlx-lm's `train` on one batch; returns (losses, final adapters)."""
    settings = dict(OPTIMIZER, bias_correction=bias_correction)
    losses = _Losses()

    def forever(**_):
        while True:
            yield batch

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        args = TrainingArgs(
            batch_size=1,
            iters=STEPS,
            steps_per_report=1,
            steps_per_save=STEPS + 1,
            adapter_file=str(Path(folder) / "adapters.safetensors"),
        )
        train(
            model,
            optim.AdamW(**settings),
            train_dataset=[],
            args=args,
            loss=loss,
            iterate_batches=forever,
            training_callback=losses,
        )
    final = adapters(model)
    mx.eval(final)
    return mx.array(losses.values, mx.float32), final


def float64_curve(model, batch, loss, bias_correction):
    """The same ten steps in float64, in a loop of our own: mlx-lm's `train` saves its result, and no safetensors
    file holds float64."""
    optimizer = optim.AdamW(**OPTIMIZER, bias_correction=bias_correction)
    step = nn.value_and_grad(model, loss)
    losses = []
    for _ in range(STEPS):
        (value, _), grads = step(model, *batch)
        optimizer.update(model, grads)
        mx.eval(model.state, optimizer.state, value)
        losses.append(value.item())
    return mx.array(losses, mx.float64), adapters(model)


def gradients(model, loss, *batch):
    (value, count), grads = nn.value_and_grad(model, loss)(model, *batch)
    grads = dict(tree_flatten(grads))
    mx.eval(value, count, grads)
    return value, count, grads


def token_logprobs(logits, targets):
    """Log-probability of each target, [B, T]."""
    return -nn.losses.cross_entropy(logits, targets)


def cached_logits(model, prompt, chunks):
    """Logits of a prompt fed in chunks through mlx-lm's own key-value cache, [1, P, V]."""
    cache = model.make_cache()
    parts, at = [], 0
    for width in chunks:
        parts.append(model(prompt[:, at : at + width], cache=cache))
        at += width
    return mx.concatenate(parts, axis=1)


def prefixed(prefix, values):
    return {f"{prefix}.{name}": value for name, value in values.items()}


def tensors(folder, lora, double=False):
    """Every tensor of one case. With `double` the model runs in float64, to measure rounding."""
    load = tiny_llama.load_float64 if double else tiny_llama.load
    vocab = tiny_llama.BASE["vocab_size"]
    batch = tokens(DATA_SEED, LENGTHS, WIDTH, vocab)
    prompt = tokens(DATA_SEED + 1, [PROMPT_WIDTH], PROMPT_WIDTH, vocab)
    pairs = list(zip(PROMPT_LENGTHS, LENGTHS))
    whole = [(0, length) for length in LENGTHS]
    model = load(folder)
    logits = model(batch[:, :-1])
    out = {
        "batch": batch,
        "lengths": mx.array(LENGTHS, mx.int32),
        "prompt_lengths": mx.array(PROMPT_LENGTHS, mx.int32),
        "prompt": prompt,
        "logits": logits,
        "token_logprobs": token_logprobs(logits, batch[:, 1:]),
        "logits_prompt": model(prompt),
        "logits_cached": cached_logits(model, prompt, [1] * PROMPT_WIDTH),
        "logits_chunked": cached_logits(model, prompt, CHUNKS),
    }
    initial, starting = attach(model, lora)
    if double:
        to_float64(model)
    out.update(prefixed("lora_init", initial))
    out.update(prefixed("lora_start", starting))
    out["logits_lora"] = model(batch[:, :-1])
    out["loss"], out["count"], grads = gradients(model, default_loss, batch, right_mask(pairs))
    out.update(prefixed("grads", grads))
    out["loss_mlx_lm"], out["count_mlx_lm"] = default_loss(model, batch, mx.array(pairs))
    out["loss_whole"], out["count_whole"] = default_loss(model, batch, right_mask(whole))
    out["loss_whole_mlx_lm"], out["count_whole_mlx_lm"] = default_loss(model, batch, mx.array(whole))
    for name, corrected in (("plain", False), ("corrected", True)):
        set_adapters(model, starting)
        if double:
            to_float64(model)
        curve = float64_curve if double else train_curve
        losses, final = curve(model, (batch, right_mask(pairs)), default_loss, corrected)
        out[f"losses_{name}"] = losses
        out.update(prefixed(f"final_{name}", final))
    mx.eval(out)
    return out


def draws(folder, lora):
    """The modules in the order in which mlx-lm draws their a matrices from the global generator."""
    model = tiny_llama.load(folder)
    order = []
    keys = _keys(lora)
    first = len(model.layers) - lora["num_layers"] if lora["num_layers"] > 0 else 0
    for index, layer in enumerate(model.layers[first:], start=first):
        for path, module in layer.named_modules():
            wanted = path in keys if keys else isinstance(module, (nn.Linear, nn.QuantizedLinear))
            if wanted:
                order.append(f"model.layers.{index}.{path}")
    return order
