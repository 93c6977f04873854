//! ORPO in plain f64, written a second time from the paper (Hong, Lee and Thorne 2024, eq. 6–7): loops over rows, no
//! arrays. It is what the MLX loss is held against.

use trainer::loss::SftScope;

/// One row: the logits that predict each token after the first, and which tokens are its own.
#[derive(Clone)]
pub struct Row {
    /// Per position, `[vocabulary]`.
    pub logits: Vec<Vec<f64>>,
    /// The token that each position predicts.
    pub targets: Vec<usize>,
    /// Tokens of the prompt; token `t + 1` is predicted at position `t`.
    pub prompt: usize,
    /// Tokens of prompt and response.
    pub length: usize,
}

/// The loss and its parts.
#[derive(Debug)]
pub struct Terms {
    /// Mean log-probability of each chosen response.
    pub chosen: Vec<f64>,
    /// The same of each rejected one.
    pub rejected: Vec<f64>,
    /// Log odds ratio per pair.
    pub log_odds: Vec<f64>,
    /// Mean of `−ln σ(log odds)`.
    pub odds: f64,
    /// The likelihood term.
    pub nll: f64,
    /// `nll + λ·odds`.
    pub loss: f64,
}

impl Row {
    fn logprob(&self, position: usize) -> f64 {
        let logits = &self.logits[position];
        let peak = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mass: f64 = logits.iter().map(|logit| (logit - peak).exp()).sum();
        logits[self.targets[position]] - peak - mass.ln()
    }

    fn sum(&self, first_token: usize) -> (f64, usize) {
        let tokens = first_token.max(1)..self.length;
        (tokens.clone().map(|token| self.logprob(token - 1)).sum(), tokens.len())
    }

    fn response_mean(&self) -> f64 {
        let (sum, count) = self.sum(self.prompt);
        sum / count as f64
    }
}

/// `ln(1 − eˣ)` for `x < 0`, accurate where `eˣ` is near 1 and where it is near 0.
pub fn log1mexp(x: f64) -> f64 {
    if x > -std::f64::consts::LN_2 { (-x.exp_m1()).ln() } else { (-x.exp()).ln_1p() }
}

/// Terms from the mean log-probabilities of each pair's responses and the likelihood term.
pub fn from_means(chosen: Vec<f64>, rejected: Vec<f64>, nll: f64, lambda: f64) -> Terms {
    let ratio = |(w, r): (&f64, &f64)| (w - r) - (log1mexp(*w) - log1mexp(*r));
    let log_odds: Vec<f64> = chosen.iter().zip(&rejected).map(ratio).collect();
    // −ln σ(z) = ln(1 + e^−z), without overflow for large −z.
    let penalty = |z: &f64| (-z).max(0.0) + (-z.abs()).exp().ln_1p();
    let odds = log_odds.iter().map(penalty).sum::<f64>() / log_odds.len() as f64;
    Terms { chosen, rejected, log_odds, odds, nll, loss: nll + lambda * odds }
}

/// The loss of pairs: the rows of `chosen` and of `rejected` in the same order.
pub fn orpo(chosen: &[Row], rejected: &[Row], lambda: f64, scope: SftScope) -> Terms {
    let means = |rows: &[Row]| rows.iter().map(Row::response_mean).collect::<Vec<f64>>();
    let nll = match scope {
        SftScope::Response => -means(chosen).iter().sum::<f64>() / chosen.len() as f64,
        SftScope::Full => {
            let sums = chosen.iter().map(|row| row.sum(1));
            let (sum, count) = sums.fold((0.0, 0), |all, row| (all.0 + row.0, all.1 + row.1));
            -sum / count as f64
        }
    };
    from_means(means(chosen), means(rejected), nll, lambda)
}
