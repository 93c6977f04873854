//! Parity with mlx-lm 0.32.2 on MLX 0.32.2; `docs/PARITY.md` has the table.

mod accumulation;
mod adapter;
mod llama;
mod orpo;
mod orpo_formula;
mod orpo_reference;
mod smollm2;

use workspace_tests::golden;

#[test]
fn every_golden_folder_has_its_tests() {
    let mut tested: Vec<&str> = [llama::TESTED, orpo::TESTED, &["orpo_formula"]].concat();
    tested.sort_unstable();
    assert_eq!(golden::names(), tested);
}
