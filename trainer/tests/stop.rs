//! Runs that are stopped from outside: Ctrl-C, termination, and death without a word.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::{Outcome, Workshop};
use crate::resume::assert_equal;

fn start(shop: &Workshop, args: &[&str]) -> Child {
    let mut program = shop.program();
    program.args(["train", "run.toml"]).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    program.spawn().unwrap()
}

/// Sends a signal through the system's own command, which needs no unsafe code.
fn signal(child: &Child, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(status.success());
}

/// Waits until the run has saved a state or written so many records.
fn wait_for_records(shop: &Workshop, folder: &str, count: usize) {
    let (path, start) = (shop.path(folder).join("metrics.jsonl"), Instant::now());
    while std::fs::read_to_string(&path).unwrap_or_default().lines().count() < count {
        assert!(start.elapsed() < Duration::from_secs(60), "the run does not get on");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn is_interrupted(outcome: &Outcome) -> u64 {
    assert_eq!(outcome.status, 130, "{}", outcome.stderr);
    let line = outcome.stderr.lines().find(|line| line.starts_with("error: interrupted after step ")).unwrap();
    let step = line["error: interrupted after step ".len()..].split(';').next().unwrap();
    assert!(outcome.stderr.ends_with("\n\nhint: run the same command with --resume to go on\n"), "{}", outcome.stderr);
    step.parse().unwrap()
}

#[test]
fn ctrl_c_finishes_the_step_saves_and_exits_with_130() {
    let shop = Workshop::new();
    let child = start(&shop, &["--iters", "1000000"]);
    wait_for_records(&shop, "out", 5);
    signal(&child, "INT");
    let outcome = Outcome::of(child.wait_with_output().unwrap());
    let step = is_interrupted(&outcome);
    assert!(step >= 5);
    assert_eq!(shop.json("out/trainer_state.json")["step"], step);
    assert_eq!(shop.metrics().last().unwrap()["iteration"], step);
    let last = (step + 3).to_string();
    shop.train(&["--resume", "--iters", &last]).succeeded();
    shop.train(&["--adapter-path", "whole", "--iters", &last]).succeeded();
    assert_equal(&shop, "whole", "out", &last);
}

#[test]
fn a_stopped_run_reports_the_steps_since_the_last_report() {
    let shop = Workshop::new();
    let child = start(&shop, &["--iters", "1000000", "--set", "report.every=100"]);
    wait_for_records(&shop, "out", 1);
    signal(&child, "TERM");
    let step = is_interrupted(&Outcome::of(child.wait_with_output().unwrap()));
    assert_eq!(shop.metrics().last().unwrap()["iteration"], step);
}

#[test]
fn a_second_ctrl_c_ends_the_run_at_once() {
    let shop = Workshop::new();
    // One step takes minutes.
    let mut child = start(&shop, &["--set", "train.grad_accumulation_steps=100000"]);
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(notes.any(|line| line.ends_with(" rows, results in out")));
    signal(&child, "INT");
    assert!(notes.any(|line| line == "interrupted: finishing the step and saving; once more to stop at once"));
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(shop.list("out"), ["config.toml", "metrics.jsonl"]);
}

#[test]
fn a_run_killed_at_any_moment_goes_on_as_if_nothing_had_been() {
    const LAST: &str = "40";
    let shop = Workshop::new();
    let args = ["--iters", LAST, "--set", "checkpoint.every=1", "--set", "checkpoint.save_total_limit=2"];
    shop.train(&[&args[..], &["--adapter-path", "whole"]].concat()).succeeded();
    let mut kills = 0;
    for round in 0u64..10 {
        let saved = shop.path("out/trainer_state.json").exists();
        let step = if saved { shop.json("out/trainer_state.json")["step"].as_u64().unwrap() } else { 0 };
        let more: &[&str] = if saved { &["--resume"] } else { &["--overwrite"] };
        let mut child = start(&shop, &[&args[..], more].concat());
        wait_for_records(&shop, "out", usize::try_from(step).unwrap() + 1);
        // Anywhere between one save and the next, or inside of one.
        std::thread::sleep(Duration::from_micros(round * 7919 % 30_000));
        kills += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(kills >= 5, "the runs end before they are killed: {kills}");
    let saved = shop.path("out/trainer_state.json").exists();
    shop.train(&[&args[..], &[if saved { "--resume" } else { "--overwrite" }]].concat()).succeeded();
    assert_equal(&shop, "whole", "out", LAST);
    let left: Vec<String> = shop.list("out").into_iter().filter(|name| name.contains("tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}
