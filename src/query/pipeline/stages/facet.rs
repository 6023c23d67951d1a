//! `$facet`: several pipelines over the same input, each giving one array. Run by the executor.

use crate::expression::field_path::check_field_name;
use crate::pipeline::{Context, Parsed, ParsedKind, parse::parse_nested};
use document::{Result, Value, bail};

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else {
        bail!(40169, "the $facet specification must be a non-empty object, but found: {}", v.type_name());
    };
    if d.is_empty() {
        bail!(40169, "the $facet specification must be a non-empty object, but found: {{}}");
    }
    let mut facets = Vec::new();
    for (field, stages) in d.iter() {
        check_field_name(field)?;
        let Value::Array(stages) = stages else {
            bail!(40170, "arguments to $facet must be arrays, {field} is of type {}", stages.type_name());
        };
        if let Some(bad) = stages.iter().find(|s| !matches!(s, Value::Document(_))) {
            bail!(
                40171,
                "elements of arrays in $facet spec must be non-empty objects, {field} argument contained an element of type {}",
                bad.type_name()
            );
        }
        facets.push((field.to_string(), parse_nested(name, stages, ctx, 40600)?));
    }
    Ok(vec![Parsed { name, spec: v.clone(), kind: ParsedKind::Facet(facets) }])
}
