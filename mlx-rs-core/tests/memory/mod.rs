//! Memory: what is dropped comes back, and long runs stay flat.
//!
//! The counters belong to the whole process, so each test here runs itself again, alone in a process of its own.

mod arrays;
mod training;

use std::process::Command;

/// Set in the process that runs one test alone.
const ALONE: &str = "MLX_RS_CORE_TEST_ALONE";

/// Runs `body` in a process that runs nothing else. `name` is the test's own path in this binary.
fn alone(name: &str, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let this = std::env::current_exe().expect("the path of the test binary");
    let output = Command::new(this)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .expect("the test binary starts");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} failed alone:\n{text}");
    // A name that is not right would run nothing and pass.
    assert!(text.contains("test result: ok. 1 passed"), "{name} did not run alone:\n{text}");
}
