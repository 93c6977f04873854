"""One ORPO golden: preference pairs through a tiny llama of mlx-lm, gradients by MLX's autograd, AdamW curves.

Used by make_goldens.py; not run on its own.
"""

import mlx.core as mx
import mlx.nn as nn
import numpy as np

import llama_case
import orpo_reference
import tiny_llama

LAMBDA = 0.1
DATA_SEED = 3007
LENGTHS = {"chosen": [14, 9], "rejected": [10, 12]}
PROMPT_LENGTHS = [4, 3]
WIDTH = 14


def pairs(vocab):
    """Chosen and rejected ids [2, 14], padded to the right with 0; a pair shares its prompt."""
    chosen = llama_case.tokens(DATA_SEED, LENGTHS["chosen"], WIDTH, vocab)
    rejected = llama_case.tokens(DATA_SEED + 1, LENGTHS["rejected"], WIDTH, vocab)
    in_prompt = mx.arange(WIDTH)[None] < mx.array(PROMPT_LENGTHS)[:, None]
    return chosen, mx.where(in_prompt, chosen, rejected)


def _log1mexp(x):
    # The means of these rows lie between -8 and -3, where log1p(-e^x) is exact to rounding.
    return mx.log1p(-mx.exp(x))


def orpo_parts(model, chosen, rejected, scope):
    """(nll, lw, lr, log_odds) of a batch of pairs."""
    steps = mx.arange(1, WIDTH)[None]
    prompts = mx.array(PROMPT_LENGTHS)[:, None]
    means = []
    for ids, lengths in ((chosen, LENGTHS["chosen"]), (rejected, LENGTHS["rejected"])):
        logp = llama_case.token_logprobs(model(ids[:, :-1]), ids[:, 1:])
        real = steps < mx.array(lengths)[:, None]
        response = mx.logical_and(real, steps >= prompts)
        means.append((logp * response).sum(1) / response.sum(1))
        if ids is chosen:
            nll = -(logp * real).sum() / real.sum()
    lw, lr = means
    if scope == "response":
        nll = -lw.mean()
    log_odds = (lw - lr) - (_log1mexp(lw) - _log1mexp(lr))
    return nll, lw, lr, log_odds


def orpo_loss(scope):
    """A loss in the form that mlx-lm's trainer takes: (loss, token count)."""

    def loss(model, chosen, rejected):
        nll, _, _, log_odds = orpo_parts(model, chosen, rejected, scope)
        value = nll - LAMBDA * nn.log_sigmoid(log_odds).mean()
        return value, mx.array(sum(LENGTHS["chosen"]) + sum(LENGTHS["rejected"]))

    return loss


def tensors(folder, lora, double=False):
    """Every tensor of one case. With `double` the model runs in float64, to measure rounding."""
    load = tiny_llama.load_float64 if double else tiny_llama.load
    model = load(folder)
    _, starting = llama_case.attach(model, lora)
    if double:
        llama_case.to_float64(model)
    batch = pairs(tiny_llama.BASE["vocab_size"])
    out = {
        "chosen": batch[0],
        "rejected": batch[1],
        "chosen_lengths": mx.array(LENGTHS["chosen"], mx.int32),
        "rejected_lengths": mx.array(LENGTHS["rejected"], mx.int32),
        "prompt_lengths": mx.array(PROMPT_LENGTHS, mx.int32),
    }
    out.update(llama_case.prefixed("lora_start", starting))
    for scope in orpo_reference.SCOPES:
        loss = orpo_loss(scope)
        llama_case.set_adapters(model, starting)
        if double:
            llama_case.to_float64(model)
        nll, lw, lr, log_odds = orpo_parts(model, *batch, scope)
        value, _, grads = llama_case.gradients(model, loss, *batch)
        out[f"{scope}_nll"], out[f"{scope}_loss"] = nll, value
        out["lw"], out["lr"], out["log_odds"] = lw, lr, log_odds
        out.update(llama_case.prefixed(f"{scope}_grads", grads))
        curve = llama_case.float64_curve if double else llama_case.train_curve
        losses, final = curve(model, batch, loss, bias_correction=True)
        out[f"{scope}_losses"] = losses
        out.update(llama_case.prefixed(f"{scope}_final", final))
    mx.eval(out)
    return out


def check_against_reference(folder, lora, made):
    """Raises if MLX's losses and the numpy float64 formula on the same model's logits disagree."""
    model = tiny_llama.load(folder)
    llama_case.attach(model, lora)
    branches = []
    for name in ("chosen", "rejected"):
        ids = made[name]
        branches.append(
            {
                "logits": np.array(model(ids[:, :-1])),
                "targets": np.array(ids[:, 1:]),
                "prompt_lengths": PROMPT_LENGTHS,
                "lengths": LENGTHS[name],
            }
        )
    for scope in orpo_reference.SCOPES:
        parts, _ = orpo_reference.orpo(*branches, LAMBDA, scope)
        got = made[f"{scope}_loss"].item()
        if abs(got - parts["loss"]) > 2e-6 * abs(parts["loss"]):
            raise SystemExit(f"orpo {scope}: MLX gives {got}, the float64 formula {parts['loss']}")
