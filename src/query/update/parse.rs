//! From what a client sent to an update that can be applied.

use super::ops::{self, Parse};
use super::path::{Step, UpdatePath, beginnings};
use super::{Kind, Operation, Operators, pipeline};
use crate::QueryContext;
use crate::matcher::{Matcher, Node};
use document::delta::{Extent, Touched};
use document::{Document, Result, Timestamp, Value, bail, meter};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub(super) fn update(u: &Value, array_filters: &[Document], ctx: &QueryContext) -> Result<Kind> {
    match u {
        Value::Array(stages) => {
            if !array_filters.is_empty() {
                bail!(FAILED_TO_PARSE, "arrayFilters may not be specified for pipeline-syle updates");
            }
            ctx.checked(|ctx| pipeline::Steps::parse(stages, ctx)).map(Kind::Pipeline)
        }
        Value::Document(d) if d.keys().next().is_some_and(|k| k.starts_with('$')) => {
            Ok(Kind::Operators(operators(d, array_filters, ctx)?))
        }
        Value::Document(d) => {
            if !array_filters.is_empty() {
                bail!(FAILED_TO_PARSE, "arrayFilters may not be specified for replacement-style updates");
            }
            replacement(d, ctx)
        }
        _ => bail!(FAILED_TO_PARSE, "Update argument must be either an object or an array"),
    }
}

fn replacement(d: &Document, ctx: &QueryContext) -> Result<Kind> {
    let mut out = d.clone();
    for (name, value) in &mut out.0 {
        if name.starts_with('$') {
            bail!(
                DOLLAR_PREFIXED_FIELD_NAME,
                "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith."
            );
        }
        // An empty timestamp at the top level stands for the present.
        if *value == Value::Timestamp(Timestamp::default()) && name != "_id" {
            *value = Value::Timestamp(ctx.cluster_time);
        }
    }
    if let Some(id) = d.get("_id") {
        let holder = id.to_holder();
        if let Some(e) = holder.doc().iter().next() {
            super::check_id_type(e.value())?;
        }
    }
    Ok(Kind::Replacement(out.to_doc_buf()))
}

fn operators(d: &Document, array_filters: &[Document], ctx: &QueryContext) -> Result<Operators> {
    let mut out = Operators {
        operations: Vec::new(),
        renames: Vec::new(),
        array_filters: filters(array_filters, ctx)?,
        flat: false,
        touched: Touched::default(),
        inserts_only: None,
    };
    for (name, argument) in d.iter() {
        let Some(row) = ops::TABLE.iter().find(|r| r.name == name) else {
            bail!(
                FAILED_TO_PARSE,
                "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
            );
        };
        let Value::Document(fields) = argument else {
            bail!(
                FAILED_TO_PARSE,
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{name}: {}}}",
                argument.type_name(),
                crate::text::owned(argument)
            );
        };
        for (path, value) in fields.iter() {
            meter::spend(8)?;
            let path = UpdatePath::parse(path)?;
            if !matches!(name, "$setOnInsert" | "$unset" | "$rename") {
                out.inserts_only = out.inserts_only.or(path.check_storable().err());
            }
            match row.parse {
                Parse::Modifier(parse) => {
                    let modifier = parse(&path, value, ctx)?;
                    out.operations.push(Operation { path, modifier });
                }
                Parse::Rename => out.renames.push(ops::rename::Rename::parse(path, value)?),
            }
        }
    }
    check_conflicts(&out)?;
    check_filters(&out, d)?;
    out.operations.sort_by(|a, b| a.path.order(&b.path));
    for op in &out.operations {
        out.touched.add(op.path.names(), op.modifier.extent());
    }
    for path in out.renames.iter().flat_map(|r| [&r.from, &r.to]) {
        out.touched.add(path.names(), Extent::Whole);
    }
    out.flat = out.renames.is_empty() && out.operations.iter().all(|op| op.path.steps.len() == 1);
    Ok(out)
}

fn check_conflicts(o: &Operators) -> Result<()> {
    let renamed = o.renames.iter().flat_map(|r| [&r.from, &r.to]);
    let paths: Vec<&UpdatePath> = o.operations.iter().map(|op| &op.path).chain(renamed).collect();
    if paths.len() < 2 {
        return Ok(());
    }
    // What was named before, and everything on the way to it. A client chooses how many there are, so nothing here
    // compares each with each.
    let (mut named, mut passed) = (HashSet::new(), HashSet::new());
    let mut kinds = HashMap::new();
    for path in &paths {
        meter::spend(4)?;
        let text = path.text.as_str();
        let begun = beginnings(text).find(|b| named.contains(b));
        // What is below a path is all elements that filters choose, or all fields.
        let mixed = beginnings(text).filter(|b| b.len() < text.len()).find(|b| {
            let chosen = text[b.len() + 1..].starts_with("$[");
            *kinds.entry(*b).or_insert(chosen) != chosen
        });
        if let Some(at) = begun.or_else(|| passed.contains(text).then_some(text)).or(mixed) {
            bail!(
                CONFLICTING_UPDATE_OPERATORS,
                "Updating the path '{text}' would create a conflict at '{at}'"
            );
        }
        named.insert(text);
        passed.extend(beginnings(text));
    }
    Ok(())
}

fn check_filters(o: &Operators, update: &Document) -> Result<()> {
    let mut used = BTreeSet::new();
    for op in &o.operations {
        for step in &op.path.steps {
            let Step::Filtered(id) = step else { continue };
            if !o.array_filters.contains_key(id) {
                bail!(BAD_VALUE, "No array filter found for identifier '{id}' in path '{}'", op.path.text);
            }
            used.insert(id.as_str());
        }
    }
    for id in o.array_filters.keys() {
        if !used.contains(id.as_str()) {
            bail!(
                FAILED_TO_PARSE,
                "The array filter for identifier '{id}' was not used in the update {}",
                crate::text::document(update.to_doc_buf().doc())
            );
        }
    }
    Ok(())
}

fn filters(list: &[Document], ctx: &QueryContext) -> Result<BTreeMap<String, Matcher>> {
    let mut out = BTreeMap::new();
    for d in list {
        for name in d.keys() {
            match name {
                "$text" | "$where" => bail!(
                    BAD_VALUE,
                    "Error parsing array filter :: caused by :: {name} is not allowed in this context"
                ),
                "$expr" => bail!(
                    QUERY_FEATURE_NOT_ALLOWED,
                    "Error parsing array filter :: caused by :: $expr is not allowed in this context"
                ),
                _ => {}
            }
        }
        let matcher =
            Matcher::parse(d.to_doc_buf().doc(), ctx).map_err(|e| e.context("Error parsing array filter"))?;
        matcher.refuse_near().map_err(|e| e.context("Error parsing array filter"))?;
        let mut names = BTreeSet::new();
        top_names(matcher.root(), &mut names);
        let mut names = names.into_iter();
        let Some(id) = names.next() else {
            bail!(FAILED_TO_PARSE, "Cannot use an expression without a top-level field name in arrayFilters");
        };
        if let Some(other) = names.next() {
            bail!(
                FAILED_TO_PARSE,
                "Error parsing array filter :: caused by :: Expected a single top-level field name, found '{id}' and '{other}'"
            );
        }
        let good =
            id.starts_with(|c: char| c.is_ascii_lowercase()) && id.chars().all(|c| c.is_ascii_alphanumeric());
        if !good {
            bail!(
                BAD_VALUE,
                "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{id}'"
            );
        }
        if out.insert(id.clone(), matcher).is_some() {
            bail!(FAILED_TO_PARSE, "Found multiple array filters with the same top-level field name {id}");
        }
    }
    Ok(out)
}

fn top_names(node: &Node, out: &mut BTreeSet<String>) {
    match node {
        Node::And(list) | Node::Or(list) | Node::Nor(list) => list.iter().for_each(|n| top_names(n, out)),
        Node::Not(inner) => top_names(inner, out),
        Node::Leaf(leaf) => {
            out.extend(leaf.path.parts.first().map(|p| p.name.to_string()));
        }
        _ => {}
    }
}
