//! The corridor: one run from its configuration to its summary. No maths here, and no other file loops over steps.

use std::path::Path;
use std::time::Instant;

use mlx_rs_core::memory;
use models::Model;
use models::lora::{Adapter, LoraSpec};
use models::source::ModelSource;

use crate::base::{self, ModelText, mlx_error, model_error};
use crate::checkpoint::{self, Checkpointer, Progress};
use crate::config::{Config, Resolved};
use crate::data::order::BatchPlan;
use crate::data::{Dataset, Examples};
use crate::error::{Result, TrainError};
use crate::fingerprint::Fingerprint;
use crate::fit;
use crate::interrupt::Interrupt;
use crate::metrics::{MetricsWriter, ValidRecord};
use crate::optimizer::Adam;
use crate::output::{self, FolderUse, RunFolder};
use crate::plan::Plan;
use crate::progress::{Guard, Now, Window};
use crate::report::Reporter;
use crate::schedule::Schedule;
use crate::step::{StepContext, StepReport, TrainState, take_step};
use crate::summary;
use crate::validate::validate;
use crate::window::Collator;

/// Trains as `resolved` says and prints through `reporter`, which is made once the number of steps is known.
///
/// # Errors
/// Whatever stage fails; what was saved before stays. [`TrainError::Interrupted`] after Ctrl-C, with the state saved.
pub fn run(resolved: &Resolved, interrupt: &Interrupt, reporter: impl FnOnce(u64, u64) -> Reporter) -> Result<()> {
    let config = &resolved.config;
    let folder = RunFolder::open(&config.output.dir, folder_use(config))?;
    let source = ModelSource::resolve(config.model.path.as_str(), Path::new(""))
        .map_err(|error| model_error("find the model", error))?;
    let text = ModelText::load(&source)?.ending_with(resolved)?;
    let data = Dataset::load(config, &text)?;
    let model = base::load_model(&source, config.train.compute_dtype)?;
    fit::check(resolved, &model, &data)?;
    let spec = Plan::lora(config);
    let adapter = Adapter::new(&model, &spec, config.train.seed).map_err(|e| model_error("attach the adapter", e))?;
    let plan = Plan::new(config, data.train.len());
    let fresh = fresh_state(config, &adapter)?;
    let fingerprint = Fingerprint::of(resolved, &source, &text, &data)?;
    let (state, progress) = if config.output.resume {
        let saved = checkpoint::load(&folder, &adapter, &fresh.optimizer, &fingerprint)?;
        folder.remove_after(saved.1.step)?;
        saved
    } else {
        folder.clear()?;
        (fresh, Progress::start(fingerprint))
    };
    output::write_atomically(&folder.path(output::CONFIG_FILE), |out| {
        out.write_all(resolved.resolved_toml().as_bytes())
    })?;
    let adapter_config = checkpoint::adapter_config(&adapter, &spec, config.model.path.as_str(), model.num_layers());
    let metrics = metrics(&folder, config, &progress)?;
    let mut session = Session {
        config,
        plan,
        reporter: reporter(plan.steps, progress.step),
        first_valid: metrics.first_valid(),
        metrics,
        checkpointer: Checkpointer::new(&folder, adapter_config, config.checkpoint.save_total_limit),
        model: &model,
        text: &text,
        adapter: &adapter,
        data: &data,
        interrupt,
        window: Window::new(),
        proven: state.clone(),
        state,
        progress,
    };
    session.introduce(&spec);
    session.train()
}

struct Session<'a> {
    config: &'a Config,
    plan: Plan,
    reporter: Reporter,
    metrics: MetricsWriter,
    checkpointer: Checkpointer<'a>,
    model: &'a Model,
    text: &'a ModelText,
    adapter: &'a Adapter,
    data: &'a Dataset,
    interrupt: &'a Interrupt,
    first_valid: Option<ValidRecord>,
    window: Window,
    /// The newest state whose parameters gave a finite loss: an update is known to be good one step later.
    proven: TrainState,
    state: TrainState,
    progress: Progress,
}

impl<'a> Session<'a> {
    fn train(&mut self) -> Result<()> {
        // The base model's answers: a fresh adapter changes nothing, a resumed one would.
        let first_answers = self.answers(self.model)?;
        if self.progress.step == 0 {
            self.first_valid = self.validate_when(self.config.eval.every > 0)?;
        }
        memory::reset_peak_memory().map_err(mlx_error("read the memory"))?;
        let last_valid = self.steps()?;
        self.save()?;
        let last_answers = self.answers(&self.adapted()?)?;
        self.reporter.finish();
        let valid = self.first_valid.as_ref().zip(last_valid.as_ref());
        let text = summary::describe(&self.config.summary.prompts, &first_answers, &last_answers, valid);
        if !text.is_empty() {
            self.reporter.line(&text);
        }
        Ok(())
    }

    fn steps(&mut self) -> Result<Option<ValidRecord>> {
        let (plan, config, data) = (self.plan, self.config, self.data);
        let schedule = Schedule::new(config, plan.steps);
        let mut batches = BatchPlan::new(data.train.lengths(), config.data.order, plan.batch_size, config.train.seed);
        let mut guard = Guard::new(config.train.max_nonfinite_steps);
        let mut last_valid = None;
        for step in self.progress.step + 1..=plan.steps {
            let rows: Vec<Vec<usize>> = plan.batches_of(step).map(|number| batches.batch(number).to_vec()).collect();
            let rate = schedule.learning_rate(step);
            let report = self.step(step, &rows, rate)?;
            guard.require_gradient(step, &report)?;
            let stop = guard.check(step, &report, &|| data.train.describe(&rows)).err();
            let (last, asked) = (step == plan.steps, self.interrupt.is_requested());
            if due(step, config.report.every) || last || asked || stop.is_some() {
                self.report(rate, report.grad_norm, batches.epochs_after(plan.batches_of(step).end))?;
            }
            if let Some(error) = stop {
                self.state.clone_from(&self.proven);
                self.progress.applied_steps = self.state.optimizer.step();
                self.save()?;
                return Err(error);
            }
            if due(step, config.eval.every) || (last && config.eval.every > 0) {
                last_valid = self.validate_when(true)?;
            }
            if asked {
                self.save()?;
                self.reporter.finish();
                return Err(TrainError::Interrupted { step, folder: config.output.dir.clone() });
            }
            if due(step, config.checkpoint.every) && !last {
                self.save()?;
            }
        }
        Ok(last_valid)
    }

    /// One optimizer step on the windows of `rows`.
    fn step(&mut self, step: u64, rows: &[Vec<usize>], rate: f64) -> Result<StepReport> {
        let start = Instant::now();
        let collator = self.collator(&self.data.train);
        let context = StepContext {
            model: self.model,
            adapter: self.adapter,
            method: self.plan.method,
            max_grad_norm: self.config.train.max_grad_norm as f32,
        };
        let before = self.state.clone();
        let arrays = rows.iter().map(|batch| collator.rows(batch));
        let report = take_step(&context, &mut self.state, arrays, collator.denominators(rows), rate)
            .map_err(mlx_error("take a training step"))?;
        if report.applied {
            self.proven = before;
        }
        let tokens = collator.trained_tokens(rows);
        self.progress.count(step, tokens, &report);
        self.window.add(&report, tokens, start);
        self.reporter.step(step, f64::from(report.loss));
        Ok(report)
    }

    /// Closes the window of steps since the last report.
    fn report(&mut self, learning_rate: f64, grad_norm: f32, epoch: f64) -> Result<()> {
        let now = Now {
            iteration: self.progress.step,
            learning_rate,
            trained_tokens: self.progress.trained_tokens,
            peak_memory: memory::get_peak_memory().map_err(mlx_error("read the memory"))?,
            grad_norm,
            epoch,
            skipped_steps: self.progress.skipped_steps,
        };
        let record = self.window.record(&now, self.plan.method);
        self.metrics.write(&record)?;
        self.reporter.train(&record);
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        let (adapter, numbered) = self.checkpointer.save(self.adapter, &self.state, &self.progress)?;
        self.reporter.saved(self.progress.step, &adapter, &numbered);
        Ok(())
    }

    fn validate_when(&mut self, wanted: bool) -> Result<Option<ValidRecord>> {
        let Some(examples) = self.data.valid.as_ref().filter(|_| wanted) else { return Ok(None) };
        let model = self.adapted()?;
        let limit = usize::try_from(self.config.eval.batches).unwrap_or(usize::MAX);
        let record = validate(&model, &self.collator(examples), self.plan.batch_size, limit, self.progress.step)?;
        self.metrics.write(&record)?;
        self.reporter.valid(&record);
        Ok(Some(record))
    }

    fn answers(&self, model: &Model) -> Result<Vec<String>> {
        let limit = usize::try_from(self.config.summary.max_tokens).unwrap_or(usize::MAX);
        summary::answers(model, self.text, &self.config.summary.prompts, limit, self.interrupt)
    }

    fn adapted(&self) -> Result<Model> {
        self.adapter
            .install(self.model, &self.state.parameters)
            .map_err(|error| model_error("install the adapter", error))
    }

    fn collator<'e>(&self, examples: &'e Examples) -> Collator<'e> {
        // Padding is looked up like any token, so its id must be one that the model has.
        let known = |id: &u32| (*id as usize) < self.model.config().vocab_size;
        let pad = self.text.tokenizer().eos_id().filter(known).unwrap_or(0);
        Collator { examples, method: self.plan.method, pad }
    }

    fn introduce(&mut self, spec: &LoraSpec) {
        for report in &self.data.reports {
            self.reporter.note(report.summary().trim_end());
        }
        let (targets, count) = (self.adapter.targets().len(), self.adapter.parameter_count());
        self.reporter.note(&format!(
            "LoRA on {targets} linears, rank {}, scale {} (alpha {}), {count} trainable values",
            spec.rank,
            spec.scale,
            spec.scale * spec.rank as f32
        ));
        let (steps, batch, windows) = (self.plan.steps, self.plan.batch_size, self.plan.accumulation);
        let dir = self.config.output.dir.display();
        self.reporter.note(&format!("{steps} steps of {windows} x {batch} rows, results in {dir}"));
        match self.progress.step {
            0 => {}
            done if done >= steps => self.reporter.note(&format!("all {done} steps are done already")),
            done => self.reporter.note(&format!("resumed after step {done}")),
        }
    }
}

fn due(step: u64, every: u64) -> bool {
    every > 0 && step.is_multiple_of(every)
}

fn folder_use(config: &Config) -> FolderUse {
    match (config.output.resume, config.output.overwrite) {
        (true, _) => FolderUse::Resume,
        (false, true) => FolderUse::Overwrite,
        (false, false) => FolderUse::New,
    }
}

fn fresh_state(config: &Config, adapter: &Adapter) -> Result<TrainState> {
    let parameters = adapter.parameters().to_vec();
    let optimizer = Adam::new(Plan::adam(config), &parameters).map_err(mlx_error("make the optimizer"))?;
    Ok(TrainState { parameters, optimizer })
}

fn metrics(folder: &RunFolder, config: &Config, progress: &Progress) -> Result<MetricsWriter> {
    let path = folder.path(output::METRICS_FILE);
    if config.output.resume { MetricsWriter::resume(&path, progress.step) } else { MetricsWriter::create(&path) }
}
