//! Progress for people: `Iter N: …` lines as mlx-lm printed them, with a bar below on a terminal.
//!
//! The lines go to standard output, where scripts look for them; the bar and notes go to standard error.

use std::io::{IsTerminal, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::metrics::{PreferenceMetrics, TrainRecord, ValidRecord};

/// Prints the progress of one run.
pub struct Reporter {
    lines: Box<dyn Write>,
    notes: Box<dyn Write>,
    bar: Option<ProgressBar>,
}

impl Reporter {
    /// A reporter on standard output, with a bar when both standard streams are a terminal. `total` and `done` count
    /// optimizer steps.
    pub fn on_terminal(total: u64, done: u64) -> Self {
        let terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let bar = terminal.then(|| new_bar(total, done));
        Self { lines: Box::new(std::io::stdout()), notes: Box::new(std::io::stderr()), bar }
    }

    /// A reporter without a bar that writes to the given places.
    pub fn to(lines: Box<dyn Write>, notes: Box<dyn Write>) -> Self {
        Self { lines, notes, bar: None }
    }

    /// A step is done; moves the bar.
    pub fn step(&mut self, step: u64, loss: f64) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("loss {}", fixed(loss)));
            bar.set_position(step);
        }
    }

    /// Prints a report of training steps.
    pub fn train(&mut self, record: &TrainRecord) {
        let mut line = format!(
            "Iter {}: Train loss {}, Learning Rate {}, It/sec {}, Tokens/sec {}, Trained Tokens {}, Peak mem {} GB",
            record.iteration,
            fixed(record.train_loss),
            exponent(record.learning_rate),
            fixed(record.iterations_per_second),
            fixed(record.tokens_per_second),
            record.trained_tokens,
            fixed(record.peak_memory),
        );
        line.push_str(&preference(record.preference.as_ref()));
        self.line(&line);
    }

    /// Prints a validation.
    pub fn valid(&mut self, record: &ValidRecord) {
        let (loss, time) = (fixed(record.val_loss), fixed(record.val_time));
        let line = format!("Iter {}: Val loss {loss}, Val took {time}s", record.iteration);
        self.line(&(line + &preference(record.preference.as_ref())));
    }

    /// Prints that the adapter was saved, to `adapter` and to the numbered `checkpoint`.
    pub fn saved(&mut self, iteration: u64, adapter: &Path, checkpoint: &Path) {
        let (adapter, checkpoint) = (adapter.display(), checkpoint.display());
        self.line(&format!("Iter {iteration}: Saved adapter weights to {adapter} and {checkpoint}."));
    }

    /// Prints a line of results.
    pub fn line(&mut self, line: &str) {
        print_line(self.bar.as_ref(), &mut self.lines, line);
    }

    /// Prints a remark beside the results.
    pub fn note(&mut self, note: &str) {
        print_line(self.bar.as_ref(), &mut self.notes, note);
    }

    /// Takes the bar away.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.finish();
    }
}

fn new_bar(total: u64, done: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "{bar:30} {pos}/{len} [{elapsed} < {eta}] {msg}";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_position(done);
    // The rate of a resumed run is that of its own steps.
    bar.reset_eta();
    bar
}

/// A closed pipe (`| head`) must not end a training, so failures to print are passed over.
fn print_line(bar: Option<&ProgressBar>, out: &mut Box<dyn Write>, line: &str) {
    let print = || {
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    };
    match bar {
        Some(bar) => bar.suspend(print),
        None => {
            let mut print = print;
            print();
        }
    }
}

fn preference(metrics: Option<&PreferenceMetrics>) -> String {
    metrics.map_or_else(String::new, |metrics| {
        let (accuracy, margin) = (fixed(metrics.rewards_accuracies), fixed(metrics.rewards_margins));
        format!(", Accuracy {accuracy}, Margin {margin}")
    })
}

/// Three decimals as Python prints them.
fn fixed(number: f64) -> String {
    if number.is_nan() { "nan".to_owned() } else { format!("{number:.3}") }
}

/// `1.000e-05`, as Python prints it.
fn exponent(number: f64) -> String {
    let text = format!("{number:.3e}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
            format!("{digits}e{sign}{power:0>2}")
        }
        None => text.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Rc<RefCell<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Sink {
        fn text(&self) -> String {
            String::from_utf8(self.0.borrow().clone()).unwrap()
        }
    }

    fn record() -> TrainRecord {
        TrainRecord {
            iteration: 10,
            train_loss: 2.5861,
            learning_rate: 1e-5,
            iterations_per_second: 1.4256,
            tokens_per_second: 251.6222,
            trained_tokens: 1764,
            peak_memory: 31.7531,
            grad_norm: 0.5,
            epoch: 0.1,
            skipped_steps: 0,
            preference: None,
        }
    }

    #[test]
    fn lines_are_those_that_scripts_look_for() {
        let (lines, notes) = (Sink::default(), Sink::default());
        let mut reporter = Reporter::to(Box::new(lines.clone()), Box::new(notes.clone()));
        reporter.valid(&ValidRecord { iteration: 1, val_loss: 3.495, val_time: 2.509, preference: None });
        reporter.step(10, 2.5);
        reporter.train(&record());
        let (adapter, checkpoint) = ("adapters/adapters.safetensors", "adapters/0000100_adapters.safetensors");
        reporter.saved(100, Path::new(adapter), Path::new(checkpoint));
        reporter.note("3 rows dropped");
        assert_eq!(
            lines.text(),
            "Iter 1: Val loss 3.495, Val took 2.509s\n\
             Iter 10: Train loss 2.586, Learning Rate 1.000e-05, It/sec 1.426, Tokens/sec 251.622, \
             Trained Tokens 1764, Peak mem 31.753 GB\n\
             Iter 100: Saved adapter weights to adapters/adapters.safetensors and \
             adapters/0000100_adapters.safetensors.\n"
        );
        assert_eq!(notes.text(), "3 rows dropped\n");
    }

    #[test]
    fn preference_runs_show_accuracy_and_margin_at_the_end() {
        let lines = Sink::default();
        let mut reporter = Reporter::to(Box::new(lines.clone()), Box::new(Sink::default()));
        let metrics = PreferenceMetrics { rewards_accuracies: 0.75, rewards_margins: 0.1234, ..Default::default() };
        reporter.train(&TrainRecord { preference: Some(metrics), ..record() });
        assert!(lines.text().ends_with("Peak mem 31.753 GB, Accuracy 0.750, Margin 0.123\n"), "{}", lines.text());
    }

    #[test]
    fn numbers_look_as_python_prints_them() {
        assert_eq!(
            [1e-5, 2e-4, 1.0, 12345.0, 0.0].map(exponent),
            ["1.000e-05", "2.000e-04", "1.000e+00", "1.234e+04", "0.000e+00"]
        );
        assert_eq!([f64::NAN, f64::INFINITY, -1.0].map(fixed), ["nan", "inf", "-1.000"]);
    }

    #[test]
    fn a_closed_pipe_does_not_end_the_run() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
        }
        let notes = Sink::default();
        let mut reporter = Reporter::to(Box::new(Closed), Box::new(notes.clone()));
        reporter.line("lost");
        reporter.note("still here");
        assert_eq!(notes.text(), "still here\n");
    }
}
