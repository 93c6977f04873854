//! The rows of `tests/ops/ops.json` and the arrays of `ops.safetensors`.

use std::collections::HashMap;
use std::path::PathBuf;

use mlx_rs_core::{Array, Dtype, ops};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::{Map, Value as Json};

use super::args::{Args, Value};

/// The table and the bytes of its arrays.
pub struct Table {
    pub rows: Vec<Row>,
    /// C functions that the table leaves out on purpose, with the reason.
    pub left_out: Map<String, Json>,
    arrays: HashMap<String, Stored>,
}

/// An array on the host: arrays of MLX stay on their thread, and each row gets fresh ones.
struct Stored {
    bytes: Vec<u8>,
    shape: Vec<i32>,
    dtype: Dtype,
}

/// One call and what came out of it.
pub struct Row {
    /// The C function without `mlx_`.
    pub op: String,
    pub case: String,
    args: Vec<Json>,
    /// The outputs, or the message of the failure.
    pub expected: Result<Vec<Output>, String>,
    pub rtol: f64,
    pub atol: f64,
}

/// One array that came out.
pub struct Output {
    pub key: String,
    pub dtype: Dtype,
}

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

impl Table {
    pub fn read() -> Self {
        let folder = workspace().join("tests/ops");
        let json = std::fs::read_to_string(folder.join("ops.json")).expect("tests/ops/ops.json can be read");
        let json: Json = serde_json::from_str(&json).expect("ops.json is JSON");
        let bytes = std::fs::read(folder.join("ops.safetensors")).expect("tests/ops/ops.safetensors can be read");
        let rows = json["rows"].as_array().expect("ops.json has rows").iter().map(Row::read).collect();
        let mut left_out = Map::new();
        for list in ["uncovered", "unsupported"] {
            left_out.extend(json[list].as_object().expect("a list of reasons").clone());
        }
        let tensors = SafeTensors::deserialize(&bytes).expect("ops.safetensors is whole");
        let arrays = tensors.iter().map(|(key, tensor)| (key.to_owned(), Stored::read(&tensor))).collect();
        Self { rows, left_out, arrays }
    }

    /// The arguments of a row as arrays and numbers.
    pub fn args(&self, row: &Row) -> Args {
        Args(row.args.iter().map(|arg| self.value(arg)).collect())
    }

    fn value(&self, arg: &Json) -> Value {
        let Some(object) = arg.as_object() else {
            assert!(arg.is_null(), "an argument is an object or null, found {arg}");
            return Value::Absent;
        };
        let (kind, value) = object.iter().next().expect("an argument has a kind");
        match kind.as_str() {
            "array" => Value::Array(self.viewed(text(value), object.get("view"))),
            "arrays" => Value::Arrays(list(value).iter().map(|key| self.array(text(key))).collect()),
            "ints" => Value::Ints(list(value).iter().map(int).collect()),
            "int" => Value::Int(
                [value.as_i64().expect("an int")],
                i32::try_from(value.as_i64().unwrap_or(0)).ok().map(|v| [v]),
            ),
            "float" => Value::Float(float(value)),
            "bool" => Value::Bool(value.as_bool().expect("a bool")),
            "str" => Value::Text(text(value).to_owned()),
            "dtype" => Value::Dtype(dtype(text(value))),
            other => panic!("unknown kind of argument {other:?}"),
        }
    }

    /// A stored array, or a strided view of it that is not contiguous.
    fn viewed(&self, key: &str, view: Option<&Json>) -> Array {
        let array = self.array(key);
        let Some(view) = view else { return array };
        if let Some(axes) = view.get("transpose") {
            let axes: Vec<i32> = list(axes).iter().map(int).collect();
            return ops::transpose(&array, Some(&axes)).expect("the view's axes fit");
        }
        let mut strides = vec![1; array.ndim()];
        *strides.last_mut().expect("a stepped array has an axis") = int(&view["step"]);
        let stop = array.shape().to_vec();
        ops::slice(&array, &vec![0; stop.len()], &stop, &strides).expect("the view's step fits")
    }

    /// The array stored under `key`.
    pub fn array(&self, key: &str) -> Array {
        let stored = self.arrays.get(key).unwrap_or_else(|| panic!("ops.safetensors has no {key}"));
        Array::from_bytes(&stored.bytes, &stored.shape, stored.dtype).expect("bytes that fit their shape")
    }
}

impl Stored {
    fn read(tensor: &TensorView) -> Self {
        let shape = tensor.shape().iter().map(|&dim| i32::try_from(dim).expect("a small array")).collect();
        Self { bytes: tensor.data().to_vec(), shape, dtype: stored_dtype(tensor.dtype()) }
    }
}

impl Row {
    fn read(json: &Json) -> Self {
        let expected = if json.get("error").is_some() {
            Err(json["message"].as_str().unwrap_or_default().to_owned())
        } else {
            let keys = list(&json["outputs"]).iter().map(|key| text(key).to_owned());
            let dtypes = list(&json["dtypes"]).iter().map(|name| dtype(text(name)));
            Ok(keys.zip(dtypes).map(|(key, dtype)| Output { key, dtype }).collect())
        };
        Self {
            op: text(&json["op"]).to_owned(),
            case: text(&json["case"]).to_owned(),
            args: list(&json["args"]).clone(),
            expected,
            rtol: json["rtol"].as_f64().unwrap_or(0.0),
            atol: json["atol"].as_f64().unwrap_or(0.0),
        }
    }
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_else(|| panic!("wanted a string, found {json}"))
}

fn list(json: &Json) -> &Vec<Json> {
    json.as_array().unwrap_or_else(|| panic!("wanted a list, found {json}"))
}

fn int(json: &Json) -> i32 {
    json.as_i64().and_then(|value| i32::try_from(value).ok()).unwrap_or_else(|| panic!("wanted an i32, found {json}"))
}

/// A number, or the text of an infinity, which JSON has no number for.
fn float(json: &Json) -> f64 {
    json.as_f64().or_else(|| json.as_str()?.parse().ok()).unwrap_or_else(|| panic!("wanted a float, found {json}"))
}

fn dtype(name: &str) -> Dtype {
    Dtype::ALL
        .into_iter()
        .find(|dtype| dtype.name().trim_end_matches('_') == name)
        .unwrap_or_else(|| panic!("unknown dtype {name:?}"))
}

fn stored_dtype(dtype: safetensors::Dtype) -> Dtype {
    use safetensors::Dtype as Stored;
    match dtype {
        Stored::BOOL => Dtype::Bool,
        Stored::U8 => Dtype::Uint8,
        Stored::U16 => Dtype::Uint16,
        Stored::U32 => Dtype::Uint32,
        Stored::U64 => Dtype::Uint64,
        Stored::I8 => Dtype::Int8,
        Stored::I16 => Dtype::Int16,
        Stored::I32 => Dtype::Int32,
        Stored::I64 => Dtype::Int64,
        Stored::F16 => Dtype::Float16,
        Stored::BF16 => Dtype::Bfloat16,
        Stored::F32 => Dtype::Float32,
        Stored::F64 => Dtype::Float64,
        Stored::C64 => Dtype::Complex64,
        other => panic!("no MLX dtype for {other:?}"),
    }
}
