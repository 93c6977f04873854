//! `build/fetch.rs`: what is said when a download fails.

use crate::fetch::{Failure, crate_folder, pip_failure};
use crate::pins::Wheel;

fn failed(why: &Failure) -> String {
    let wheel = Wheel { name: "mlx-cpu".into(), version: "0.32.2".into(), requirement: String::new() };
    pip_failure(&wheel, why).to_string()
}

const OFFLINE: &str = "hint: without a network: build once on a connected machine of the same kind and copy its cache \
                       folder here (MLX_RS_CACHE names it), or set MLX_PREFIX, MLX_C_SOURCE and LIBCLANG_PATH to what is installed";

#[test]
fn a_machine_without_python_is_told_to_install_it() {
    assert_eq!(
        failed(&Failure::Missing("No such file or directory (os error 2)".into())),
        format!(
            "error: cannot fetch the package mlx-cpu 0.32.2\n  No such file or directory (os error 2)\n\
             hint: install Python 3 with pip, which fetches it (Debian: apt-get install python3 python3-pip)\n{OFFLINE}"
        )
    );
}

#[test]
fn a_python_without_pip_is_told_to_install_that() {
    let text = failed(&Failure::Failed("/usr/bin/python3: No module named pip\n".into()));
    assert!(text.contains("\n  /usr/bin/python3: No module named pip\nhint: install pip (Debian:"), "{text}");
    assert!(text.ends_with(OFFLINE), "{text}");
}

#[test]
fn a_changed_file_is_no_matter_of_the_network() {
    let text =
        failed(&Failure::Failed("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.".into()));
    assert!(text.contains("hint: the file that arrived is not the released one"), "{text}");
    assert!(!text.contains(OFFLINE), "{text}");
}

#[test]
fn a_system_that_is_too_old_is_told_what_is_needed() {
    let text = failed(&Failure::Failed("ERROR: No matching distribution found for mlx-cpu==0.32.2".into()));
    assert!(text.contains("hint: its wheels need glibc 2.35 or newer"), "{text}");
}

#[test]
fn a_dead_network_gets_the_way_round_it() {
    let text = failed(&Failure::Failed("Failed to establish a new connection".into()));
    assert_eq!(
        text,
        format!("error: cannot fetch the package mlx-cpu 0.32.2\n  Failed to establish a new connection\n{OFFLINE}")
    );
}

#[test]
fn the_crate_lies_where_cargo_says() {
    let metadata = br#"{"packages":[{"name":"a","version":"1.0.0","manifest_path":"/r/a/Cargo.toml"}]}"#;
    assert_eq!(crate_folder(metadata, "a", "1.0.0").expect("listed").to_str(), Some("/r/a"));
    let error = crate_folder(metadata, "a", "2.0.0").expect_err("not listed");
    assert_eq!(error.to_string(), "error: cargo metadata does not say where a 2.0.0 lies\n  the package is not listed");
    assert!(crate_folder(b"<html>", "a", "1.0.0").is_err());
}
