//! Whole-corridor tests: what the workspace gives, held against mlx-lm and against plain references.
#![allow(missing_docs)] // nothing here is public

mod parity;
