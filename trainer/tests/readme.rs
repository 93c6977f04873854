//! The README's commands are ones that the program takes, and the files that it names are there.

use std::path::Path;

use trainer::cli;

const README: &str = include_str!("../../README.md");

#[test]
fn every_command_of_the_readme_is_understood() {
    let commands: Vec<&str> = README.lines().filter(|line| line.starts_with("mlx-train ")).collect();
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        // Two spaces end the command, what follows explains it.
        let words = command.split("  ").next().unwrap_or_default();
        let quoted = words.split('"').enumerate();
        let words: Vec<&str> = quoted
            .flat_map(|(index, part)| if index % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
            .collect();
        assert!(cli::parse(words, &[]).is_ok(), "{command}");
    }
}

#[test]
fn every_file_that_the_readme_links_to_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let targets: Vec<&str> = README.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(targets.len() >= 5, "{targets:?}");
    for target in targets.iter().filter(|target| !target.contains("://")) {
        assert!(root.join(target).exists(), "{target}");
    }
}
