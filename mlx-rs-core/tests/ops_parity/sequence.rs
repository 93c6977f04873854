//! Random numbers without a key: the thread's own sequence.

use mlx_rs_core::{Dtype, Result, random};

fn three_numbers() -> Result<Vec<f32>> {
    random::uniform(0.0, 1.0, &[3], Dtype::Float32, None)?.to_vec()
}

#[test]
fn a_seed_restarts_the_sequence_which_splits_its_key_at_each_call() {
    random::seed(7).unwrap();
    let (first, second) = (three_numbers().unwrap(), three_numbers().unwrap());
    assert_ne!(first, second);
    random::seed(7).unwrap();
    assert_eq!(three_numbers().unwrap(), first);
    let (_, used) = random::split_pair(&random::key(7).unwrap()).unwrap();
    let by_hand = random::uniform(0.0, 1.0, &[3], Dtype::Float32, Some(&used)).unwrap();
    assert_eq!(by_hand.to_vec::<f32>().unwrap(), first);
}

#[test]
fn each_thread_has_its_own_sequence() {
    random::seed(7).unwrap();
    let first = three_numbers().unwrap();
    random::seed(7).unwrap();
    std::thread::spawn(|| random::seed(8).and_then(|()| three_numbers()).unwrap()).join().unwrap();
    assert_eq!(three_numbers().unwrap(), first);
}
