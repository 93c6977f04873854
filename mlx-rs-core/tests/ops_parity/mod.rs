//! Every op against Python MLX of the same version: value, output dtype, and errors.
//!
//! The rows are those of `tests/ops/` at the root of the workspace, made by `make_ops.py` there. A row names the C
//! function; `dispatch` calls ours for it. `coverage` checks that nothing of the C surface is forgotten.

mod args;
mod bad_arguments;
mod compare;
mod coverage;
mod dispatch;
mod sequence;
mod table;

use mlx_rs_core::{Array, Device, device};

use compare::difference;
use dispatch::Op;
use table::{Row, Table};

/// Runs `check` on every row that is for it, and fails with all the complaints.
fn check_rows(is_wanted: impl Fn(&Row) -> bool, check: impl Fn(&Table, &Row, Op) -> Result<(), String>) {
    let table = Table::read();
    let dispatcher = dispatch::all();
    let mut complaints = Vec::new();
    let mut checked = 0;
    for row in table.rows.iter().filter(|row| is_wanted(row)) {
        checked += 1;
        let outcome = match dispatcher.get(row.op.as_str()) {
            Some(&op) => check(&table, row, op),
            None => Err("no dispatcher".to_owned()),
        };
        if let Err(complaint) = outcome {
            complaints.push(format!("{} {}: {complaint}", row.op, row.case));
        }
    }
    assert!(checked > 100, "only {checked} rows to check");
    assert!(complaints.is_empty(), "{} of {checked} rows fail:\n{}", complaints.len(), complaints.join("\n"));
}

/// The rows come from the CPU, so they run there whatever the default device is.
fn run(table: &Table, row: &Row, op: Op) -> mlx_rs_core::Result<Vec<Array>> {
    device::with_device(Device::Cpu, || {
        // The arguments live through the evaluation, as they do in Python: MLX 0.32.2 computes `bitwise_xor` of bools
        // wrongly when it may write the result over an input.
        let args = table.args(row);
        let outputs = op(&args)?;
        mlx_rs_core::transforms::eval(&outputs)?;
        Ok(outputs)
    })
}

#[test]
fn every_op_gives_what_python_gives() {
    check_rows(
        |row| row.expected.is_ok(),
        |table, row, op| {
            let outputs = run(table, row, op).map_err(|error| format!("failed: {error}"))?;
            let expected = row.expected.as_ref().map_err(Clone::clone)?;
            if outputs.len() != expected.len() {
                return Err(format!("gave {} arrays, Python {}", outputs.len(), expected.len()));
            }
            for (index, (got, want)) in outputs.iter().zip(expected).enumerate() {
                let want_array = table.array(&want.key);
                if got.dtype() != want.dtype {
                    return Err(format!("output {index} is {}, Python's {}", got.dtype(), want.dtype));
                }
                if let Some(text) = difference(got, &want_array, row.rtol, row.atol) {
                    return Err(format!("output {index}: {text}"));
                }
            }
            Ok(())
        },
    );
}

#[test]
fn what_python_refuses_is_an_error() {
    check_rows(
        |row| row.expected.is_err(),
        |table, row, op| match run(table, row, op) {
            Err(error) if error.message.is_empty() => Err("the error has no message".to_owned()),
            Err(_) => Ok(()),
            Ok(outputs) => Err(format!("gave {outputs:?}, Python says {:?}", row.expected.as_ref().err())),
        },
    );
}
