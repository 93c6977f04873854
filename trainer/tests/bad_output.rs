//! Folders that cannot be used or filled; what was saved before stays.

use std::process::Command;

use crate::fixture::{Outcome, Workshop};

#[test]
fn a_used_folder_is_refused_without_a_word_on_it() {
    let shop = Workshop::new();
    shop.train(&["--iters", "2"]).succeeded();
    let before = shop.read("out/adapters.safetensors");
    shop.train(&[]).failed(
        1,
        "error: out: found 0000002_adapters.safetensors of an earlier run, wanted an unused folder\n\n\
         hint: --resume goes on with that run, --overwrite replaces it, --adapter-path names another folder",
    );
    assert!(before == shop.read("out/adapters.safetensors"));
    shop.write("out/mine.txt", "kept");
    shop.train(&["--overwrite", "--iters", "3"]).succeeded();
    assert!(!shop.path("out/0000002_adapters.safetensors").exists());
    assert_eq!((shop.metrics().len(), shop.text("out/mine.txt").as_str()), (3, "kept"));
}

#[test]
fn an_overwriting_run_that_cannot_begin_destroys_nothing() {
    let shop = Workshop::new();
    shop.train(&["--iters", "2"]).succeeded();
    let before = shop.list("out");
    shop.write("train.jsonl", "broken");
    assert_eq!(shop.train(&["--overwrite"]).status, 1);
    assert_eq!(shop.list("out"), before);
}

#[test]
fn nothing_to_resume_is_an_error() {
    let shop = Workshop::new();
    shop.train(&["--resume"]).failed(
        1,
        "error: out: found no trainer_state.json, wanted the state of a run to resume\n\n\
         hint: leave out --resume to start a run",
    );
    std::fs::create_dir(shop.path("out")).unwrap();
    shop.write("out/metrics.jsonl", "");
    shop.train(&["--resume"]).failed(
        1,
        "error: out: found no trainer_state.json, wanted the state of a run to resume\n\n\
         hint: the run there ended before its first save: --overwrite starts it anew",
    );
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let shop = Workshop::new();
    shop.write("file", "");
    shop.train(&["--adapter-path", "file/out"]).failed(
        1,
        "error: cannot create file/out\n  caused by: Not a directory (os error 20)\n\n\
         hint: name a folder that you may write to with --adapter-path or output.dir",
    );
    shop.train(&["--adapter-path", "file"]).failed(1, "error: file: found a file, wanted a folder for the results");
    assert_eq!(shop.text("file"), "");
}

#[test]
fn a_name_that_is_taken_by_a_folder_is_named() {
    let shop = Workshop::new();
    std::fs::create_dir_all(shop.path("out/adapters.safetensors")).unwrap();
    shop.train(&[])
        .failed(1, "error: cannot write out/adapters.safetensors\n  caused by: Is a directory (os error 21)");
    let left: Vec<String> = shop.list("out").into_iter().filter(|name| name.contains("tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// `train` in a shell that limits the size of files to `blocks` of 512 bytes: writing beyond fails as on a full disk.
#[cfg(unix)]
fn train_with_little_space(shop: &Workshop, blocks: u32, args: &[&str]) -> Outcome {
    let mut shell = Command::new("sh");
    // The signal would end the program before it sees the error.
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    shell.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_mlx-train"), "train", "run.toml"]).args(args);
    Outcome::of(shell.current_dir(shop.path("")).output().unwrap())
}

#[cfg(unix)]
#[test]
fn a_save_without_space_leaves_the_one_before() {
    let shop = Workshop::new();
    shop.train(&["--iters", "3"]).succeeded();
    let names = ["adapters.safetensors", "0000003_adapters.safetensors", "trainer_state.json", "adapter_config.json"];
    let before = names.map(|name| shop.read(&format!("out/{name}")));
    // 51200 bytes; the adapter takes 68360.
    let outcome = train_with_little_space(&shop, 100, &["--resume", "--iters", "5"]);
    outcome.failed(
        1,
        "error: cannot write out/0000005_adapters.safetensors\n  caused by: File too large (os error 27)\n\n\
         hint: free some space; what was saved before is untouched",
    );
    for (name, bytes) in names.iter().zip(&before) {
        assert!(*bytes == shop.read(&format!("out/{name}")), "{name}");
    }
    assert!(shop.list("out").iter().all(|name| !name.contains("tmp") && !name.starts_with("0000005")));
    // 102400 bytes: the adapter fits, the optimizer's state does not.
    let outcome = train_with_little_space(&shop, 200, &["--resume", "--iters", "5"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.contains("error: cannot write out/0000005_optimizer_state.safetensors\n"));
    assert!(before[2] == shop.read("out/trainer_state.json"));
    shop.train(&["--resume", "--iters", "5"]).succeeded();
    shop.train(&["--adapter-path", "whole", "--iters", "5"]).succeeded();
    crate::resume::assert_equal(&shop, "whole", "out", "5");
}
