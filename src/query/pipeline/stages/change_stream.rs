//! `$changeStream`, which the host supplies, and what may follow it.

use crate::change_stream::{Spec, split};
use crate::pipeline::host::Role;
use crate::pipeline::{Batch, Context, Flow, HostStage, Parsed, Pipeline, Plan, Run, Stage, parse};
use document::{DocBuf, Result, Value, bail};

/// Stages that look at one event at a time and may leave its `_id` as it is.
const FOLLOWING: [&str; 9] =
    ["$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith", "$redact", SPLIT];
const SPLIT: &str = "$changeStreamSplitLargeEvent";

pub fn source(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    let Value::Document(d) = v else { bail!(6188500, "$changeStream stage expects a document as argument") };
    let mut namespace = ctx.namespace.clone();
    if namespace.collection.starts_with("$cmd") {
        namespace.collection.clear();
    }
    Spec::parse(d)?.check_namespace(&namespace)?;
    Ok(HostStage { name, spec: v.clone(), namespace: None, role: Role::Source, join: None })
}

/// `$changeStreamSplitLargeEvent: {}`.
pub fn split_large_event(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    match v {
        Value::Document(d) if d.is_empty() => parse::one(name, v, SplitLargeEvents),
        v => bail!(
            7182800,
            "$changeStreamSplitLargeEvent spec should be an empty object, but found {}",
            crate::expression::parse::show(v)
        ),
    }
}

#[derive(Debug)]
struct SplitLargeEvents;

impl Plan for SplitLargeEvents {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(SplitLargeEvents))
    }
}

impl Stage for SplitLargeEvents {
    fn push(&mut self, event: DocBuf, out: &mut Batch) -> Result<Flow> {
        out.extend(split::split(event)?);
        Ok(Flow::Continue)
    }
}

/// Whether every stage may follow `$changeStream`, and `$changeStreamSplitLargeEvent` ends one.
///
/// # Errors
/// IllegalOperation (20), 7182801 and 7182802 for the place of `$changeStreamSplitLargeEvent`.
pub fn check_pipeline(p: &Pipeline) -> Result<()> {
    let streams = p.first_stage_name() == Some("$changeStream");
    let last = p.stages.len().saturating_sub(1);
    for (i, s) in p.stages.iter().enumerate() {
        match s.name {
            SPLIT if !streams => {
                bail!(7182801, "{SPLIT} can only be used in a $changeStream pipeline")
            }
            SPLIT if i < last => bail!(7182802, "{SPLIT} must be the last stage in the pipeline"),
            name if streams && i > 0 && !may_follow(name, &s.spec) => {
                bail!(ILLEGAL_OPERATION, "{name} is not permitted in a $changeStream pipeline")
            }
            _ => {}
        }
    }
    Ok(())
}

fn may_follow(name: &str, spec: &Value) -> bool {
    // A sorted $fill looks at many events.
    let fills = name == "$fill" && spec.as_document().is_some_and(|d| !d.contains_key("sortBy"));
    fills || FOLLOWING.contains(&name)
}
