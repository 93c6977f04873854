//! TOML file, environment, `--set` and flags → one checked configuration.

mod file;
pub mod layers;
pub mod origin;
mod print;
pub mod reference;
pub mod schema;
mod suggest;
mod validate;
pub mod value;

pub use file::ConfigFile;
pub use layers::{FlagValue, Resolved, Sources, resolve};
pub use origin::{Origin, Origins};
pub use schema::Config;

#[cfg(test)]
mod tests;
