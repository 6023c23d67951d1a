//! `$sortByCount` and `$bucket`: sugar over `$group` and `$sort`.

use crate::expression::{Expression, parse::show};
use crate::pipeline::{Context, Parsed, group, sort};
use document::{Document, Result, Value, bail, compare, doc, meter};

pub fn sort_by_count(_: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    match v {
        Value::Document(d) if d.first().is_some_and(|(k, _)| k.starts_with('$')) => {}
        Value::String(s) if s.starts_with('$') => {}
        Value::Document(_) => bail!(
            40147,
            "the sortByCount field must be defined as a $-prefixed path or an expression inside an object"
        ),
        Value::String(_) => bail!(
            40148,
            "the sortByCount field must be defined as a $-prefixed path or an expression inside an object"
        ),
        _ => bail!(40149, "the sortByCount field must be specified as a string or as an object"),
    }
    let mut stages = group::parse("$group", &doc! {"_id": v, "count": {"$sum": 1}}.into(), ctx)?;
    stages.extend(sort::parse("$sort", &doc! {"count": -1}.into(), ctx)?);
    Ok(stages)
}

pub fn bucket(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else {
        bail!(40201, "Argument to $bucket stage must be an object, but found type: {}.", v.type_name());
    };
    let (mut by, mut boundaries, mut default, mut output) = (None, None, None, None);
    for (option, v) in d.iter() {
        match option {
            "groupBy" => {
                let expression =
                    matches!(v, Value::Document(_)) || v.as_str().is_some_and(|s| s.starts_with('$'));
                if !expression {
                    bail!(
                        40202,
                        "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {}.",
                        show(v)
                    );
                }
                by = Some(v);
            }
            "boundaries" => boundaries = Some(constant_boundaries(v, ctx)?),
            "default" => match Expression::parse(v, &ctx.scope())?.as_constant() {
                Some(c) => default = Some(c.clone()),
                None => bail!(
                    40195,
                    "The $bucket 'default' field must be a constant expression, but found: {}.",
                    show(v)
                ),
            },
            "output" => match v {
                Value::Document(o) => output = Some(o.clone()),
                v => bail!(
                    40196,
                    "The $bucket 'output' field must be an object, but found type: {}.",
                    v.type_name()
                ),
            },
            other => bail!(40197, "Unrecognized option to {name}: {other}."),
        }
    }
    let (Some(by), Some(boundaries)) = (by, boundaries) else {
        bail!(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.");
    };
    if let (Some(v), Some(least), Some(greatest)) = (&default, boundaries.first(), boundaries.last())
        && compare::canonical_type(v.tag()) == compare::canonical_type(least.tag())
        && ctx.query.collation.compare_values(v, least).is_ge()
        && ctx.query.collation.compare_values(v, greatest).is_lt()
    {
        bail!(
            40199,
            "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary."
        );
    }
    let output = output.unwrap_or_else(|| doc! {"count": {"$sum": 1}});
    if output.contains_key("_id") {
        bail!(15948, "a group's _id may only be specified once");
    }
    let mut spec = Document::new();
    spec.push("_id", bucket_of(by, &boundaries, default)?);
    spec.0.extend(output.0);
    let mut stages = group::parse("$group", &Value::Document(spec), ctx)?;
    stages.extend(sort::parse("$sort", &doc! {"_id": 1}.into(), ctx)?);
    Ok(stages)
}

/// The expression that names a document's bucket by its lower bound. Each branch has `by` twice, which may be long.
///
/// # Errors
/// Those of [`meter::spend`].
fn bucket_of(by: &Value, boundaries: &[Value], default: Option<Value>) -> Result<Document> {
    let literal = |v: &Value| doc! {"$literal": v};
    let mut branches = Vec::new();
    for w in boundaries.windows(2) {
        meter::spend(1)?;
        let from = doc! {"$gte": [by, (Value::from(literal(&w[0])))]};
        let below = doc! {"$lt": [by, (Value::from(literal(&w[1])))]};
        branches.push(Value::Document(doc! {"case": {"$and": [(Value::from(from)), (Value::from(below))]}, "then": (Value::from(literal(&w[0])))}));
    }
    let mut switch = doc! {"branches": (Value::Array(branches))};
    if let Some(v) = default {
        switch.push("default", literal(&v));
    }
    Ok(doc! {"$switch": switch})
}

fn constant_boundaries(v: &Value, ctx: &Context) -> Result<Vec<Value>> {
    let Value::Array(items) = v else {
        bail!(40200, "The $bucket 'boundaries' field must be an array, but found type: {}.", v.type_name());
    };
    let mut out: Vec<Value> = Vec::new();
    let scope = ctx.scope();
    for item in items {
        let e = Expression::parse(item, &scope)?;
        let Some(c) = fold(&e) else {
            bail!(
                40191,
                "The $bucket 'boundaries' field must be an array of constant values, but found value: {}.",
                show(item)
            );
        };
        out.push(c);
    }
    if out.len() < 2 {
        bail!(
            40192,
            "The $bucket 'boundaries' field must have at least 2 values, but found {} value(s).",
            out.len()
        );
    }
    for pair in out.windows(2) {
        if compare::canonical_type(pair[0].tag()) != compare::canonical_type(pair[1].tag()) {
            bail!(
                40193,
                "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types {} and {}.",
                pair[0].type_name(),
                pair[1].type_name()
            );
        }
        if ctx.query.collation.compare_values(&pair[0], &pair[1]).is_ge() {
            bail!(
                40194,
                "The 'boundaries' option to $bucket must be sorted, but elements are not in ascending order ({} is not less than {}).",
                show(&pair[0]),
                show(&pair[1])
            );
        }
    }
    Ok(out)
}

/// The value of an expression that reads nothing.
fn fold(e: &Expression) -> Option<Value> {
    let reads_nothing = !e.has_variables() && e.needed_fields().is_some_and(|f| f.is_empty());
    if !reads_nothing {
        return None;
    }
    e.eval(document::Doc::empty(), &mut crate::expression::Vars::new(0)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_count_as_they_are_made() {
        let boundaries: Vec<Value> = (0..50_000).map(Value::Int32).collect();
        let made = |quanta| {
            meter::within(&mut meter::Oversight::default(), || {
                meter::bounded(quanta, || bucket_of(&Value::from("$x"), &boundaries, None))
            })
        };
        assert_eq!(made(1).unwrap_err().code, meter::OVERRUN);
        assert!(made(100).is_ok());
    }
}
