//! The rules of the boundary to C, one test or more per rule of `docs/FFI.md`.

mod document;
mod errors;
mod panics;
mod payloads;
mod reads;
