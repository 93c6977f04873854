//! `build/cache.rs`: filled once, refilled when damaged, safe for two builds at once.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::cache::{Cache, copy_tree, digest};
use crate::error::{BuildError, Result};

fn open(folder: &Path) -> Cache {
    Cache::open(folder, "some-platform").expect("the cache opens")
}

fn fill(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("sub")).expect("a folder can be made");
    fs::write(folder.join("sub/file"), "contents").map_err(|e| BuildError::io("write", folder, &e))
}

#[test]
fn an_entry_is_filled_once_for_all_later_builds() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = open(folder.path()).entry("part-1", "identity", fill).expect("filled");
    assert_eq!(first, folder.path().join("some-platform/part-1"));
    let again =
        open(folder.path()).entry("part-1", "identity", |_| Err(BuildError::new("filled twice"))).expect("reused");
    assert_eq!(fs::read_to_string(again.join("sub/file")).expect("the file"), "contents");
}

#[test]
fn an_entry_that_lost_a_file_or_was_cut_or_is_of_another_pin_is_filled_anew() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = open(folder.path());
    let part = cache.entry("part", "one", fill).expect("filled");
    let filled = Cell::new(0);
    let refilled = |identity: &str| {
        let before = filled.get();
        let counted = |folder: &Path| {
            filled.set(before + 1);
            fill(folder)
        };
        cache.entry("part", identity, counted).expect("filled");
        filled.get() > before
    };
    assert!(!refilled("one"));
    fs::write(part.join("sub/file"), "cut").expect("the file can be damaged");
    assert!(refilled("one"));
    fs::remove_file(part.join("sub/file")).expect("the file can be removed");
    assert!(refilled("one"));
    assert!(refilled("two"));
    assert!(!refilled("two"));
}

#[test]
fn a_failed_filling_leaves_no_entry() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let failing = |folder: &Path| {
        fill(folder)?;
        Err(BuildError::new("the network died"))
    };
    let error = open(folder.path()).entry("part", "one", failing).expect_err("it fails");
    assert_eq!(error.to_string(), "error: the network died");
    assert!(!folder.path().join("some-platform/part").exists());
    // The next build clears what was left and fills the entry from the start.
    let cache = open(folder.path());
    assert!(!folder.path().join("some-platform/part.partial").exists());
    assert!(cache.entry("part", "one", fill).is_ok());
}

#[test]
fn a_second_build_waits_for_the_first() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = open(folder.path());
    let path = folder.path().to_path_buf();
    let second =
        std::thread::spawn(move || open(&path).entry("part", "one", |_| Err(BuildError::new("raced"))).is_ok());
    std::thread::sleep(Duration::from_millis(100));
    assert!(!second.is_finished());
    first.entry("part", "one", fill).expect("filled");
    drop(first);
    assert!(second.join().expect("the thread ends"), "the second build did not find what the first one made");
}

#[test]
fn a_cache_that_cannot_be_made_names_its_variable() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file can be written");
    let error = Cache::open(&file, "some-platform").map(|_| ()).expect_err("a file is no folder").to_string();
    assert!(error.starts_with("error: cannot create the cache folder"), "{error}");
    assert!(error.ends_with("hint: set MLX_RS_CACHE to a folder that can be written to"), "{error}");
}

#[test]
fn a_digest_changes_with_names_contents_and_flags() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let of = |extra: &str| digest(&[folder.path()], &[extra]).expect("a digest");
    fill(folder.path()).expect("filled");
    let first = of("-O2");
    assert_eq!((first.len(), &of("-O2")), (64, &first));
    assert_ne!(of("-O3"), first);
    fs::write(folder.path().join("sub/file"), "Contents").expect("written");
    assert_ne!(of("-O2"), first);
}

#[test]
fn a_tree_is_copied_without_the_stamp() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let part = open(folder.path()).entry("part", "one", fill).expect("filled");
    let copy = folder.path().join("copy");
    copy_tree(&part, &copy, |from, to| fs::copy(from, to).map(|_| ())).expect("copied");
    assert_eq!(fs::read_to_string(copy.join("sub/file")).expect("the file"), "contents");
    assert!(part.join(".stamp").is_file() && !copy.join(".stamp").exists());
}
