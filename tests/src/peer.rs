//! The peer: a Python environment with the real mlx-lm, pinned by hash in `vendor/peer.txt`.
//!
//! It is made once in the cache folder that the build uses too, and made anew when the pins change. `MLX_RS_PEER_PYTHON`
//! names an interpreter to use instead.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PINS: &str = include_str!("../../vendor/peer.txt");

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The peer's interpreter.
///
/// # Panics
/// When the environment cannot be made; the message says which command failed.
pub fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("MLX_RS_PEER_PYTHON") {
        return python.into();
    }
    let cache = models::package::cache_folder().expect("a cache folder").join("peer");
    fs::create_dir_all(&cache).expect("the cache folder can be made");
    // Two test binaries may come here at once.
    let lock = File::create(cache.join("lock")).expect("the lock file can be made");
    lock.lock().expect("the lock can be taken");
    let (venv, stamp) = (cache.join("venv"), cache.join("pins.txt"));
    let python = venv.join("bin/python");
    if fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == PINS) && python.exists() {
        return python;
    }
    let _ = fs::remove_dir_all(&venv);
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let pins = cache.join("requirements.txt");
    fs::write(&pins, PINS).expect("the pins can be written");
    let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", "-r"];
    run(Command::new(&python).args(install).arg(&pins));
    fs::write(&stamp, PINS).expect("the stamp can be written");
    python
}

/// Runs one of the repository's Python scripts with the peer's interpreter and returns its standard output.
///
/// # Panics
/// When the script fails; the message holds what it printed.
pub fn script(relative: &str, arguments: &[&str]) -> String {
    let output = run(Command::new(python()).arg(root().join(relative)).args(arguments).env("HF_HUB_OFFLINE", "1"));
    String::from_utf8(output.stdout).expect("the script prints UTF-8")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
