//! Updates written as a pipeline: `$set`, `$unset`, `$project`, `$replaceRoot` and their other names.

use super::index::Index;
use crate::QueryContext;
use crate::assignment::Assignment;
use crate::computed::Computed;
use crate::depth;
use crate::matcher::Matcher;
use crate::pipeline::stages::window::fill;
use crate::projection::Projection;
use crate::sort::field_path;
use document::{Doc, DocBuf, Document, Result, Value, bail};

#[derive(Clone, Debug)]
pub(super) struct Steps(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    /// Paths and their expressions, all evaluated against the document as the stage finds it.
    Set(Vec<(Vec<String>, Computed)>),
    Project(Projection),
    Replace {
        root: Computed,
        stage: &'static str,
    },
}

impl Steps {
    pub(super) fn parse(stages: &[Value], ctx: &QueryContext) -> Result<Steps> {
        let mut steps = Vec::with_capacity(stages.len());
        for stage in stages {
            let Value::Document(d) = stage else {
                bail!(TYPE_MISMATCH, "Each element of the 'pipeline' array must be an object");
            };
            let (1, Some((name, argument))) = (d.len(), d.first()) else {
                bail!(40323, "A pipeline stage specification object must contain exactly one field.");
            };
            steps.push(step(name, argument, ctx)?);
        }
        Ok(Steps(steps))
    }

    pub(super) fn apply(&self, old: Doc<'_>) -> Result<DocBuf> {
        let mut current = old.to_owned();
        for step in &self.0 {
            current = depth::checked(step.apply(current.doc())?)?;
        }
        Ok(current)
    }
}

fn step(name: &str, argument: &Value, ctx: &QueryContext) -> Result<Step> {
    match name {
        "$set" | "$addFields" => {
            let Value::Document(fields) = argument else {
                bail!(40272, "{name} specification stage must be an object, got {}", argument.type_name());
            };
            assigned(fields, ctx)
        }
        // As far as it stands for `$addFields`.
        "$fill" => {
            let fill = fill::read(argument)?;
            if fill.windows.is_some() {
                bail!(INVALID_OPTIONS, "$setWindowFields is not allowed to be used within an update");
            }
            assigned(&fill.constants, ctx)
        }
        "$unset" => Ok(Step::Project(project(&unset_spec(argument)?, ctx)?)),
        "$project" => match argument {
            Value::Document(spec) if spec.is_empty() => {
                bail!(
                    51272,
                    "Invalid $project :: caused by :: projection specification must have at least one field"
                )
            }
            Value::Document(spec) => Ok(Step::Project(project(spec, ctx)?)),
            _ => bail!(15969, "$project specification must be an object"),
        },
        "$replaceWith" => Ok(Step::Replace { root: Computed::parse(argument, ctx)?, stage: "$replaceWith" }),
        "$replaceRoot" => {
            let Value::Document(d) = argument else {
                bail!(
                    40229,
                    "expected an object as specification for $replaceRoot stage, got {}",
                    argument.type_name()
                );
            };
            match d.get("newRoot") {
                Some(root) if d.len() == 1 => {
                    Ok(Step::Replace { root: Computed::parse(root, ctx)?, stage: "$replaceRoot" })
                }
                Some(_) => bail!(IDL_UNKNOWN_FIELD, "BSON field '$replaceRoot' has an unknown field"),
                None => bail!(40231, "no newRoot specified for the $replaceRoot stage"),
            }
        }
        _ if crate::pipeline::table::find(name).is_none() => {
            bail!(40324, "Unrecognized pipeline stage name: '{name}'")
        }
        _ => bail!(INVALID_OPTIONS, "{name} is not allowed to be used within an update"),
    }
}

fn assigned(fields: &Document, ctx: &QueryContext) -> Result<Step> {
    let mut out = Vec::new();
    assignments(&[], fields, ctx, &mut out)?;
    Ok(Step::Set(out))
}

fn project(spec: &Document, ctx: &QueryContext) -> Result<Projection> {
    Projection::parse(spec.to_doc_buf().doc(), &Matcher::always(), ctx)
}

fn unset_spec(argument: &Value) -> Result<Document> {
    let mut out = Document::new();
    let mut add = |v: &Value| match v {
        Value::String(s) => {
            out.push(s.as_str(), 0);
            Ok(())
        }
        _ => bail!(31120, "$unset specification must be a string or an array containing only string values"),
    };
    match argument {
        Value::Array(list) if list.is_empty() => {
            bail!(31119, "$unset specification must be a string or an array with at least one field")
        }
        Value::Array(list) => list.iter().try_for_each(add)?,
        Value::String(_) => add(argument)?,
        _ => bail!(31002, "$unset specification must be a string or an array"),
    }
    Ok(out)
}

/// Flattens `{a: {b: expr}}` to the path a.b; a document that begins with an operator is an expression.
fn assignments(
    prefix: &[String],
    fields: &Document,
    ctx: &QueryContext,
    out: &mut Vec<(Vec<String>, Computed)>,
) -> Result<()> {
    if prefix.is_empty() && fields.is_empty() {
        bail!(40177, "Invalid $set :: caused by :: specification must have at least one field");
    }
    for (name, value) in fields.iter() {
        field_path(name).map_err(|e| e.context("Invalid $set"))?;
        let mut path = prefix.to_vec();
        path.extend(name.split('.').map(str::to_string));
        depth::check_path_length(path.len()).map_err(|e| e.context("Invalid $set"))?;
        match value {
            Value::Document(inner)
                if !inner.is_empty() && !inner.keys().next().is_some_and(|k| k.starts_with('$')) =>
            {
                assignments(&path, inner, ctx, out)?;
            }
            other => out.push((path, Computed::parse(other, ctx)?)),
        }
    }
    Ok(())
}

impl Step {
    fn apply(&self, doc: Doc<'_>) -> Result<DocBuf> {
        match self {
            Step::Set(list) => {
                let mut document = doc.to_document();
                let mut index = Index::of(&document, list.len())?;
                for (path, expression) in list {
                    set(&mut document, &mut index, path, expression.eval(doc)?.as_ref())?;
                }
                index.settle(&mut document);
                Ok(document.to_doc_buf())
            }
            Step::Project(p) => {
                let mut out = Vec::with_capacity(doc.bytes().len());
                p.apply(doc, &mut out)?;
                Ok(DocBuf::from_validated(out))
            }
            Step::Replace { root, stage } => match root.eval(doc)? {
                Some(Value::Document(d)) => Ok(d.to_doc_buf()),
                other => bail!(
                    40228,
                    "'{}' expression must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'.",
                    if *stage == "$replaceRoot" { "newRoot" } else { "replacement document" },
                    other.as_ref().map_or_else(|| "MISSING".to_string(), crate::text::owned),
                    other.as_ref().map_or("missing", Value::type_name)
                ),
            },
        }
    }
}

/// Sets one of many fields of a document.
///
/// # Errors
/// Those of [`Assignment::set`].
fn set(document: &mut Document, index: &mut Index, path: &[String], value: Option<&Value>) -> Result<()> {
    let Some((first, rest)) = path.split_first() else { return Ok(()) };
    let mut assignment = Assignment::of(value);
    let Some(at) = index.position(document, first)? else {
        let mut new = Document::new();
        assignment.set(&mut new, path)?;
        if let Some((_, value)) = new.0.pop() {
            index.push(document, first, value);
        }
        return Ok(());
    };
    match (rest, value) {
        ([], None) => drop(index.remove(document, at)),
        ([], Some(value)) => document.0[at].1 = value.clone(),
        (rest, _) => assignment.set_below(&mut document.0[at].1, rest)?,
    }
    Ok(())
}
