//! From encoded rows to the windows of a step: which rows, what they weigh, and their arrays.

use mlx_rs_core::Result;

use crate::batch::{HostRow, Rows, collate};
use crate::data::{Example, Examples, PreferenceExample};
use crate::loss::{Denominators, Method, SftScope};

/// Turns chosen rows of a data set into arrays for a method.
pub struct Collator<'a> {
    /// The rows.
    pub examples: &'a Examples,
    /// The method decides what counts.
    pub method: Method,
    /// Fills the ends of shorter rows; never seen by a loss.
    pub pad: u32,
}

impl Collator<'_> {
    /// What the window made of these batches is divided by.
    pub fn denominators(&self, batches: &[Vec<usize>]) -> Denominators {
        let rows = batches.iter().flatten();
        match self.examples {
            Examples::Sft(examples) => Denominators {
                tokens: rows.map(|index| examples[*index].trained_tokens()).sum::<usize>() as f64,
                pairs: 0.0,
            },
            Examples::Preference(pairs) => Denominators {
                tokens: rows.clone().map(|index| self.likelihood_count(&pairs[*index])).sum::<usize>() as f64,
                pairs: rows.count() as f64,
            },
        }
    }

    /// Supervised tokens of these batches, for the counters.
    pub fn trained_tokens(&self, batches: &[Vec<usize>]) -> u64 {
        let rows = batches.iter().flatten();
        let count: usize = match self.examples {
            Examples::Sft(examples) => rows.map(|index| examples[*index].trained_tokens()).sum(),
            Examples::Preference(pairs) => {
                rows.map(|index| pairs[*index].chosen.trained_tokens() + pairs[*index].rejected.trained_tokens()).sum()
            }
        };
        count as u64
    }

    /// The arrays of one batch: for pairs, all chosen rows and then all rejected ones.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn rows(&self, batch: &[usize]) -> Result<Rows> {
        let rows: Vec<HostRow<'_>> = match self.examples {
            Examples::Sft(examples) => batch.iter().map(|index| sft_row(&examples[*index])).collect(),
            Examples::Preference(pairs) => {
                let chosen = batch.iter().map(|index| self.chosen_row(&pairs[*index]));
                let rejected = batch.iter().map(|index| response_row(&pairs[*index].rejected));
                chosen.chain(rejected).collect()
            }
        };
        collate(&rows, self.pad)
    }

    fn scope(&self) -> SftScope {
        match self.method {
            Method::Sft => SftScope::Full,
            Method::Orpo { scope, .. } => scope,
        }
    }

    fn likelihood_count(&self, pair: &PreferenceExample) -> usize {
        match self.scope() {
            SftScope::Full => pair.chosen.ids.len() - 1,
            SftScope::Response => 1,
        }
    }

    fn chosen_row<'a>(&self, pair: &'a PreferenceExample) -> HostRow<'a> {
        let mut row = response_row(&pair.chosen);
        if self.scope() == SftScope::Full {
            row.likelihood.iter_mut().skip(1).for_each(|weight| *weight = 1.0);
        }
        row
    }
}

fn sft_row(example: &Example) -> HostRow<'_> {
    HostRow {
        ids: &example.ids,
        likelihood: example.mask.iter().map(|trained| f32::from(*trained)).collect(),
        response: vec![false; example.ids.len()],
    }
}

fn response_row(example: &Example) -> HostRow<'_> {
    HostRow { ids: &example.ids, likelihood: vec![0.0; example.ids.len()], response: example.mask.clone() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::data::jsonl::RowPlace;

    fn example(length: usize, prompt_len: usize) -> Example {
        Example {
            ids: (0..length as u32).collect(),
            mask: (0..length).map(|index| index >= prompt_len).collect(),
            prompt_len,
            origin: RowPlace { path: Arc::from(Path::new("d.jsonl")), line: 1, index: None },
        }
    }

    fn pairs() -> Examples {
        let pair = |chosen, rejected| PreferenceExample { chosen: example(chosen, 3), rejected: example(rejected, 3) };
        Examples::Preference(vec![pair(5, 4), pair(9, 6)])
    }

    fn orpo(scope: SftScope) -> Method {
        Method::Orpo { lambda: 0.1, scope }
    }

    #[test]
    fn supervised_rows_weigh_by_their_targets() {
        let examples = Examples::Sft(vec![example(5, 3), example(9, 1), example(4, 2)]);
        let collator = Collator { examples: &examples, method: Method::Sft, pad: 0 };
        let batches = [vec![0, 1], vec![2]];
        let denominators = collator.denominators(&batches);
        assert_eq!((denominators.tokens, denominators.pairs), (12.0, 0.0));
        assert_eq!(collator.trained_tokens(&batches), 12);
    }

    #[test]
    fn pairs_weigh_by_the_likelihood_that_is_trained() {
        let examples = pairs();
        let batches = [vec![1], vec![0]];
        let denominators = |scope| {
            let collator = Collator { examples: &examples, method: orpo(scope), pad: 0 };
            let denominators = collator.denominators(&batches);
            (denominators.tokens, denominators.pairs, collator.trained_tokens(&batches))
        };
        // Full: every chosen token but the first. Response: a mean per pair. Targets: 2 + 1 and 6 + 3.
        assert_eq!(denominators(SftScope::Full), (12.0, 2.0, 12));
        assert_eq!(denominators(SftScope::Response), (2.0, 2.0, 12));
    }

    #[test]
    fn chosen_rows_come_before_rejected_ones() {
        let examples = pairs();
        let collator = Collator { examples: &examples, method: orpo(SftScope::Full), pad: 99 };
        let rows = collator.rows(&[0]).unwrap();
        assert_eq!(rows.tokens.to_vec::<i32>().unwrap(), [0, 1, 2, 3, 4, 0, 1, 2, 3, 99]);
        assert_eq!(rows.targets.to_vec::<i32>().unwrap(), [1, 2, 3, 4, 3]);
        assert_eq!(rows.likelihood.to_vec::<f32>().unwrap(), [1.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(rows.response_mean.to_vec::<f32>().unwrap(), [0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    }
}
