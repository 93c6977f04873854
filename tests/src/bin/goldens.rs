//! Remakes the goldens with the peer: `cargo run -p workspace-tests --bin goldens -- --check` compares them with the
//! committed files, without `--check` it writes them.
#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let root = workspace_tests::peer::root();
    let python = workspace_tests::peer::python();
    for script in ["tests/golden/make_goldens.py", "tests/ops/make_ops.py"] {
        let status = Command::new(&python).arg(root.join(script)).args(std::env::args().skip(1)).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => {
                eprintln!("error: {script} ended with {status}");
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("error: {} cannot be started: {error}", python.display());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
