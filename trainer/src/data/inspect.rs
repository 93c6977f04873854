//! Data as text for people: counts, lengths, truncation, and rows with their loss mask.

use std::fmt::Write as _;

use super::dataset::{Dataset, Examples};
use super::encode::Example;
use super::encoder::TextEncoder;
use crate::error::{Result, TrainError};

/// Bars of the length histogram.
const BUCKETS: usize = 10;
/// Letters of the longest bar.
const BAR: usize = 40;

/// How trained tokens are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// By colour, on a terminal.
    Colour,
    /// By `⟦` and `⟧`.
    Brackets,
}

impl Marks {
    fn pair(self) -> (&'static str, &'static str) {
        match self {
            Self::Colour => ("\u{1b}[30;42m", "\u{1b}[0m"),
            Self::Brackets => ("⟦", "⟧"),
        }
    }
}

/// The report on `dataset`: what became of the rows, lengths, and `samples` rows with their masks.
///
/// # Errors
/// Ids that the tokenizer cannot decode.
pub fn describe(dataset: &Dataset, encoder: &dyn TextEncoder, samples: usize, marks: Marks) -> Result<String> {
    let mut text = String::new();
    for report in &dataset.reports {
        let _ = writeln!(text, "{}", report.summary());
    }
    for (name, examples) in [("train", Some(&dataset.train)), ("valid", dataset.valid.as_ref())] {
        if let Some(examples) = examples {
            let _ = write!(text, "\n{name}: {} rows\n{}", examples.len(), lengths_table(&examples.lengths()));
        }
    }
    let (open, close) = marks.pair();
    let _ = writeln!(text, "\nsamples ({open}trained{close}, not trained)");
    for index in 0..samples.min(dataset.train.len()) {
        match &dataset.train {
            Examples::Sft(examples) => sample(&mut text, "", &examples[index], encoder, marks)?,
            Examples::Preference(pairs) => {
                sample(&mut text, "chosen, ", &pairs[index].chosen, encoder, marks)?;
                sample(&mut text, "rejected, ", &pairs[index].rejected, encoder, marks)?;
            }
        }
    }
    Ok(text)
}

fn sample(text: &mut String, name: &str, example: &Example, encoder: &dyn TextEncoder, marks: Marks) -> Result<()> {
    let (tokens, trained) = (example.ids.len(), example.trained_tokens());
    let rendered = render_mask(example, encoder, marks)?;
    let _ = writeln!(text, "\n--- {}: {name}{tokens} tokens, {trained} trained\n{rendered}", example.origin);
    Ok(())
}

/// The row's text with its trained runs marked.
///
/// # Errors
/// Ids that the tokenizer cannot decode.
pub fn render_mask(example: &Example, encoder: &dyn TextEncoder, marks: Marks) -> Result<String> {
    let (open, close) = marks.pair();
    let mut text = String::new();
    let mut start = 0;
    for run in example.mask.chunk_by(|left, right| left == right) {
        let ids = &example.ids[start..start + run.len()];
        start += run.len();
        let part =
            encoder.decode(ids).map_err(|error| TrainError::model(format!("decode {}", example.origin), error))?;
        if run[0] {
            let _ = write!(text, "{open}{part}{close}");
        } else {
            text.push_str(&part);
        }
    }
    Ok(text)
}

/// Shares of the rows, in percent, whose greatest length the table shows.
const SHARES: [usize; 4] = [50, 90, 95, 99];

fn lengths_table(lengths: &[usize]) -> String {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let (Some(least), Some(most)) = (sorted.first().copied(), sorted.last().copied()) else { return String::new() };
    let mut text = format!("  tokens per row: min {least}");
    for share in SHARES {
        let _ = write!(text, ", p{share} {}", percentile(&sorted, share));
    }
    let mean = sorted.iter().sum::<usize>() as f64 / sorted.len() as f64;
    let _ = writeln!(text, ", max {most}, mean {mean:.1}");
    let step = (most - least + 1).div_ceil(BUCKETS);
    let buckets: Vec<(usize, usize)> = (0..BUCKETS)
        .map(|bucket| least + bucket * step)
        .take_while(|from| *from <= most)
        .map(|from| (from, sorted.iter().filter(|length| (from..from + step).contains(*length)).count()))
        .collect();
    let tallest = buckets.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    for (from, count) in buckets {
        let bar = "#".repeat((count * BAR).div_ceil(tallest));
        let _ = writeln!(text, "{}", format!("  {from:>7}–{:<7} {count:>7} {bar}", from + step - 1).trim_end());
    }
    text
}

/// The least length that `share` percent of the rows do not exceed (nearest rank).
fn percentile(sorted: &[usize], share: usize) -> usize {
    sorted[(sorted.len() * share).div_ceil(100).saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::data::encoder::testing::LetterEncoder;
    use crate::data::jsonl::RowPlace;
    use crate::data::preference::PreferenceExample;
    use crate::data::report::DataReport;

    fn example(text: &str, prompt: usize) -> Example {
        let ids = LetterEncoder::chat().ids(text);
        let mask = (0..ids.len()).map(|at| at >= prompt).collect();
        let origin = RowPlace { path: Arc::from(Path::new("d.jsonl")), line: 4, index: None };
        Example { ids, mask, prompt_len: prompt, origin }
    }

    fn dataset(train: Examples) -> Dataset {
        let mut report = DataReport::new(Path::new("d.jsonl"), 64);
        (report.rows, report.kept) = (1, 1);
        Dataset { train, valid: None, reports: vec![report] }
    }

    #[test]
    fn trained_tokens_are_marked_in_plain_text_and_in_colour() {
        let row = example("ab<end>", 1);
        let encoder = LetterEncoder::chat();
        assert_eq!(render_mask(&row, &encoder, Marks::Brackets).unwrap(), "a⟦b<end>⟧");
        assert_eq!(render_mask(&row, &encoder, Marks::Colour).unwrap(), "a\u{1b}[30;42mb<end>\u{1b}[0m");
    }

    #[test]
    fn the_report_shows_counts_lengths_and_samples() {
        let text = describe(
            &dataset(Examples::Sft(vec![example("abc", 2), example("abcde", 2)])),
            &LetterEncoder::chat(),
            1,
            Marks::Brackets,
        )
        .unwrap();
        let wanted = "d.jsonl: 1 of 1 row, 0 tokens, 0 trained, longest 0\n\n\
            train: 2 rows\n  tokens per row: min 3, p50 3, p90 5, p95 5, p99 5, max 5, mean 4.0\n";
        assert!(text.starts_with(wanted), "{text}");
        let bar = "#".repeat(40);
        assert!(text.contains(&format!("        3–3             1 {bar}\n        4–4             0\n")), "{text}");
        assert!(
            text.ends_with("samples (⟦trained⟧, not trained)\n\n--- d.jsonl:4: 3 tokens, 1 trained\nab⟦c⟧\n"),
            "{text}"
        );
    }

    #[test]
    fn both_sides_of_a_pair_are_shown() {
        let pair = PreferenceExample { chosen: example("ab", 1), rejected: example("ac", 1) };
        let dataset = dataset(Examples::Preference(vec![pair]));
        let text = describe(&dataset, &LetterEncoder::chat(), 5, Marks::Brackets).unwrap();
        assert!(text.contains("d.jsonl:4: chosen, 2 tokens, 1 trained\na⟦b⟧\n"), "{text}");
        assert!(text.contains("d.jsonl:4: rejected, 2 tokens, 1 trained\na⟦c⟧\n"), "{text}");
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let sorted: Vec<usize> = (1..=200).collect();
        assert_eq!(SHARES.map(|share| percentile(&sorted, share)), [100, 180, 190, 198]);
        assert_eq!(percentile(&[7], 50), 7);
    }

    #[test]
    fn the_histogram_counts_every_row_once() {
        let lengths: Vec<usize> = (0..137).map(|row| 3 + (row * 31) % 97).collect();
        let table = lengths_table(&lengths);
        let counts = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
        assert_eq!(counts.sum::<usize>(), 137);
    }
}
