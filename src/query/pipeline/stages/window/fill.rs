//! `$locf` and `$linearFill`, and the stage `$fill`, which is written with them.

use crate::expression::Arg;
use crate::pipeline::stages::project;
use crate::pipeline::{Context, Parsed};
use document::{Document, Result, Value, bail, compare::compare_values, doc, number};

fn is_absent(v: &Arg) -> bool {
    matches!(v, None | Some(Value::Null | Value::Undefined))
}

/// The last value before each document that was not null.
pub fn carried(values: Vec<Arg>) -> impl Iterator<Item = Arg> {
    let mut last = Some(Value::Null);
    values.into_iter().map(move |v| {
        if !is_absent(&v) {
            last = v;
        }
        last.clone()
    })
}

/// Nulls between two numbers on the line between them; those at the ends stay null.
pub fn interpolated(mut values: Vec<Arg>, keys: &[Value]) -> Result<Vec<Arg>> {
    check_keys(keys)?;
    let mut known: Option<usize> = None;
    for i in 0..values.len() {
        if is_absent(&values[i]) {
            values[i] = Some(Value::Null);
            continue;
        }
        if !values[i].as_ref().is_some_and(Value::is_number) {
            bail!(TYPE_MISMATCH, "Value to be filled must be numeric or nullish");
        }
        if let Some(from) = known {
            let line = (values[from].clone(), values[i].clone());
            let (Some(a), Some(b)) = line else { continue };
            for at in from + 1..i {
                values[at] = between((&keys[from], &a), (&keys[i], &b), &keys[at]).or(Some(Value::Null));
            }
        }
        known = Some(i);
    }
    Ok(values)
}

fn check_keys(keys: &[Value]) -> Result<()> {
    for (i, key) in keys.iter().enumerate() {
        // Between a number and a date there is no line.
        let fits = key.is_number() || matches!(key, Value::DateTime(_));
        if !fits || key.is_number() != keys[0].is_number() {
            bail!(
                TYPE_MISMATCH,
                "Conversion of sortBy field to a number failed: all of it must be numeric, or all dates"
            );
        }
        if i > 0 && compare_values(key, &keys[i - 1]).is_eq() {
            bail!(6050106, "There can be no repeated values in the sort field");
        }
    }
    Ok(())
}

fn between(a: (&Value, &Value), b: (&Value, &Value), at: &Value) -> Option<Value> {
    let place = |v: &Value| match v {
        Value::DateTime(ms) => Value::Int64(*ms),
        v => v.clone(),
    };
    let (left, right, at) = (place(a.0), place(b.0), place(at));
    let part = number::subtract(&at, &left)?;
    let rise = number::multiply(&number::subtract(b.1, a.1)?, &part)?;
    number::add(a.1, &number::divide(&rise, &number::subtract(&right, &left)?)?)
}

/// What `$fill` does to each output field.
enum Method<'a> {
    Value(&'a Value),
    Window(&'static str),
}

/// What a `$fill` stands for: a `$setWindowFields` and, after it, an `$addFields`.
pub(crate) struct Fill {
    /// The specification of `$setWindowFields`.
    pub windows: Option<Document>,
    /// That of `$addFields`.
    pub constants: Document,
}

/// `$fill`, as the stages it stands for.
pub fn parse(_: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let fill = read(v)?;
    let mut out = Vec::new();
    // What is carried on or lies between is computed from the input, before any constant takes a gap's place.
    if let Some(windows) = fill.windows {
        out.extend(super::parse("$setWindowFields", &windows.into(), ctx)?);
    }
    if !fill.constants.is_empty() {
        out.extend(project::add_fields("$addFields", &fill.constants.into(), ctx)?);
    }
    Ok(out)
}

/// # Errors
/// Those of the stage's arguments, but not those of the expressions in them.
pub(crate) fn read(v: &Value) -> Result<Fill> {
    let Value::Document(d) = v else {
        bail!(FAILED_TO_PARSE, "The $fill stage specification must be an object, found {}", v.type_name());
    };
    let (mut by, mut by_fields, mut sort, mut output) = (None, None, None, None);
    for (name, v) in d.iter() {
        match (name, v) {
            ("partitionBy", Value::String(_) | Value::Document(_)) => by = Some(v.clone()),
            ("partitionByFields", Value::Array(fields)) => by_fields = Some(fields),
            ("sortBy", Value::Document(s)) => sort = Some(s),
            ("output", Value::Document(o)) => output = Some(o),
            ("partitionBy" | "partitionByFields" | "sortBy" | "output", v) => {
                let expected = match name {
                    "partitionBy" => "[string, object]",
                    "partitionByFields" => "array",
                    _ => "object",
                };
                return Err(document::wrong_type(&format!("$fill.{name}"), v.type_name(), expected));
            }
            (other, _) => bail!(IDL_UNKNOWN_FIELD, "BSON field '$fill.{other}' is an unknown field."),
        }
    }
    let Some(output) = output else {
        bail!(IDL_FAILED_TO_PARSE, "BSON field '$fill.output' is missing but a required field");
    };
    if by.is_some() && by_fields.is_some() {
        bail!(6050204, "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'");
    }
    let partition = match by_fields {
        Some(fields) => Some(fields_as_object(fields)?),
        None => by,
    };
    filled(partition, sort, output)
}

fn fields_as_object(fields: &[Value]) -> Result<Value> {
    let mut object = Document::new();
    for field in fields {
        match field {
            Value::String(s) if s.starts_with('$') => {
                bail!(6050203, "A field in '$fill.partitionByFields' may not start with '$', found {s}")
            }
            Value::String(s) => object.push(s.as_str(), format!("${s}")),
            v => return Err(document::wrong_type("$fill.partitionByFields", v.type_name(), "string")),
        }
    }
    // A dotted name is a path in the key as well as in the document.
    let renamed = object.iter().enumerate().map(|(i, (_, v))| (format!("field{i}"), v.clone())).collect();
    Ok(Value::Document(Document(renamed)))
}

fn method_of<'a>(field: &str, v: &'a Value) -> Result<Method<'a>> {
    let Value::Document(d) = v else {
        return Err(document::wrong_type(&format!("$fill.output.{field}"), v.type_name(), "object"));
    };
    match d.0.as_slice() {
        [(name, v)] if name == "value" => Ok(Method::Value(v)),
        [(name, Value::String(method))] if name == "method" => match method.as_str() {
            "locf" => Ok(Method::Window("$locf")),
            "linear" => Ok(Method::Window("$linearFill")),
            _ => bail!(6050202, "Method must be either 'locf' or 'linear'"),
        },
        _ => bail!(6050200, "Each field in the '$fill' output must have exactly one of 'method' or 'value'"),
    }
}

fn filled(partition: Option<Value>, sort: Option<&Document>, output: &Document) -> Result<Fill> {
    let (mut windows, mut constants) = (Document::new(), Document::new());
    for (field, v) in output.iter() {
        let path = format!("${field}");
        match method_of(field, v)? {
            Method::Value(v) => constants.push(field, doc! { "$ifNull": [(path), v.clone()] }),
            Method::Window("$linearFill") if sort.is_none() => {
                bail!(
                    605001,
                    "$linearFill must be specified with a top level sortBy expression with exactly one element"
                )
            }
            Method::Window(function) => windows.push(field, doc! { function: (path) }),
        }
    }
    if windows.is_empty() {
        return Ok(Fill { windows: None, constants });
    }
    let mut spec = Document::new();
    if let Some(partition) = partition {
        spec.push("partitionBy", partition);
    }
    if let Some(sort) = sort {
        spec.push("sortBy", sort.clone());
    }
    spec.push("output", windows);
    Ok(Fill { windows: Some(spec), constants })
}
