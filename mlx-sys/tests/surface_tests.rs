//! The bound surface: a reviewable list of it, and the proof that it is all there is.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const BINDINGS: &str = include_str!(concat!(env!("OUT_DIR"), "/bindings.rs"));
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/surface.txt");

/// Left unbound on purpose, see `build/bind.rs`.
const NOT_BOUND: [&str; 4] =
    ["mlx_array_item_float16", "mlx_array_item_bfloat16", "mlx_array_data_float16", "mlx_array_data_bfloat16"];

/// Every bound function and constant, one line each, sorted.
fn surface(bindings: &str) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for start in ["pub fn ", "pub const "] {
        for (at, _) in bindings.match_indices(start) {
            let Some(item) = bindings[at..].split(';').next() else { continue };
            let line = item.trim_start_matches("pub ").split_whitespace().collect::<Vec<_>>().join(" ");
            let line = line.replace("::std::os::raw::", "").replace("( ", "(").replace(", )", ")");
            if line.contains("mlx_") || line.contains("MLX_") {
                lines.insert(line);
            }
        }
    }
    lines
}

#[test]
fn the_bound_surface_is_the_one_on_record() {
    let current = surface(BINDINGS);
    if std::env::var_os("UPDATE_SURFACE").is_some() {
        let text: String = current.iter().map(|line| format!("{line}\n")).collect();
        fs::write(SNAPSHOT, text).expect("the snapshot can be written");
        return;
    }
    let recorded = fs::read_to_string(SNAPSHOT).expect("tests/surface.txt can be read");
    let recorded: BTreeSet<String> = recorded.lines().map(String::from).collect();
    let mut difference = String::new();
    for line in recorded.symmetric_difference(&current) {
        let sign = if recorded.contains(line) { '-' } else { '+' };
        let _ = writeln!(difference, "{sign} {line}");
    }
    assert!(
        difference.is_empty(),
        "the bound surface changed:\n{difference}\nread it, then accept it with: \
         UPDATE_SURFACE=1 cargo test -p mlx-sys surface"
    );
}

/// The names of the functions that a C header declares: a name before `(`, outside other parentheses.
fn declared(header: &str) -> BTreeSet<String> {
    let mut text = String::new();
    let mut rest = header;
    while let Some((before, after)) = rest.split_once("/*") {
        text.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let code: String = text
        .replace("\\\n", " ")
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .map(|line| format!("{}\n", line.split("//").next().unwrap_or_default()))
        .collect();

    let (mut names, mut word, mut depth) = (BTreeSet::new(), String::new(), 0_usize);
    for c in code.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => {
                if word.ends_with(' ') {
                    word.clear();
                }
                word.push(c);
                continue;
            }
            '(' => {
                let name = word.trim_end();
                if depth == 0 && name.trim_start_matches('_').starts_with("mlx_") {
                    names.insert(name.to_owned());
                }
                depth += 1;
            }
            ')' => depth = depth.saturating_sub(1),
            _ if c.is_whitespace() && !word.is_empty() => {
                word.push(' ');
                continue;
            }
            _ => {}
        }
        word.clear();
    }
    names
}

#[test]
fn a_headers_declarations_are_found_and_nothing_else() {
    let header = "/* mlx_in_comment( */\n#define mlx_macro(x) _mlx_f(x)\nint mlx_one(mlx_array a,\n  void (*mlx_cb)(int));\n\
                  typedef void (*mlx_handler)(int); // mlx_no(\nvoid\n_mlx_two (void);";
    let found: Vec<String> = declared(header).into_iter().collect();
    assert_eq!(found, ["_mlx_two", "mlx_one"]);
}

#[test]
fn every_function_of_the_headers_is_bound() {
    let folder = Path::new(env!("MLX_SYS_C_HEADERS"));
    let mut declared_names = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("mlx-c's headers can be listed") {
        let path = entry.expect("an entry of the folder").path();
        if path.extension().is_some_and(|ext| ext == "h") {
            declared_names.append(&mut declared(&fs::read_to_string(&path).expect("a header can be read")));
        }
    }
    for name in NOT_BOUND {
        assert!(declared_names.remove(name), "{name} is no longer in the headers: drop it from NOT_BOUND");
    }
    let bound: BTreeSet<String> = surface(BINDINGS)
        .iter()
        .filter_map(|line| Some(line.strip_prefix("fn ")?.split('(').next()?.to_owned()))
        .collect();
    let unbound: Vec<&String> = declared_names.difference(&bound).collect();
    let unknown: Vec<&String> = bound.difference(&declared_names).collect();
    assert!(unbound.is_empty() && unknown.is_empty(), "unbound: {unbound:?}\nbound but not declared: {unknown:?}");
    assert_eq!(bound.len(), 670);
}
