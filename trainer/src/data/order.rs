//! Which rows go into which batch: a pure function of seed and epoch, so that a resumed run computes it anew.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::config::value::Order;

/// Rows of like length are sought among this many batches at a time; more would make the epochs alike.
const GROUP_BATCHES: usize = 50;

/// Every batch of a run, by number.
#[derive(Debug, Clone)]
pub struct BatchPlan {
    lengths: Vec<usize>,
    order: Order,
    batch_size: usize,
    seed: u64,
    current: Option<(u64, Vec<Vec<usize>>)>,
}

impl BatchPlan {
    /// A plan over rows of these lengths in tokens. A batch size of 0 counts as 1.
    pub fn new(lengths: Vec<usize>, order: Order, batch_size: usize, seed: u64) -> Self {
        Self { lengths, order, batch_size: batch_size.max(1), seed, current: None }
    }

    /// Batches in an epoch; the last may be smaller.
    pub fn batches_per_epoch(&self) -> usize {
        self.lengths.len().div_ceil(self.batch_size)
    }

    /// Indices of the rows of batch `number`, counted from 0 over all epochs; empty only when there is no row.
    pub fn batch(&mut self, number: u64) -> &[usize] {
        let per_epoch = self.batches_per_epoch().max(1) as u64;
        let (epoch, index) = (number / per_epoch, (number % per_epoch) as usize);
        if self.current.as_ref().is_none_or(|(current, _)| *current != epoch) {
            let batches = epoch_batches(&self.lengths, self.order, self.batch_size, self.seed, epoch);
            self.current = Some((epoch, batches));
        }
        self.current.as_ref().and_then(|(_, batches)| batches.get(index)).map_or(&[], Vec::as_slice)
    }

    /// Epochs done after `number` batches, as a fraction.
    pub fn epochs_after(&self, number: u64) -> f64 {
        number as f64 / self.batches_per_epoch().max(1) as f64
    }
}

/// The batches of one epoch: every row once, `batch_size` rows each but for one smaller batch.
pub fn epoch_batches(lengths: &[usize], order: Order, batch_size: usize, seed: u64, epoch: u64) -> Vec<Vec<usize>> {
    let batch_size = batch_size.max(1);
    let rows = match order {
        Order::Sequential => (0..lengths.len()).collect(),
        Order::Shuffle | Order::LengthGrouped => permutation(lengths.len(), seed, epoch),
    };
    if order != Order::LengthGrouped {
        return rows.chunks(batch_size).map(<[usize]>::to_vec).collect();
    }
    let mut batches = Vec::with_capacity(rows.len().div_ceil(batch_size));
    for group in rows.chunks(batch_size.saturating_mul(GROUP_BATCHES)) {
        let mut group = group.to_vec();
        // The sort is stable: rows of one length keep the epoch's order.
        group.sort_by_key(|row| std::cmp::Reverse(lengths[*row]));
        batches.extend(group.chunks(batch_size).map(<[usize]>::to_vec));
    }
    let mut generator = generator(seed, epoch, BATCHES);
    shuffle(&mut batches, &mut generator);
    batches
}

/// A permutation of `0..count`, fixed by seed and epoch.
pub fn permutation(count: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..count).collect();
    shuffle(&mut rows, &mut generator(seed, epoch, ROWS));
    rows
}

const ROWS: u64 = 0;
const BATCHES: u64 = 1;

/// ChaCha8 is the same for ever, which `StdRng` does not promise. Seed 0 is a seed like any other.
fn generator(seed: u64, epoch: u64, purpose: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (part, number) in key.chunks_exact_mut(8).zip([seed, epoch, purpose, u64::from_le_bytes(*b"mlxtrain")]) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], generator: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last as u64 + 1, generator) as usize);
    }
}

/// A number below `limit`, each equally likely: draws from the incomplete last stretch are thrown away.
fn below(limit: u64, generator: &mut ChaCha8Rng) -> u64 {
    let whole = u64::MAX - u64::MAX % limit;
    loop {
        let draw = generator.next_u64();
        if draw < whole {
            return draw % limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn orders() -> impl Strategy<Value = Order> {
        prop_oneof![Just(Order::Shuffle), Just(Order::LengthGrouped), Just(Order::Sequential)]
    }

    proptest! {
        #[test]
        fn each_row_comes_once_per_epoch(
            lengths in proptest::collection::vec(1usize..400, 0..300),
            order in orders(),
            batch_size in 1usize..9,
            seed: u64,
            epoch in 0u64..5,
        ) {
            let batches = epoch_batches(&lengths, order, batch_size, seed, epoch);
            prop_assert_eq!(batches.len(), lengths.len().div_ceil(batch_size));
            prop_assert!(batches.iter().all(|batch| !batch.is_empty() && batch.len() <= batch_size));
            let mut rows = batches.concat();
            rows.sort_unstable();
            prop_assert_eq!(rows, (0..lengths.len()).collect::<Vec<_>>());
        }

        #[test]
        fn the_same_seed_and_epoch_give_the_same_batches(
            lengths in proptest::collection::vec(1usize..400, 1..200),
            order in orders(),
            seed: u64,
            number in 0u64..1000,
        ) {
            let mut first = BatchPlan::new(lengths.clone(), order, 4, seed);
            let mut resumed = BatchPlan::new(lengths, order, 4, seed);
            for before in number.saturating_sub(5)..number {
                first.batch(before);
            }
            prop_assert_eq!(first.batch(number), resumed.batch(number));
        }
    }

    #[test]
    fn seeds_and_epochs_differ_and_seed_zero_is_a_seed() {
        let draw = |seed, epoch| permutation(50, seed, epoch);
        assert_ne!(draw(0, 0), (0..50).collect::<Vec<_>>());
        assert_ne!(draw(0, 0), draw(1, 0));
        assert_ne!(draw(0, 0), draw(0, 1));
        assert_ne!(draw(0, 1), draw(1, 0));
    }

    #[test]
    fn the_order_of_a_seed_never_changes() {
        assert_eq!(permutation(8, 0, 0), [6, 4, 0, 2, 5, 7, 3, 1]);
    }

    #[test]
    fn grouped_batches_waste_little_padding_and_are_drawn_anew() {
        let lengths: Vec<usize> = (0..200).map(|row| 1 + (row * 37) % 200).collect();
        let waste = |batches: &[Vec<usize>]| -> usize {
            let padded = batches.iter().map(|batch| {
                let longest = batch.iter().map(|row| lengths[*row]).max().unwrap();
                batch.iter().map(|row| longest - lengths[*row]).sum::<usize>()
            });
            padded.sum()
        };
        let first = epoch_batches(&lengths, Order::LengthGrouped, 4, 0, 0);
        assert_eq!(waste(&first), 300); // lengths 1..=200, four neighbours a batch: 3 + 2 + 1 per batch
        assert!(waste(&epoch_batches(&lengths, Order::Shuffle, 4, 0, 0)) > 3000);
        assert_ne!(first, epoch_batches(&lengths, Order::LengthGrouped, 4, 0, 1));
        let starts: Vec<usize> = first.iter().map(|batch| lengths[batch[0]]).collect();
        assert!(!starts.is_sorted_by(|left, right| left >= right));
    }

    #[test]
    fn sequential_order_is_that_of_the_file_with_a_smaller_last_batch() {
        let batches = epoch_batches(&[9; 5], Order::Sequential, 2, 7, 3);
        assert_eq!(batches, [vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn batches_are_numbered_over_epochs() {
        let mut plan = BatchPlan::new(vec![1; 5], Order::Sequential, 2, 0);
        assert_eq!((plan.batches_per_epoch(), plan.epochs_after(4)), (3, 4.0 / 3.0));
        assert_eq!(plan.batch(2), [4]);
        assert_eq!(plan.batch(3), [0, 1]);
        assert!(BatchPlan::new(vec![], Order::Shuffle, 2, 0).batch(0).is_empty());
    }
}
