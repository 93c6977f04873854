//! Prints the interpreter of the pinned peer environment, making it first: `cargo run -p workspace-tests --bin peer`.
#![forbid(unsafe_code)]

fn main() {
    println!("{}", workspace_tests::peer::python().display());
}
