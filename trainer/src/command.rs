//! The commands, one file each.

pub mod check;
pub mod generate;
pub mod init;
pub mod inspect;
pub mod train;

use std::io::Write;
use std::path::Path;

use crate::error::{Result, Stage, TrainError};

/// Prints `text` to `out`, which is standard output.
fn print(out: &mut dyn Write, text: &str) -> Result<()> {
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| TrainError::io(Stage::Output, "write", Path::new("standard output"), error))
}
