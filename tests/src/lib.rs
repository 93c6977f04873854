//! What the whole-corridor tests share: the pinned peer environment and the goldens.
#![forbid(unsafe_code)]

pub mod golden;
pub mod peer;
