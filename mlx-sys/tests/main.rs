//! The tests of the bindings and of the steps that build them.

// The build script's modules, compiled once more so that `cargo test` runs their tests.
#[allow(dead_code)]
#[path = "../build/cache.rs"]
mod cache;
#[allow(dead_code)]
#[path = "../build/error.rs"]
mod error;
#[allow(dead_code)]
#[path = "../build/fetch.rs"]
mod fetch;
#[allow(dead_code)]
#[path = "../build/pins.rs"]
mod pins;
#[allow(dead_code)]
#[path = "../build/runtime.rs"]
mod runtime;
#[allow(dead_code)]
#[path = "../build/settings.rs"]
mod settings;

mod cache_tests;
mod engine_tests;
mod fetch_tests;
mod linked_tests;
mod messages;
mod pins_tests;
mod runtime_tests;
mod settings_tests;
mod surface_tests;
