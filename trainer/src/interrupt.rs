//! Ctrl-C (and SIGTERM): the first asks the run to finish its step and save, the second ends the program at once.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Detail, EXIT_INTERRUPTED, Place, Result, TrainError};

/// Whether the user asked to stop. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// An answer that only [`Interrupt::request`] changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens for signals. Possible once per process.
    ///
    /// # Errors
    /// When the process listens already, or the system refuses.
    pub fn install() -> Result<Self> {
        let interrupt = Self::new();
        let shared = interrupt.clone();
        ctrlc::set_handler(move || {
            if shared.request() {
                std::process::exit(i32::from(EXIT_INTERRUPTED));
            }
            // A closed standard error must not end this thread, or a second Ctrl-C would do nothing.
            let _ =
                writeln!(std::io::stderr(), "\ninterrupted: finishing the step and saving; once more to stop at once");
        })
        .map_err(|error| {
            let got = format!("a refusal ({error})");
            TrainError::training(Detail::new(Place::Nowhere, "Ctrl-C", got, "a signal handler"))
        })?;
        Ok(interrupt)
    }

    /// Asks the run to stop; true when it was asked before.
    pub fn request(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }

    /// Whether the run should stop after this step.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_request_knows_of_the_first() {
        let interrupt = Interrupt::new();
        let seen = interrupt.clone();
        assert!(!seen.is_requested());
        assert!(!interrupt.request());
        assert!(seen.is_requested());
        assert!(interrupt.request());
    }
}
