//! From an array of stage documents to a [`Pipeline`].

use super::stages::host_stages;
use super::table::{self, Kind};
use super::{Context, Namespace, Parsed, ParsedKind, Pipeline, fusion};
use crate::expression::Constants;
use document::{Doc, Document, Result, Value, ValueRef, bail};

/// The most stages a pipeline may have.
const STAGES_MAX: usize = 1000;
/// How deep `$facet`, `$lookup` and `$unionWith` may nest pipelines.
pub const NESTING_MAX: usize = 20;

/// Parses and checks where each stage may stand. Errors carry the real server's codes.
pub fn parse(stages: &[Value], ctx: &Context) -> Result<Pipeline> {
    let pipeline = parse_stages(stages, ctx)?;
    check_collection(&pipeline, ctx)?;
    check_positions(&pipeline)?;
    super::stages::change_stream::check_pipeline(&pipeline)?;
    Ok(pipeline)
}

/// Parses the pipeline of a command, whose constant expressions must have a value even if there is no document.
///
/// # Errors
/// Those of [`parse`] and, in the phase [`document::error::Phase::Constant`], of the expressions.
pub fn parse_checked(stages: &[Value], ctx: &Context) -> Result<Pipeline> {
    let mut ctx = ctx.clone();
    ctx.query.constants = Constants::checked();
    let pipeline = parse(stages, &ctx)?;
    ctx.query.constants.check()?;
    Ok(pipeline)
}

fn parse_stages(stages: &[Value], ctx: &Context) -> Result<Pipeline> {
    if stages.len() > STAGES_MAX {
        bail!(7749501, "Pipeline length must be no longer than {STAGES_MAX} stages");
    }
    if let Some(expanded) = fusion::expand(stages, &ctx.namespace.collection)? {
        return each(&expanded, ctx);
    }
    each(stages, ctx)
}

pub(super) fn each(stages: &[Value], ctx: &Context) -> Result<Pipeline> {
    let mut out = Vec::with_capacity(stages.len());
    for (at, stage) in stages.iter().enumerate() {
        let Value::Document(d) = stage else {
            bail!(TYPE_MISMATCH, "Each element of the 'pipeline' array must be an object");
        };
        if let Some((name, _)) = d.first() {
            fusion::check_place(name, at)?;
        }
        stage_of(d, ctx, &mut out)?;
    }
    Ok(Pipeline { stages: out })
}

fn stage_of(d: &Document, ctx: &Context, out: &mut Vec<Parsed>) -> Result<()> {
    let Some((name, spec)) = d.first().filter(|_| d.len() == 1) else {
        bail!(40323, "A pipeline stage specification object must contain exactly one field.");
    };
    let Some(row) = table::find(name) else {
        bail!(40324, "Unrecognized pipeline stage name: '{name}'");
    };
    match row.kind {
        Kind::Local(parse) => out.extend(parse(row.name, spec, ctx)?),
        Kind::Host(_, parse) => {
            refuse_doubled(row.name, spec)?;
            let kind = ParsedKind::Host(parse(row.name, spec, ctx)?);
            out.push(Parsed { name: row.name, spec: spec.clone(), kind });
        }
        Kind::Expanded => bail!(10170100, "{name} is only valid as the first stage in a pipeline"),
    }
    Ok(())
}

/// The fields of a stage that reads or writes elsewhere say where, so whoever checks rights must read the same as whoever runs it.
/// Two ask for nothing but numbers, and judge for themselves.
fn refuse_doubled(stage: &str, spec: &Value) -> Result<()> {
    if matches!(stage, "$collStats" | "$planCacheStats") {
        return Ok(());
    }
    spec.as_document().map_or(Ok(()), |d| document::refuse_doubled(stage, d.keys()))
}

fn check_positions(p: &Pipeline) -> Result<()> {
    let last = p.stages.len().saturating_sub(1);
    for (i, s) in p.stages.iter().enumerate() {
        if s.name == "$geoNear" && i > 0 {
            bail!(40603, "$geoNear was not the first stage in the pipeline.");
        }
        let ParsedKind::Host(h) = &s.kind else { continue };
        match h.role {
            super::host::Role::Source if i > 0 => {
                bail!(40602, "{} is only valid as the first stage in a pipeline", s.name)
            }
            super::host::Role::Write if i < last => {
                bail!(40601, "{} can only be the final stage in the pipeline", s.name)
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_collection(p: &Pipeline, ctx: &Context) -> Result<()> {
    if !ctx.namespace.collection.is_empty() {
        return Ok(());
    }
    match p.stages.first() {
        None => bail!(INVALID_NAMESPACE, "{{aggregate: 1}} is not valid for an empty pipeline."),
        Some(s) if table::find(s.name).is_some_and(|r| r.without_collection) => Ok(()),
        Some(s) => {
            bail!(
                INVALID_NAMESPACE,
                "{{aggregate: 1}} is not valid for '{}'; a collection is required.",
                s.name
            )
        }
    }
}

/// Refuses to a client the stages by which the server itself writes a `$rankFusion`, in joins and facets, too.
///
/// # Errors
/// 40324, as for a stage that nobody knows.
pub fn refuse_own(stages: Doc<'_>) -> Result<()> {
    for e in stages {
        let Some(stage) = e.value().as_document().and_then(|d| d.iter().next()) else { continue };
        match (stage.name(), stage.value()) {
            (name @ ("$_internalRank" | "$_internalFuse"), _) => {
                bail!(40324, "Unrecognized pipeline stage name: '{name}'")
            }
            ("$lookup" | "$unionWith", ValueRef::Document(join)) => {
                join.get("pipeline").and_then(|v| v.as_array()).map_or(Ok(()), refuse_own)?;
            }
            ("$facet", ValueRef::Document(facets)) => {
                let mut pipelines = facets.iter().filter_map(|e| e.value().as_array());
                pipelines.try_for_each(refuse_own)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses to clients a stage that only routers send.
pub(super) fn check_internal(name: &str, ctx: &Context) -> Result<()> {
    if !ctx.from_router {
        bail!(40324, "Unrecognized pipeline stage name: '{name}'");
    }
    Ok(())
}

/// Parses a pipeline inside a stage. `owner` names the stage; writing stages are refused with `refusal`.
pub fn parse_nested(owner: &str, stages: &[Value], ctx: &Context, refusal: i32) -> Result<Pipeline> {
    if nesting(stages) >= NESTING_MAX {
        bail!(232, "Maximum number of nested sub-pipelines exceeded. Limit is {NESTING_MAX}");
    }
    if owner == "$facet" {
        check_facet(stages, ctx)?;
    }
    let p = parse_stages(stages, ctx)?;
    for s in &p.stages {
        let refused = |code| {
            let text = format!("{} is not allowed to be used within a {owner} stage", s.name);
            Err(document::Error::new(code, text))
        };
        if s.name == "$changeStream" {
            return refused(40573);
        }
        if matches!(&s.kind, ParsedKind::Host(h) if h.role == super::host::Role::Write) {
            return refused(refusal);
        }
        let alone = table::find(s.name).is_some_and(|r| r.without_collection);
        if alone && s.name != "$documents" && !ctx.namespace.collection.is_empty() {
            bail!(
                INVALID_NAMESPACE,
                "{} must be run against a database with {{aggregate: 1}}, not a collection",
                s.name
            );
        }
    }
    check_positions(&p)?;
    Ok(p)
}

/// Names that a `$facet` refuses, in its own pipelines and in those of the joins in them.
fn check_facet(stages: &[Value], ctx: &Context) -> Result<()> {
    for (name, spec) in stages.iter().filter_map(Value::as_document).filter_map(Document::first) {
        if table::find(name).is_some_and(|r| !r.in_facet) {
            host_stages::check_place(name, ctx)?;
            bail!(40600, "{name} is not allowed to be used within a $facet stage");
        }
        if matches!(name, "$lookup" | "$unionWith")
            && let Some(Value::Array(inner)) = spec.as_document().and_then(|d| d.get("pipeline"))
        {
            // A stage that writes is refused by the join, which has codes of its own for it.
            let writes = |stage: &Value| {
                stage.as_document().is_some_and(|d| d.contains_key("$out") || d.contains_key("$merge"))
            };
            let inner = if begins_with(inner, "$documents") { &inner[1..] } else { inner };
            let own: Vec<Value> = inner.iter().filter(|stage| !writes(stage)).cloned().collect();
            check_facet(&own, ctx)?;
        }
    }
    Ok(())
}

/// Whether the first stage is the one of this name.
pub(super) fn begins_with(stages: &[Value], name: &str) -> bool {
    stages.first().and_then(Value::as_document).is_some_and(|d| d.contains_key(name))
}

fn nesting(stages: &[Value]) -> usize {
    fn of(v: &Value) -> usize {
        match v {
            Value::Document(d) => {
                let own = ["$lookup", "$unionWith", "$facet"].iter().any(|n| d.contains_key(n)) as usize;
                own + d.iter().map(|(_, v)| of(v)).max().unwrap_or(0)
            }
            Value::Array(a) => a.iter().map(of).max().unwrap_or(0),
            _ => 0,
        }
    }
    stages.iter().map(of).max().unwrap_or(0)
}

/// Every other namespace the pipeline names, with whether it writes there.
pub fn involved_namespaces(p: &Pipeline) -> Vec<(Namespace, bool)> {
    let mut out = Vec::new();
    for s in &p.stages {
        match &s.kind {
            ParsedKind::Host(h) => {
                if let Some(ns) = &h.namespace {
                    out.push((ns.clone(), h.role == super::host::Role::Write));
                }
                if let Some(join) = &h.join {
                    out.extend(join.pipeline().into_iter().flat_map(involved_namespaces));
                }
            }
            ParsedKind::Facet(list) => out.extend(list.iter().flat_map(|(_, p)| involved_namespaces(p))),
            ParsedKind::Local(_) => {}
        }
    }
    out
}

/// One local stage.
pub(super) fn one(name: &'static str, spec: &Value, plan: impl super::Plan + 'static) -> Result<Vec<Parsed>> {
    Ok(vec![Parsed { name, spec: spec.clone(), kind: ParsedKind::Local(std::sync::Arc::new(plan)) }])
}
