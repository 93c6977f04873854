use std::io;

use tempfile::TempDir;

use super::*;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn put(folder: &TempDir, names: &[&str]) {
    names.iter().for_each(|name| fs::write(folder.path().join(name), "old").unwrap());
}

#[test]
fn a_missing_folder_is_created_and_left_empty() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("a/b");
    RunFolder::open(&dir, FolderUse::New).unwrap();
    assert_eq!(names(&dir), [""; 0]);
}

#[test]
fn a_used_folder_is_refused_without_overwrite_or_resume() {
    for file in ["adapters.safetensors", "metrics.jsonl", "0000100_adapters.safetensors", "trainer_state.json"] {
        let folder = TempDir::new().unwrap();
        put(&folder, &[file]);
        let error = RunFolder::open(folder.path(), FolderUse::New).unwrap_err();
        let wanted = format!("{}: found {file} of an earlier run, wanted an unused folder", folder.path().display());
        assert_eq!((error.to_string(), error.exit_code()), (wanted, 1));
        let hint = error.hint().unwrap();
        assert!(hint.contains("--resume") && hint.contains("--overwrite"), "{hint}");
        assert!(RunFolder::open(folder.path(), FolderUse::Overwrite).is_ok());
    }
}

#[test]
fn a_folder_with_other_files_is_not_used() {
    let folder = TempDir::new().unwrap();
    put(&folder, &["README.md", "100_adapters.safetensors", "model.safetensors"]);
    assert!(RunFolder::open(folder.path(), FolderUse::New).is_ok());
}

#[test]
fn overwriting_removes_a_run_and_nothing_else_and_not_before_it_is_told_to() {
    let folder = TempDir::new().unwrap();
    let run = ["adapters.safetensors", "0000010_adapters.safetensors", ".7-0.tmp.adapters.safetensors", "config.toml"];
    put(&folder, &run);
    put(&folder, &["notes.txt", ".hidden"]);
    let opened = RunFolder::open(folder.path(), FolderUse::Overwrite).unwrap();
    assert_eq!(names(folder.path()).len(), 6);
    opened.clear().unwrap();
    assert_eq!(names(folder.path()), [".hidden", "notes.txt"]);
}

#[test]
fn resuming_needs_a_state() {
    let folder = TempDir::new().unwrap();
    put(&folder, &["adapters.safetensors"]);
    let error = RunFolder::open(folder.path(), FolderUse::Resume).unwrap_err();
    assert!(error.to_string().ends_with("found no trainer_state.json, wanted the state of a run to resume"), "{error}");
    put(&folder, &["trainer_state.json"]);
    assert!(RunFolder::open(folder.path(), FolderUse::Resume).is_ok());
}

#[test]
fn numbered_adapters_are_listed_by_step_and_the_newest_kept() {
    let folder = TempDir::new().unwrap();
    let opened = RunFolder::open(folder.path(), FolderUse::New).unwrap();
    assert_eq!(file_name(&opened.checkpoint(100)), "0000100_adapters.safetensors");
    for step in [10_000_000, 200, 100] {
        fs::write(opened.checkpoint(step), "x").unwrap();
    }
    let steps = |folder: &RunFolder| folder.checkpoints().unwrap().iter().map(|(step, _)| *step).collect::<Vec<_>>();
    assert_eq!(steps(&opened), [100, 200, 10_000_000]);
    opened.keep_newest(0).unwrap();
    assert_eq!(steps(&opened).len(), 3);
    opened.keep_newest(2).unwrap();
    assert_eq!(steps(&opened), [200, 10_000_000]);
}

#[test]
fn only_one_optimizer_state_is_kept() {
    let folder = TempDir::new().unwrap();
    let opened = RunFolder::open(folder.path(), FolderUse::New).unwrap();
    put(&folder, &["0000100_optimizer_state.safetensors", "0000200_optimizer_state.safetensors"]);
    put(&folder, &["0000100_adapters.safetensors"]);
    opened.remove_optimizer_states_but(&opened.path("0000200_optimizer_state.safetensors")).unwrap();
    assert_eq!(names(folder.path()), ["0000100_adapters.safetensors", "0000200_optimizer_state.safetensors"]);
}

#[test]
fn a_file_in_the_place_of_the_folder_is_an_error() {
    let folder = TempDir::new().unwrap();
    put(&folder, &["out"]);
    let error = RunFolder::open(&folder.path().join("out"), FolderUse::New).unwrap_err();
    assert!(error.to_string().ends_with("out: found a file, wanted a folder for the results"), "{error}");
    let error = RunFolder::open(&folder.path().join("out/deeper"), FolderUse::New).unwrap_err();
    assert!(error.to_string().starts_with("cannot create "), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_unwritable_folder_is_an_error_before_anything_is_trained() {
    // /proc refuses new files even to root.
    let error = RunFolder::open(Path::new("/proc"), FolderUse::New).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.exit_code()), ("cannot write to /proc", 1));
    assert!(error.hint().unwrap().contains("output.dir"));
    let error = RunFolder::open(Path::new("/proc/new"), FolderUse::New).unwrap_err();
    assert_eq!(error.to_string(), "cannot create /proc/new");
}

#[test]
fn a_file_is_replaced_whole() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.json");
    write_atomically(&path, |out| out.write_all(b"one")).unwrap();
    write_atomically(&path, |out| out.write_all(b"two")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(names(folder.path()), ["state.json"]);
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_rest() {
    let folder = TempDir::new().unwrap();
    put(&folder, &["adapters.safetensors"]);
    let path = folder.path().join("adapters.safetensors");
    let error = write_atomically(&path, |out| {
        out.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    })
    .unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write {}", path.display()));
    assert_eq!(error.hint().as_deref(), Some("free some space; what was saved before is untouched"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(folder.path()), ["adapters.safetensors"]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_full_device_is_seen_as_a_full_disk() {
    let folder = TempDir::new().unwrap();
    put(&folder, &["a"]);
    let path = folder.path().join("a");
    let error = write_atomically(&path, |_| File::create("/dev/full")?.write_all(b"x")).unwrap_err();
    assert!(error.hint().unwrap().contains("free some space"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

#[test]
fn a_target_that_cannot_be_replaced_leaves_no_rest() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    assert!(write_atomically(&folder.path().join("a"), |out| out.write_all(b"x")).is_err());
    assert_eq!(names(folder.path()), ["a"]);
}
