//! Errors: the first cause survives, nothing old is blamed, counts are checked.

use mlx_rs_core::transforms::{self, Checkpoint, Compiled, CustomVjp};
use mlx_rs_core::{Array, Error, ErrorKind, Result, ops};

fn vector() -> Result<Array> {
    Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])
}

fn mine() -> Error {
    Error::new(ErrorKind::Unsupported, "my_op", "my reason")
}

fn failing(_: &[Array]) -> Result<Vec<Array>> {
    Err(mine())
}

#[test]
fn an_error_of_mlx_is_a_result_and_not_the_end_of_the_process() -> Result<()> {
    let error = ops::matmul(&vector()?, &Array::from_slice(&[1.0f32; 8], &[4, 2])?).unwrap_err();
    assert_eq!((error.kind, error.op), (ErrorKind::Mlx, "matmul"));
    assert!(error.message.contains("(4,2)"), "{error}");
    assert!(!error.message.contains(".cpp"), "the build machine's path helps nobody: {error}");
    Ok(())
}

#[test]
fn each_failure_reports_its_own_message() -> Result<()> {
    let reshape = vector()?.reshape(&[2]).unwrap_err();
    let matmul = ops::matmul(&vector()?, &Array::from_slice(&[1.0f32; 8], &[4, 2])?).unwrap_err();
    assert!(reshape.message.contains("reshape") && matmul.message.contains("matmul"), "{reshape} / {matmul}");
    assert!(ops::square(&vector()?).is_ok());
    Ok(())
}

#[test]
fn an_error_inside_a_function_keeps_kind_op_and_message_through_every_transform() -> Result<()> {
    let x = [Array::scalar(1.0f32)?];
    let first_of = |result: Result<Vec<Array>>| result.unwrap_err();
    assert_eq!(transforms::value_and_grad(failing, &[0], &x).unwrap_err(), mine());
    assert_eq!(transforms::vjp(failing, &x, &x).unwrap_err(), mine());
    assert_eq!(transforms::jvp(failing, &x, &x).unwrap_err(), mine());
    assert_eq!(first_of(Checkpoint::new(failing)?.call(&x)), mine());
    assert_eq!(first_of(Compiled::new(failing, false)?.call(&x)), mine());
    let custom = CustomVjp::new(failing, |_, _, _| Err(mine()))?;
    assert_eq!(first_of(custom.call(&x)), mine());
    let custom = CustomVjp::new(|x| Ok(x.to_vec()), |_, _, _| Err(mine()))?;
    assert_eq!(first_of(transforms::grad(|x| custom.call(x), &[0], &x)), mine());
    Ok(())
}

#[test]
fn a_failure_of_mlx_inside_nested_functions_comes_out_as_itself() -> Result<()> {
    let inner = Checkpoint::new(|x| Ok(vec![x[0].reshape(&[7])?]))?;
    let error = transforms::grad(|x| inner.call(x), &[0], &[vector()?]).unwrap_err();
    assert_eq!((error.kind, error.op), (ErrorKind::Mlx, "reshape"));
    Ok(())
}

#[test]
fn an_error_that_a_function_handles_itself_is_forgotten() -> Result<()> {
    let tolerant = |x: &[Array]| {
        assert_eq!(transforms::grad(failing, &[0], x).unwrap_err(), mine());
        Ok(vec![ops::square(&x[0])?])
    };
    assert_eq!(transforms::grad(tolerant, &[0], &[Array::scalar(3.0f32)?])?[0].item::<f32>()?, 6.0);
    // The outer failure is MLX's own, not the parked one of the handled error.
    let then_wrong = |x: &[Array]| {
        let _ = transforms::grad(failing, &[0], x);
        Ok(vec![x[0].reshape(&[5])?])
    };
    assert_eq!(transforms::grad(then_wrong, &[0], &[Array::scalar(3.0f32)?]).unwrap_err().op, "reshape");
    Ok(())
}

#[test]
fn value_and_grad_names_what_is_wrong_with_its_arguments() -> Result<()> {
    let x = [Array::scalar(1.0f32)?];
    let same = |x: &[Array]| Ok(x.to_vec());
    let message = |argnums: &[i32]| transforms::value_and_grad(same, argnums, &x).unwrap_err().message;
    assert_eq!(message(&[]), "argnums is empty: nothing to differentiate by");
    assert_eq!(message(&[1]), "argnums has 1, but there are 1 inputs");
    assert_eq!(message(&[-1]), "argnums has -1, but there are 1 inputs");
    Ok(())
}

#[test]
fn a_loss_that_is_missing_or_no_floating_scalar_is_refused() -> Result<()> {
    let refusal = |f: fn(&[Array]) -> Result<Vec<Array>>| {
        let error = transforms::value_and_grad(f, &[0], &[vector()?]).unwrap_err();
        assert_eq!(error.op, "value_and_grad");
        Ok::<_, Error>((error.kind, error.message))
    };
    assert_eq!(
        refusal(|_| Ok(vec![]))?,
        (ErrorKind::Closure, "the function returned no arrays, wanted a scalar loss first".to_owned())
    );
    assert_eq!(
        refusal(|x| Ok(x.to_vec()))?,
        (ErrorKind::Closure, "the first output has shape [3], wanted a scalar loss".to_owned())
    );
    assert_eq!(
        refusal(|x| Ok(vec![ops::argmax(&x[0], None, false)?]))?,
        (ErrorKind::Closure, "the first output is uint32, wanted a floating loss".to_owned())
    );
    Ok(())
}

#[test]
fn another_number_of_cotangents_than_outputs_is_refused() -> Result<()> {
    let two = |x: &[Array]| Ok(vec![ops::square(&x[0])?, x[0].clone()]);
    let x = Array::scalar(1.0f32)?;
    for cotangents in [vec![], vec![x.clone()], vec![x.clone(), x.clone(), x.clone()]] {
        let error = transforms::vjp(two, std::slice::from_ref(&x), &cotangents).unwrap_err();
        assert_eq!(error.message, format!("expected 2 cotangents, got {}", cotangents.len()));
    }
    let error = transforms::jvp(two, std::slice::from_ref(&x), &[]).unwrap_err();
    assert_eq!(error.message, "expected 1 tangents, got 0");
    Ok(())
}

#[test]
fn a_rule_with_the_wrong_number_shape_or_dtype_of_gradients_is_refused() -> Result<()> {
    type Rule = fn(&[Array]) -> Result<Vec<Array>>;
    let refusal = |rule: Rule| {
        let custom = CustomVjp::new(|x| Ok(vec![ops::sum(&x[0], None, false)?]), move |x, _, _| rule(x))?;
        let error = transforms::grad(|x| custom.call(x), &[0], &[vector()?]).unwrap_err();
        assert_eq!((error.kind, error.op), (ErrorKind::Closure, "custom_vjp"));
        Ok::<_, Error>(error.message)
    };
    assert_eq!(refusal(|_| Ok(vec![]))?, "the rule returned 0 gradients for 1 primals");
    assert_eq!(refusal(|x| Ok(vec![x[0].clone(), x[0].clone()]))?, "the rule returned 2 gradients for 1 primals");
    assert_eq!(
        refusal(|x| Ok(vec![ops::sum(&x[0], None, false)?]))?,
        "gradient 0 is Array([], float32), but its primal is Array([3], float32)"
    );
    assert_eq!(
        refusal(|x| Ok(vec![x[0].astype(mlx_rs_core::Dtype::Float16)?]))?,
        "gradient 0 is Array([3], float16), but its primal is Array([3], float32)"
    );
    Ok(())
}
