//! How a setting's text or TOML value becomes its Rust type, and back.

use std::path::PathBuf;

use toml::Value;

/// A type that a setting can have.
pub trait Setting: Sized {
    /// Whether a relative value in a file is relative to that file's folder.
    const IS_PATH: bool = false;

    /// What a value of this type looks like, e.g. `an integer of at least 0`.
    fn wanted() -> String;

    /// Reads a TOML value; `None` when it has another type.
    fn from_value(value: &Value) -> Option<Self>;

    /// The TOML value, or `None` when the setting is absent.
    fn to_value(&self) -> Option<Value>;

    /// Reads a text from the environment or the command line: TOML, or a string without its quotes.
    fn from_text(text: &str) -> Option<Self> {
        parse_toml(text)
            .and_then(|value| Self::from_value(&value))
            .or_else(|| Self::from_value(&Value::String(text.to_owned())))
    }
}

fn parse_toml(text: &str) -> Option<Value> {
    // A line break would let the text define further keys.
    if text.contains('\n') {
        return None;
    }
    toml::from_str::<toml::Table>(&format!("value = {text}")).ok()?.remove("value")
}

impl Setting for String {
    fn wanted() -> String {
        "a string".to_owned()
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::String(self.clone()))
    }
}

impl Setting for PathBuf {
    const IS_PATH: bool = true;

    fn wanted() -> String {
        "a path (a string)".to_owned()
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_str().map(PathBuf::from)
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::String(self.to_string_lossy().into_owned()))
    }
}

/// Where a model comes from: a folder, a `.gguf` file, or a package as `pip:NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelSpec(pub String);

impl ModelSpec {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for ModelSpec {
    const IS_PATH: bool = true;

    fn wanted() -> String {
        "a folder, a .gguf file or pip:NAME (a string)".to_owned()
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_str().map(|text| Self(text.to_owned()))
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::String(self.0.clone()))
    }
}

impl Setting for bool {
    fn wanted() -> String {
        "true or false".to_owned()
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_bool()
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Boolean(*self))
    }
}

impl Setting for u64 {
    fn wanted() -> String {
        "an integer of at least 0".to_owned()
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_integer().and_then(|number| u64::try_from(number).ok())
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX)))
    }
}

impl Setting for i64 {
    fn wanted() -> String {
        "an integer".to_owned()
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_integer()
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Integer(*self))
    }
}

impl Setting for f64 {
    fn wanted() -> String {
        "a finite number".to_owned()
    }

    fn from_value(value: &Value) -> Option<Self> {
        let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64))?;
        number.is_finite().then_some(number)
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Float(*self))
    }
}

impl Setting for (f64, f64) {
    fn wanted() -> String {
        "a list of two numbers".to_owned()
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value.as_array()?.as_slice() {
            [first, second] => Some((f64::from_value(first)?, f64::from_value(second)?)),
            _ => None,
        }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Array(vec![Value::Float(self.0), Value::Float(self.1)]))
    }
}

impl Setting for Vec<String> {
    fn wanted() -> String {
        "a list of strings".to_owned()
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(String::from_value).collect()
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Array(self.iter().cloned().map(Value::String).collect()))
    }

    /// A TOML list, or words between commas.
    fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.starts_with('[') {
            return Self::from_value(&parse_toml(text)?);
        }
        let words = text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty());
        Some(words.collect())
    }
}

impl<T: Setting> Setting for Option<T> {
    const IS_PATH: bool = T::IS_PATH;

    fn wanted() -> String {
        T::wanted()
    }

    fn from_value(value: &Value) -> Option<Self> {
        T::from_value(value).map(Some)
    }

    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }

    /// An empty text takes the setting away.
    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { T::from_text(text).map(Some) }
    }
}

/// Defines an enum whose variants are the words that a setting can be.
macro_rules! words {
    ($(#[doc = $doc:literal])+ $Name:ident { $( $(#[doc = $variant_doc:literal])+ $Variant:ident = $word:literal, )+ }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $Name { $( $(#[doc = $variant_doc])+ $Variant, )+ }

        impl $Name {
            /// The word in the configuration.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$Variant => $word, )+ }
            }
        }

        impl Setting for $Name {
            fn wanted() -> String {
                let words: &[&str] = &[$( concat!("\"", $word, "\"") ),+];
                match words {
                    [head @ .., last] if !head.is_empty() => format!("{} or {last}", head.join(", ")),
                    _ => words.concat(),
                }
            }

            fn from_value(value: &Value) -> Option<Self> {
                match value.as_str()? {
                    $( $word => Some(Self::$Variant), )+
                    _ => None,
                }
            }

            fn to_value(&self) -> Option<Value> {
                Some(Value::String(self.as_str().to_owned()))
            }
        }
    };
}

words! {
    /// Shape of the rows.
    Format {
        /// By each row's keys.
        Auto = "auto",
        /// `messages` (or `conversations`).
        Messages = "messages",
        /// `prompt` and `completion`.
        Completion = "completion",
        /// `text`.
        Text = "text",
        /// `chosen` and `rejected`, with or without `prompt`.
        Preference = "preference",
    }
}

words! {
    /// Which tokens of a conversation are trained.
    TrainOn {
        /// Every assistant turn.
        AllAssistant = "all_assistant",
        /// The last assistant turn.
        Last = "last",
        /// Every token, the user's too.
        All = "all",
    }
}

words! {
    /// Order of the rows in an epoch.
    Order {
        /// A new permutation each epoch.
        Shuffle = "shuffle",
        /// Batches of rows of like length, drawn anew each epoch.
        LengthGrouped = "length_grouped",
        /// The file's order.
        Sequential = "sequential",
    }
}

words! {
    /// Whether plain prompts and completions go through the chat template.
    ChatTemplateUse {
        /// When the model has one.
        Auto = "auto",
        /// Never: prompt and completion are joined as they are.
        Never = "never",
    }
}

words! {
    /// Training method.
    MethodName {
        /// Supervised fine-tuning.
        Sft = "sft",
        /// Odds ratio preference optimisation.
        Orpo = "orpo",
    }
}

words! {
    /// Tokens of ORPO's likelihood term.
    SftScope {
        /// Prompt and chosen response.
        Full = "full",
        /// The chosen response.
        Response = "response",
    }
}

words! {
    /// Optimizer.
    OptimizerName {
        /// Adam with decoupled weight decay.
        Adamw = "adamw",
        /// Adam.
        Adam = "adam",
    }
}

words! {
    /// Learning rate after the warm-up.
    ScheduleName {
        /// Stays at the peak.
        Constant = "constant",
        /// Half a cosine down to the minimum.
        Cosine = "cosine",
        /// A straight line down to the minimum.
        Linear = "linear",
    }
}

words! {
    /// Dtype of the forward and backward pass.
    ComputeDtype {
        /// Chosen for the device.
        Auto = "auto",
        /// 32-bit floats.
        F32 = "f32",
        /// bfloat16.
        Bf16 = "bf16",
    }
}
