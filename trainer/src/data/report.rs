//! What became of a file's rows: kept, dropped, truncated, each with its count and first place.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use super::jsonl::RowPlace;
use crate::error::{Detail, Place, TrainError};

/// Why a row is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// No turn of it is to be trained.
    NoTargets,
    /// All that is to be trained lies beyond the limit.
    ResponseCutAway,
    /// The better and the worse response are the same.
    EqualResponses,
    /// A response without text.
    EmptyResponse,
    /// Nothing to predict.
    TooShort,
}

impl DropReason {
    fn hint(self) -> &'static str {
        match self {
            Self::NoTargets => "check data.train_on and the roles of the messages; mlx-train inspect shows the mask",
            Self::ResponseCutAway => "raise data.max_seq_length",
            Self::EqualResponses => "chosen and rejected must differ",
            Self::EmptyResponse => "responses must not be empty",
            Self::TooShort => "rows must have some text",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTargets => "no trainable tokens",
            Self::ResponseCutAway => "the response lies beyond max_seq_length",
            Self::EqualResponses => "chosen and rejected are the same",
            Self::EmptyResponse => "empty response",
            Self::TooShort => "fewer than two tokens",
        })
    }
}

/// An encoded row, or why it is left out.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T> {
    /// To be trained on.
    Kept(T, Notes),
    /// Left out.
    Dropped(DropReason),
}

/// What happened to a row that is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes {
    /// It was longer than the limit.
    pub truncated: bool,
    /// A response lost its end.
    pub response_truncated: bool,
    /// Turns that should be trained and whose place in the whole could not be found.
    pub unclear_turns: usize,
}

/// A count, and where it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// How often.
    pub count: usize,
    /// The first time.
    pub first: RowPlace,
}

impl Tally {
    fn add(slot: &mut Option<Self>, place: &RowPlace) {
        match slot {
            Some(tally) => tally.count += 1,
            None => *slot = Some(Self { count: 1, first: place.clone() }),
        }
    }
}

/// What became of a file's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataReport {
    /// The file.
    pub path: PathBuf,
    /// Rows in it.
    pub rows: usize,
    /// Rows kept.
    pub kept: usize,
    /// Rows left out, by reason.
    pub dropped: BTreeMap<DropReason, Tally>,
    /// Rows that were longer than the limit.
    pub truncated: Option<Tally>,
    /// Rows of which a response lost its end.
    pub response_truncated: Option<Tally>,
    /// Rows with a turn that should be trained and whose place could not be found.
    pub unclear: Option<Tally>,
    /// Tokens of the kept rows.
    pub tokens: usize,
    /// Targets among them.
    pub trained_tokens: usize,
    /// Longest kept row in tokens.
    pub longest: usize,
    /// The limit in force.
    pub max_seq_length: usize,
}

impl DataReport {
    /// The report of a file of which nothing is encoded yet.
    pub fn new(path: &Path, max_seq_length: usize) -> Self {
        Self {
            path: path.to_owned(),
            rows: 0,
            kept: 0,
            dropped: BTreeMap::new(),
            truncated: None,
            response_truncated: None,
            unclear: None,
            tokens: 0,
            trained_tokens: 0,
            longest: 0,
            max_seq_length,
        }
    }

    /// Counts a row, and hands it on when it is kept. `measure` gives tokens, targets and the longest row of it.
    pub fn count<T>(
        &mut self,
        outcome: Outcome<T>,
        place: &RowPlace,
        measure: impl Fn(&T) -> (usize, usize, usize),
    ) -> Option<T> {
        self.rows += 1;
        match outcome {
            Outcome::Dropped(reason) => {
                let first = || Tally { count: 0, first: place.clone() };
                self.dropped.entry(reason).or_insert_with(first).count += 1;
                None
            }
            Outcome::Kept(value, notes) => {
                self.kept += 1;
                let (tokens, trained, longest) = measure(&value);
                self.tokens += tokens;
                self.trained_tokens += trained;
                self.longest = self.longest.max(longest);
                if notes.truncated {
                    Tally::add(&mut self.truncated, place);
                }
                if notes.response_truncated {
                    Tally::add(&mut self.response_truncated, place);
                }
                if notes.unclear_turns > 0 {
                    Tally::add(&mut self.unclear, place);
                }
                Some(value)
            }
        }
    }

    /// One line with the counts, and one for each thing that was done to rows.
    pub fn summary(&self) -> String {
        let mut text = format!(
            "{}: {} of {}, {} tokens, {} trained, longest {}",
            self.path.display(),
            self.kept,
            plural(self.rows, "row"),
            self.tokens,
            self.trained_tokens,
            self.longest
        );
        for (reason, tally) in &self.dropped {
            let _ = write!(text, "\n  dropped {}: {reason} (first at {})", plural(tally.count, "row"), tally.first);
        }
        let limit = self.max_seq_length;
        let notes = [
            (&self.truncated, format!("longer than {limit} tokens, truncated")),
            (&self.response_truncated, format!("of which a response lost its end at {limit} tokens")),
            (&self.unclear, "with a turn that is not trained: the template rewrites it later on".to_owned()),
        ];
        for (tally, what) in notes {
            if let Some(Tally { count, first }) = tally {
                let _ = write!(text, "\n  {} {what} (first at {first})", plural(*count, "row"));
            }
        }
        text
    }

    /// An error when no row is left.
    ///
    /// # Errors
    /// No row is left; the error lists the reasons.
    pub fn require_rows(&self) -> crate::error::Result<()> {
        if self.kept > 0 {
            return Ok(());
        }
        let reasons: Vec<String> =
            self.dropped.iter().map(|(reason, tally)| format!("{} dropped: {reason}", tally.count)).collect();
        let got = format!("no usable row of {} ({})", self.rows, reasons.join("; "));
        let detail = Detail::new(Place::file(&self.path), "", got, "at least one row with trainable tokens");
        let main = self.dropped.iter().max_by_key(|(_, tally)| tally.count).map(|(reason, _)| reason.hint());
        Err(TrainError::data(match main {
            Some(hint) => detail.hint(hint),
            None => detail,
        }))
    }
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
