//! `$setWindowFields`: for each document of a sorted partition, values computed over its neighbours.
//!
//! ```text
//! $setWindowFields {partitionBy, sortBy, output}
//!   = $addFields <partition key>         where partitionBy is more than a field path
//!   + $sort {<partition key>, ...sortBy}
//!   + $_internalSetWindowFields          takes partitions one after another (`run`)
//!   + $unset <partition key>
//! ```
//! A partition is held until it is complete, in a file where it is large. Each output field is a [`function::Function`] with the [`frame::Frame`]
//! of documents it looks at; a frame whose ends only move forward is followed by adding to the accumulator, any other
//! is accumulated anew for each document.

mod covariance;
pub mod fill;
pub mod frame;
pub mod function;
mod rate;
mod run;

use crate::expression::{Expression, FieldPath};
use crate::pipeline::parse::{check_internal, one};
use crate::pipeline::stages::project;
use crate::pipeline::{Context, Parsed, Plan, Run, Stage, sort};
use document::{Document, Result, Value, bail, doc};
use function::Output;
pub use function::names as function_names;

/// Holds the partition key while the pipeline sorts by it.
const PARTITION_KEY: &str = "__internal_setWindowFields_partition_key";

/// A parsed stage after its sort.
#[derive(Clone, Debug)]
pub(super) struct SetWindowFields {
    partition: Option<Expression>,
    outputs: Vec<Output>,
    /// The one field of `sortBy`; `None` where there are several or none.
    sort_field: Option<FieldPath>,
    /// Whether that field sorts the documents in descending order.
    descends: bool,
    /// Puts the values, bound as variables, where the output paths say.
    shape: project::Shape,
}

impl Plan for SetWindowFields {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(run::Running::new(self.clone(), run)))
    }
}

/// The arguments of the stage, checked by shape.
struct Arguments<'a> {
    partition: Option<&'a Value>,
    sort: Option<&'a Document>,
    output: &'a Document,
}

fn arguments<'a>(v: &'a Value) -> Result<Arguments<'a>> {
    let Value::Document(d) = v else {
        bail!(
            FAILED_TO_PARSE,
            "the $setWindowFields stage specification must be an object, found {}",
            v.type_name()
        );
    };
    let (mut partition, mut sort, mut output) = (None, None, None);
    for (name, v) in d.iter() {
        match (name, v) {
            ("partitionBy", v) => partition = Some(v),
            ("sortBy", Value::Null) => {}
            ("sortBy", Value::Document(s)) => sort = Some(s),
            ("output", Value::Document(o)) => output = Some(o),
            ("sortBy" | "output", v) => {
                return Err(document::wrong_type(
                    &format!("$setWindowFields.{name}"),
                    v.type_name(),
                    "object",
                ));
            }
            (other, _) => {
                bail!(IDL_UNKNOWN_FIELD, "BSON field '$setWindowFields.{other}' is an unknown field.")
            }
        }
    }
    let Some(output) = output else {
        bail!(IDL_FAILED_TO_PARSE, "BSON field '$setWindowFields.output' is missing but a required field");
    };
    Ok(Arguments { partition, sort, output })
}

/// `$setWindowFields`, as the stages it stands for.
pub fn parse(_: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Arguments { partition, sort, output } = arguments(v)?;
    let mut stages = Vec::new();
    let mut pattern = Document::new();
    let mut inner = Document::new();
    let mut added = false;
    if let Some(by) = partition {
        match Expression::parse(by, &ctx.scope())? {
            Expression::Constant(Value::Array(_)) => {
                bail!(TYPE_MISMATCH, "An expression used to partition cannot evaluate to value of type array")
            }
            Expression::Constant(_) => {}
            Expression::Field(path) => {
                pattern.push(path.to_string(), 1);
                inner.push("partitionBy", format!("${path}"));
            }
            _ => {
                added = true;
                let field = doc! { PARTITION_KEY: { "$ifNull": [by.clone(), (Value::Null)] } };
                stages.extend(project::add_fields("$addFields", &field.into(), ctx)?);
                pattern.push(PARTITION_KEY, 1);
                inner.push("partitionBy", format!("${PARTITION_KEY}"));
            }
        }
    }
    if let Some(s) = sort {
        for (path, order) in s.iter() {
            if pattern.get(path).is_none() {
                pattern.push(path, order.clone());
            }
        }
        inner.push("sortBy", s.clone());
        if !s.is_empty() {
            // The sort as it was written is checked, also where the partition's field stands for a part of it.
            sort::parse("$sort", &s.clone().into(), ctx)?;
        }
    }
    inner.push("output", output.clone());
    let window = parse_internal("$_internalSetWindowFields", &inner.into(), ctx)?;
    if !pattern.is_empty() {
        stages.extend(sort::parse("$sort", &pattern.into(), ctx)?);
    }
    stages.extend(window);
    if added {
        stages.extend(project::unset("$unset", &PARTITION_KEY.into(), ctx)?);
    }
    Ok(stages)
}

/// `$_internalSetWindowFields`, sent by a router.
pub fn parse_shard(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    check_internal(name, ctx)?;
    parse_internal(name, v, ctx)
}

/// The stage behind the sort.
fn parse_internal(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Arguments { partition, sort, output } = arguments(v)?;
    let scope = ctx.scope();
    let partition = partition.map(|by| Expression::parse(by, &scope)).transpose()?;
    let mut outputs = Vec::with_capacity(output.len());
    let mut paths = Document::new();
    let mut bound = scope.clone();
    for (i, (path, v)) in output.iter().enumerate() {
        outputs.push(function::parse(path, v, sort, &scope)?);
        let variable = format!("window_{i}");
        bound.push(&variable);
        paths.push(path, format!("$${variable}"));
    }
    let shape = project::parse_add(&paths, &bound)?;
    let single = sort.filter(|s| s.len() == 1).and_then(Document::first);
    let sort_field = single.map(|(path, _)| FieldPath::parse(path)).transpose()?;
    let descends =
        single.and_then(|(_, order)| document::number::as_f64(order)).is_some_and(|order| order < 0.0);
    one(name, v, SetWindowFields { partition, outputs, sort_field, descends, shape })
}

#[cfg(test)]
mod tests;
