use super::*;

fn config(bias_correction: bool, weight_decay: f64) -> AdamConfig {
    AdamConfig { betas: (0.9, 0.999), eps: 1e-8, weight_decay, bias_correction }
}

fn one(value: f32) -> Array {
    Array::from_slice(&[value], &[1]).unwrap()
}

/// The parameter after each of `steps` steps with the constant gradient `g`.
fn walk(config: AdamConfig, p: f32, g: f32, learning_rate: f64, steps: usize) -> Vec<f32> {
    let (mut adam, mut parameters) = (Adam::new(config, &[one(p)]).unwrap(), vec![one(p)]);
    (0..steps)
        .map(|_| {
            (adam, parameters) = adam.update(&parameters, &[one(g)], learning_rate).unwrap();
            parameters[0].item::<f32>().unwrap()
        })
        .collect()
}

fn near(got: f32, want: f64) {
    assert!((f64::from(got) - want).abs() <= 1e-6 * want.abs().max(1.0), "got {got}, wanted {want}");
}

#[test]
fn the_first_corrected_step_is_the_learning_rate_whatever_the_gradients_size() {
    near(walk(config(true, 0.0), 1.0, 2.0, 0.1, 1)[0], 0.9);
    near(walk(config(true, 0.0), 1.0, -2e-3, 0.1, 1)[0], 1.1);
}

#[test]
fn without_correction_the_first_step_is_too_long_by_the_ratio_of_the_moments() {
    // (1 − β₁)/sqrt(1 − β₂) = 0.1/sqrt(0.001) = 3.16228
    near(walk(config(false, 0.0), 1.0, 2.0, 0.1, 1)[0], 0.683_772_23);
}

#[test]
fn decay_alone_shrinks_by_learning_rate_times_decay() {
    near(walk(config(true, 0.5), 10.0, 0.0, 0.1, 1)[0], 9.5);
    // Decoupled: the gradient's own step is not decayed. 10·0.95 − 0.1 = 9.4.
    near(walk(config(true, 0.5), 10.0, 2.0, 0.1, 1)[0], 9.4);
}

/// Algorithm 2 of Loshchilov and Hutter in f64 scalars.
fn reference(config: AdamConfig, mut p: f64, gradients: &[f64], learning_rate: f64) -> f64 {
    let (b1, b2) = config.betas;
    let (mut m, mut v) = (0.0, 0.0);
    for (index, g) in gradients.iter().enumerate() {
        let t = index as i32 + 1;
        m = b1 * m + (1.0 - b1) * g;
        v = b2 * v + (1.0 - b2) * g * g;
        let (c1, c2) = if config.bias_correction { (1.0 - b1.powi(t), 1.0 - b2.powi(t)) } else { (1.0, 1.0) };
        p -= learning_rate * config.weight_decay * p;
        p -= learning_rate * (m / c1) / ((v / c2).sqrt() + config.eps);
    }
    p
}

#[test]
fn fifty_steps_of_changing_gradients_follow_the_papers_algorithm() {
    let gradients: Vec<f64> = (0..50).map(|t| (f64::from(t) * 0.7).sin() * 3.0 + 0.5).collect();
    for bias_correction in [true, false] {
        let config = config(bias_correction, 0.1);
        let (mut adam, mut parameters) = (Adam::new(config, &[one(1.5)]).unwrap(), vec![one(1.5)]);
        for g in &gradients {
            (adam, parameters) = adam.update(&parameters, &[one(*g as f32)], 0.01).unwrap();
        }
        assert_eq!(adam.step(), 50);
        let want = reference(config, 1.5, &gradients, 0.01);
        let got = f64::from(parameters[0].item::<f32>().unwrap());
        assert!((got - want).abs() < 2e-6, "bias correction {bias_correction}: got {got}, wanted {want}");
    }
}

#[test]
fn a_quadratic_is_descended_to_its_minimum() {
    let (mut adam, mut parameters) = (Adam::new(config(true, 0.0), &[one(5.0)]).unwrap(), vec![one(5.0)]);
    for _ in 0..400 {
        // f(p) = (p − 1)²
        let gradient = ((&parameters[0] - 1.0).unwrap() * one(2.0)).unwrap();
        (adam, parameters) = adam.update(&parameters, &[gradient], 0.1).unwrap();
        mlx_rs_core::transforms::eval(parameters.iter().chain(adam.arrays())).unwrap();
    }
    let end = parameters[0].item::<f32>().unwrap();
    assert!((end - 1.0).abs() < 1e-2, "{end}");
}

#[test]
fn each_parameter_has_moments_of_its_own() {
    let parameters = [one(1.0), Array::from_slice(&[1.0f32, 1.0, 1.0], &[3]).unwrap()];
    let gradients = [one(2.0), Array::from_slice(&[0.0f32, -1.0, 4.0], &[3]).unwrap()];
    let (adam, moved) =
        Adam::new(config(true, 0.0), &parameters).unwrap().update(&parameters, &gradients, 0.1).unwrap();
    near(moved[0].item::<f32>().unwrap(), 0.9);
    let rest = moved[1].to_vec::<f32>().unwrap();
    [1.0, 1.1, 0.9].into_iter().zip(&rest).for_each(|(want, got)| near(*got, want));
    let (first, second) = adam.moments();
    near(first[0].item::<f32>().unwrap(), 0.2);
    near(second[0].item::<f32>().unwrap(), 0.004);
}

#[test]
fn an_update_leaves_the_old_state_valid_and_a_resumed_one_goes_on_alike() {
    let start = Adam::new(config(true, 0.01), &[one(1.0)]).unwrap();
    let (after_one, p1) = start.update(&[one(1.0)], &[one(2.0)], 0.1).unwrap();
    let (_, again) = start.update(&[one(1.0)], &[one(2.0)], 0.1).unwrap();
    assert_eq!((start.step(), after_one.step()), (0, 1));
    assert_eq!(p1[0].item::<f32>().unwrap(), again[0].item::<f32>().unwrap());
    let (first, second) = after_one.moments();
    let resumed = start.resumed(after_one.step(), first.to_vec(), second.to_vec());
    let (_, straight) = after_one.update(&p1, &[one(-1.0)], 0.1).unwrap();
    let (two, through_file) = resumed.update(&p1, &[one(-1.0)], 0.1).unwrap();
    assert_eq!(two.step(), 2);
    assert_eq!(straight[0].item::<f32>().unwrap(), through_file[0].item::<f32>().unwrap());
}
