//! Rows → token ids with a loss mask → ordered batches. Host vectors only: nothing here knows a model.

pub mod dataset;
pub mod encode;
pub mod encoder;
pub mod inspect;
pub mod jsonl;
pub mod order;
pub mod preference;
pub mod report;
pub mod row;

pub use dataset::{Dataset, Examples};
pub use encode::{EncodeOptions, Example};
pub use encoder::TextEncoder;
pub use preference::PreferenceExample;
pub use report::DataReport;
