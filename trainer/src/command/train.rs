//! `train`: the run that a configuration describes.

use crate::config::Resolved;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::report::Reporter;
use crate::run;

/// Trains as `resolved` says; progress goes to the standard streams.
///
/// # Errors
/// Whatever stage fails, or [`crate::error::TrainError::Interrupted`].
pub fn run(resolved: &Resolved) -> Result<()> {
    let interrupt = Interrupt::install()?;
    run::run(resolved, &interrupt, Reporter::on_terminal)
}
