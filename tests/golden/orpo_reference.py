"""ORPO in numpy float64, written from the published formula (Hong et al. 2024) as TRL applies it.

    lw, lr    mean log-probability of the response tokens of the chosen and of the rejected row
    log_odds  (lw - lr) - (log1mexp(lw) - log1mexp(lr)),  log1mexp(x) = ln(1 - e^x)
    odds loss mean over the pairs of -ln(sigmoid(log_odds))
    loss      nll + lam * odds loss
    nll       scope "response": mean over the pairs of -lw
              scope "full": mean over every real target of the chosen rows, prompt included, all rows in one pool

Used by make_goldens.py; not run on its own.
"""

import numpy as np

LN2 = float(np.log(2.0))
# 1 - e^x is never taken below this, so that a row whose mean log-probability reaches 0 gives a finite loss.
FLOOR = 1e-7
SCOPES = ("response", "full")


def log1mexp(x):
    """ln(1 - e^x) for x <= 0, accurate at both ends: expm1 near 0, log1p far from it. No floor."""
    x = np.asarray(x, np.float64)
    with np.errstate(divide="ignore"):
        return np.where(x > -LN2, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log1mexp_floored(x):
    return np.maximum(log1mexp(x), np.log(FLOOR))


def log_odds(lw, lr):
    return (lw - lr) - (log1mexp_floored(lw) - log1mexp_floored(lr))


def softplus(x):
    return np.logaddexp(0.0, x)


def logprobs(logits, targets):
    """Log-probability of each target, [B, T] out of [B, T, V]."""
    logits = np.asarray(logits, np.float64)
    peak = logits.max(-1, keepdims=True)
    lse = np.log(np.exp(logits - peak).sum(-1)) + peak[..., 0]
    return np.take_along_axis(logits, targets[..., None], -1)[..., 0] - lse


def response_mask(width, prompt_lengths, lengths):
    """Target t (token t + 1) counts when prompt_length <= t + 1 < length; [B, T]."""
    step = np.arange(1, width + 1)[None]
    return (step >= np.asarray(prompt_lengths)[:, None]) & (step < np.asarray(lengths)[:, None])


def whole_mask(width, lengths):
    """Every real target: t + 1 < length; [B, T]."""
    step = np.arange(1, width + 1)[None]
    return step < np.asarray(lengths)[:, None]


def orpo(chosen, rejected, lam, scope):
    """The loss and its parts. A branch is a dict of logits [B, T, V], targets [B, T], prompt_lengths and lengths [B]."""
    means, masks = [], []
    for branch in (chosen, rejected):
        mask = response_mask(branch["targets"].shape[1], branch["prompt_lengths"], branch["lengths"])
        logp = logprobs(branch["logits"], branch["targets"])
        means.append((logp * mask).sum(1) / mask.sum(1))
        masks.append(mask)
    lw, lr = means
    odds = log_odds(lw, lr)
    odds_loss = softplus(-odds).mean()
    if scope == "response":
        nll = -lw.mean()
    else:
        whole = whole_mask(chosen["targets"].shape[1], chosen["lengths"])
        nll = -(logprobs(chosen["logits"], chosen["targets"]) * whole).sum() / whole.sum()
    parts = {"lw": lw, "lr": lr, "log_odds": odds, "odds_loss": odds_loss, "nll": nll, "loss": nll + lam * odds_loss}
    return parts, masks


def orpo_gradients(chosen, rejected, lam, scope):
    """Gradients of the loss in the chosen and the rejected logits, by hand; [B, T, V] each."""
    parts, (mask_w, mask_r) = orpo(chosen, rejected, lam, scope)
    rows = len(parts["lw"])
    # d softplus(-o)/do = -sigmoid(-o);  do/dlw = 1 + e^lw / (1 - e^lw) = 1 / (1 - e^lw), and minus that in lr.
    pull = lam / (1.0 + np.exp(parts["log_odds"])) / rows
    d_lw = -pull / -np.expm1(parts["lw"])
    d_lr = pull / -np.expm1(parts["lr"])
    weight_w = d_lw[:, None] * mask_w / mask_w.sum(1, keepdims=True)
    weight_r = d_lr[:, None] * mask_r / mask_r.sum(1, keepdims=True)
    if scope == "response":
        weight_w = weight_w - mask_w / mask_w.sum(1, keepdims=True) / rows
    else:
        whole = whole_mask(chosen["targets"].shape[1], chosen["lengths"])
        weight_w = weight_w - whole / whole.sum()
    return _through_softmax(chosen, weight_w), _through_softmax(rejected, weight_r)


def _through_softmax(branch, weight):
    """weight * d(log-probability of the target)/d(logits) = weight * (one-hot - softmax)."""
    logits = np.asarray(branch["logits"], np.float64)
    soft = np.exp(logits - logits.max(-1, keepdims=True))
    soft /= soft.sum(-1, keepdims=True)
    hot = np.zeros_like(soft)
    np.put_along_axis(hot, branch["targets"][..., None], 1.0, -1)
    return weight[..., None] * (hot - soft)


# Pairs of mean log-probabilities: the usual range, ties, both ends of log1mexp, and certainty (0), where the floor acts.
EDGES = [
    ([-0.5, -1.2, -0.8], [-1.5, -1.0, -2.3]),
    ([-0.7], [-1.9]),
    ([-1.0], [-1.0]),
    ([-LN2], [-LN2]),
    ([-1e-3], [-5.0]),
    ([-1e-6], [-1e-3]),
    ([-1e-8], [-1.0]),
    ([0.0], [-1.0]),
    ([-1.0], [0.0]),
    ([-20.0], [-0.1]),
    ([-0.1], [-20.0]),
    ([-80.0], [-90.0]),
]


def edge_table():
    """Rows of {lw, lr, lam, log1mexp_lw, log1mexp_lr, log_odds, odds_loss, nll, loss}, response scope."""
    rows = []
    for lw, lr in EDGES:
        lw, lr = np.array(lw), np.array(lr)
        odds = log_odds(lw, lr)
        for lam in (0.1, 1.0):
            odds_loss, nll = softplus(-odds).mean(), -lw.mean()
            rows.append(
                {
                    "lw": lw.tolist(),
                    "lr": lr.tolist(),
                    "lam": lam,
                    "log1mexp_lw": log1mexp_floored(lw).tolist(),
                    "log1mexp_lr": log1mexp_floored(lr).tolist(),
                    "log_odds": odds.tolist(),
                    "odds_loss": float(odds_loss),
                    "nll": float(nll),
                    "loss": float(nll + lam * odds_loss),
                }
            )
    return rows


def random_case(seed, lam):
    """Random logits of three pairs (float32), and the float64 values and gradients of both scopes."""
    rng = np.random.default_rng(seed)
    rows, width, vocab = 3, 7, 24
    branches = {}
    prompts = np.array([2, 1, 3], np.int32)
    for name, lengths in (("chosen", [8, 5, 6]), ("rejected", [6, 8, 5])):
        branches[name] = {
            "logits": (2.5 * rng.standard_normal((rows, width, vocab))).astype(np.float32),
            "targets": rng.integers(0, vocab, (rows, width)).astype(np.int32),
            "prompt_lengths": prompts,
            "lengths": np.array(lengths, np.int32),
        }
    tensors = {f"{name}.{key}": value for name, branch in branches.items() for key, value in branch.items()}
    values = {"lam": lam}
    for scope in SCOPES:
        parts, _ = orpo(branches["chosen"], branches["rejected"], lam, scope)
        values[scope] = {key: np.asarray(value).tolist() for key, value in parts.items()}
        grads = orpo_gradients(branches["chosen"], branches["rejected"], lam, scope)
        for name, grad in zip(("chosen", "rejected"), grads):
            tensors[f"{scope}.grad_{name}"] = grad.astype(np.float32)
    return tensors, values
