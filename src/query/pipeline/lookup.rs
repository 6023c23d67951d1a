//! `$lookup`, `$graphLookup`, `$unionWith`: documents of other collections, read through the host.
//!
//! A `$lookup` by equality alone asks the host once for each batch, for all values of the batch, and joins the answer
//! here by key string. With a pipeline it asks once for each document, or once in all when the pipeline does not depend on
//! the document.

use super::host::{HostStage, Namespace, PipelineHost, Role};
use super::stages::unwind::set;
use super::{Context, Needs, Pipeline, Run, parse};
use crate::expression::{Expression, FieldPath, Vars};
use document::{Collation, Doc, DocBuf, Document, Result, Value, bail, doc, number, path};
use std::collections::HashMap;
use std::sync::Arc;

/// A parsed join.
#[derive(Clone, Debug)]
pub enum Join {
    Lookup(Arc<Lookup>),
    Graph(Arc<Graph>),
    Union { namespace: Namespace, pipeline: Vec<Value>, parsed: Arc<Pipeline> },
}

impl Join {
    /// The sub-pipeline, parsed.
    pub fn pipeline(&self) -> Option<&Pipeline> {
        match self {
            Join::Lookup(l) => Some(&l.parsed),
            Join::Graph(_) => None,
            Join::Union { parsed, .. } => Some(parsed),
        }
    }
    pub(super) fn needs(&self) -> Needs {
        match self {
            Join::Lookup(l) => match &l.equality {
                Some((local, _)) if l.bindings.is_empty() => Needs::Passing(vec![local.to_string()]),
                None if l.bindings.is_empty() => Needs::Passing(Vec::new()),
                _ => Needs::Everything,
            },
            Join::Graph(_) => Needs::Everything,
            Join::Union { .. } => Needs::Passing(Vec::new()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Lookup {
    namespace: Namespace,
    /// Local and foreign path.
    equality: Option<(FieldPath, FieldPath)>,
    bindings: Vec<(String, Expression)>,
    pipeline: Option<Vec<Value>>,
    parsed: Pipeline,
    into: FieldPath,
}

fn namespace_of(stage: &str, v: &Value, ctx: &Context) -> Result<Namespace> {
    match v {
        Value::String(s) if s.is_empty() || s.starts_with('.') || s.contains('\0') => {
            bail!(INVALID_NAMESPACE, "Invalid namespace specified '{}.{s}'", ctx.namespace.db)
        }
        Value::String(s) => Ok(Namespace::new(&*ctx.namespace.db, s)),
        Value::Document(d) => {
            if let Some(bad) = d.keys().find(|k| !["db", "coll"].contains(k)) {
                bail!(IDL_UNKNOWN_FIELD, "BSON field 'from.{bad}' is an unknown field.");
            }
            if let Some((name, v)) = d.iter().find(|(_, v)| !matches!(v, Value::String(_))) {
                bail!(
                    TYPE_MISMATCH,
                    "BSON field 'from.{name}' is the wrong type '{}', expected type 'string'",
                    v.type_name()
                );
            }
            // Only these collections of other databases may be joined.
            match (d.get_str("db"), d.get_str("coll")) {
                (Some(db), Some(coll)) if db == ctx.namespace.db => Ok(Namespace::new(db, coll)),
                (Some(db @ "config"), Some(coll)) => Ok(Namespace::new(db, coll)),
                (Some(db @ "local"), Some(coll @ "oplog.rs")) => Ok(Namespace::new(db, coll)),
                _ => bail!(
                    FAILED_TO_PARSE,
                    "{stage} with syntax {{from: {{db:<>, coll:<>}},..}} is not supported for this db and coll combination"
                ),
            }
        }
        v => bail!(
            FAILED_TO_PARSE,
            "{stage} argument 'from: {}' must be a string, is type {}",
            crate::expression::parse::show(v),
            v.type_name()
        ),
    }
}

pub fn parse_lookup(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    let Value::Document(d) = v else {
        bail!(
            FAILED_TO_PARSE,
            "the $lookup stage specification must be an object, but found {}",
            v.type_name()
        );
    };
    let known = ["from", "localField", "foreignField", "as", "let", "pipeline", "_internalUnwind"];
    if let Some(bad) = d.keys().find(|k| !known.contains(k)) {
        bail!(IDL_UNKNOWN_FIELD, "BSON field '$lookup.{bad}' is an unknown field.");
    }
    if let Some(twice) = d.keys().enumerate().find(|(i, k)| d.keys().take(*i).any(|other| other == *k)) {
        bail!(IDL_DUPLICATE_FIELD, "BSON field '$lookup.{}' is a duplicate field", twice.1);
    }
    let text = |field: &str| match d.get_present(field) {
        None => Ok(None),
        Some(Value::String(s)) => Ok(Some(s.as_str())),
        Some(v) => Err(document::err!(
            TYPE_MISMATCH,
            "BSON field '$lookup.{field}' is the wrong type '{}', expected type 'string'",
            v.type_name()
        )),
    };
    let Some(into) = text("as")? else {
        bail!(IDL_FAILED_TO_PARSE, "BSON field '$lookup.as' is missing but a required field");
    };
    // An empty path counts as absent.
    let (local, foreign) =
        (text("localField")?.filter(|s| !s.is_empty()), text("foreignField")?.filter(|s| !s.is_empty()));
    let pipeline = match d.get_present("pipeline") {
        None => None,
        Some(Value::Array(stages)) => Some(stages.clone()),
        Some(_) => bail!(TYPE_MISMATCH, "A pipeline stage's 'pipeline' must be an array"),
    };
    let namespace = match d.get("from") {
        Some(v) => namespace_of(name, v, ctx)?,
        None => match pipeline.as_deref() {
            Some([Value::Document(first), ..]) if first.contains_key("$documents") => {
                Namespace::new(&*ctx.namespace.db, "")
            }
            _ => bail!(FAILED_TO_PARSE, "must specify 'from' field for a $lookup"),
        },
    };
    let equality = match (local, foreign) {
        (Some(l), Some(f)) => Some((FieldPath::parse(l)?, FieldPath::parse(f)?)),
        (None, None) if pipeline.is_some() => None,
        (None, None) => {
            bail!(
                FAILED_TO_PARSE,
                "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified"
            )
        }
        _ => bail!(
            FAILED_TO_PARSE,
            "$lookup requires both or neither of 'localField' and 'foreignField' to be specified"
        ),
    };
    let scope = ctx.scope();
    let mut bindings = Vec::new();
    let mut inner = ctx.clone();
    inner.namespace = namespace.clone();
    inner.in_join = true;
    match d.get_present("let") {
        None => {}
        Some(Value::Document(_)) if pipeline.is_none() => {
            bail!(FAILED_TO_PARSE, "$lookup with a 'let' argument must also specify 'pipeline'")
        }
        Some(Value::Document(bound)) => {
            for (name, v) in bound.iter() {
                crate::expression::parse::check_variable_name(name, true)?;
                bindings.push((name.to_string(), Expression::parse(v, &scope)?));
                inner.query.variables.insert(name, Value::Undefined);
            }
        }
        Some(v) => bail!(
            TYPE_MISMATCH,
            "BSON field '$lookup.let' is the wrong type '{}', expected type 'object'",
            v.type_name()
        ),
    }
    let parsed = match &pipeline {
        None => Pipeline::default(),
        Some(stages) => parse::parse_nested(name, stages, &inner, 51047)?,
    };
    let lookup = Lookup {
        namespace: namespace.clone(),
        equality,
        bindings,
        pipeline,
        parsed,
        into: FieldPath::parse(into)?,
    };
    Ok(HostStage {
        name,
        spec: v.clone(),
        namespace: Some(namespace),
        role: Role::Join,
        join: Some(Join::Lookup(Arc::new(lookup))),
    })
}

fn key(v: &Value, c: &Collation) -> Vec<u8> {
    let mut out = Vec::new();
    c.append_value_key(&mut out, v, false);
    out
}

/// The values of a local path that take part in an equality: elements of arrays; null when there is none.
fn local_values(d: Doc<'_>, local: &FieldPath) -> Vec<Value> {
    let mut out = Vec::new();
    path::for_each_leaf(d, &local.to_string(), &mut |v: Option<document::ValueRef<'_>>| {
        match v {
            None => {}
            Some(document::ValueRef::Array(items)) => out.extend(items.to_array()),
            Some(v) => out.push(v.to_value()),
        }
        false
    });
    if out.is_empty() {
        out.push(Value::Null);
    }
    out
}

/// A filter for documents whose `foreign` equals one of the values. Regular expressions are compared, not matched.
fn equals_any(foreign: &FieldPath, values: Vec<Value>) -> Document {
    let path = foreign.to_string();
    let (regexes, plain): (Vec<Value>, Vec<Value>) =
        values.into_iter().partition(|v| matches!(v, Value::Regex(_)));
    let within =
        |values| Document(vec![(path.clone(), Value::Document(doc! {"$in": (Value::Array(values))}))]);
    if regexes.is_empty() {
        return within(plain);
    }
    let one = |v: Value| Value::Document(Document(vec![(path.clone(), Value::Document(doc! {"$eq": v}))]));
    let mut any: Vec<Value> = regexes.into_iter().map(one).collect();
    any.push(Value::Document(within(plain)));
    doc! {"$or": (Value::Array(any))}
}

async fn all(mut source: Box<dyn super::Source>) -> Result<Vec<DocBuf>> {
    let mut out = Vec::new();
    while let Some(batch) = source.next().await? {
        out.extend(batch);
    }
    Ok(out)
}

/// Variables in scope, for a sub-pipeline.
fn outer(run: &Run) -> Vec<(String, Value)> {
    let values = run.vars.values().iter().map(|v| v.clone().unwrap_or(Value::Undefined));
    run.names.iter().cloned().zip(values).collect()
}

/// A running `$lookup`.
pub struct RunningLookup {
    plan: Arc<Lookup>,
    /// The result of a sub-pipeline that does not depend on the document.
    constant: Option<Vec<Value>>,
    vars: Vars,
}

impl RunningLookup {
    pub fn new(plan: Arc<Lookup>, run: &Run) -> RunningLookup {
        RunningLookup { plan, constant: None, vars: run.vars.clone() }
    }
    pub async fn push(
        &mut self,
        batch: Vec<DocBuf>,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<Vec<DocBuf>> {
        let plan = self.plan.clone();
        match (&plan.equality, &plan.pipeline) {
            (Some((local, foreign)), None) => self.by_equality(batch, local, foreign, host, run).await,
            _ => self.by_pipeline(batch, host, run).await,
        }
    }

    async fn by_equality(
        &mut self,
        batch: Vec<DocBuf>,
        local: &FieldPath,
        foreign: &FieldPath,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<Vec<DocBuf>> {
        let mut wanted: HashMap<Vec<u8>, Value> = HashMap::new();
        let mut keys: Vec<Vec<Vec<u8>>> = Vec::with_capacity(batch.len());
        for d in &batch {
            let mut own = Vec::new();
            for v in local_values(d.doc(), local) {
                let k = key(&v, &run.collation);
                own.push(k.clone());
                wanted.entry(k).or_insert(v);
            }
            keys.push(own);
        }
        // In key order, so that the filter is the same whatever the hasher.
        let mut values: Vec<(Vec<u8>, Value)> = wanted.into_iter().collect();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        if values.is_empty() {
            return Ok(batch.iter().map(|d| self.attach(d, Vec::new())).collect());
        }
        let filter = equals_any(foreign, values.into_iter().map(|(_, v)| v).collect());
        let stages = vec![Value::Document(doc! {"$match": filter})];
        let found = all(host.run(&self.plan.namespace, stages, outer(run), run).await?).await?;
        let index = by_key(&found, foreign, &run.collation);
        Ok(batch
            .iter()
            .zip(keys)
            .map(|(d, own)| {
                let mut at: Vec<usize> = own.iter().filter_map(|k| index.get(k)).flatten().copied().collect();
                at.sort_unstable();
                at.dedup();
                self.attach(d, at.into_iter().map(|i| Value::Document(found[i].to_document())).collect())
            })
            .collect())
    }

    async fn by_pipeline(
        &mut self,
        batch: Vec<DocBuf>,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<Vec<DocBuf>> {
        let plan = self.plan.clone();
        let independent = plan.equality.is_none() && plan.bindings.is_empty();
        let mut out = Vec::with_capacity(batch.len());
        for d in batch {
            let joined = match &self.constant {
                Some(found) => found.clone(),
                None => {
                    let mut stages = Vec::new();
                    if let Some((local, foreign)) = &plan.equality {
                        let filter = equals_any(foreign, local_values(d.doc(), local));
                        stages.push(Value::Document(doc! {"$match": filter}));
                    }
                    stages.extend(plan.pipeline.iter().flatten().cloned());
                    let mut values = outer(run);
                    for (name, e) in &plan.bindings {
                        // Undefined stands for missing.
                        let v = e.eval(d.doc(), &mut self.vars)?.unwrap_or(Value::Undefined);
                        values.retain(|(n, _)| n != name);
                        values.push((name.clone(), v));
                    }
                    let found = all(host.run(&plan.namespace, stages, values, run).await?).await?;
                    found.iter().map(|d| Value::Document(d.to_document())).collect()
                }
            };
            if independent && self.constant.is_none() {
                self.constant = Some(joined.clone());
            }
            out.push(self.attach(&d, joined));
        }
        Ok(out)
    }

    fn attach(&self, d: &DocBuf, joined: Vec<Value>) -> DocBuf {
        let mut tree = d.to_document();
        set(&mut tree, self.plan.into.parts(), Value::Array(joined));
        tree.to_doc_buf()
    }
}

/// Positions of the documents by each value at the path.
fn by_key(found: &[DocBuf], foreign: &FieldPath, c: &Collation) -> HashMap<Vec<u8>, Vec<usize>> {
    let path = foreign.to_string();
    let mut index: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (i, d) in found.iter().enumerate() {
        path::for_each_value(d.doc(), &path, &mut |v: Option<document::ValueRef<'_>>| {
            let mut k = Vec::new();
            match v {
                Some(v) => c.append_key(&mut k, v, false),
                None => c.append_value_key(&mut k, &Value::Null, false),
            }
            index.entry(k).or_default().push(i);
            false
        });
    }
    index
}

#[derive(Clone, Debug)]
pub struct Graph {
    namespace: Namespace,
    start: Expression,
    from: FieldPath,
    to: FieldPath,
    into: FieldPath,
    depth_max: Option<i64>,
    depth_field: Option<FieldPath>,
    restrict: Option<Document>,
}

pub fn parse_graph(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    let Value::Document(d) = v else {
        bail!(
            FAILED_TO_PARSE,
            "the $graphLookup stage specification must be an object, but found {}",
            v.type_name()
        );
    };
    let known = [
        "from",
        "startWith",
        "connectFromField",
        "connectToField",
        "as",
        "maxDepth",
        "depthField",
        "restrictSearchWithMatch",
    ];
    if let Some(bad) = d.keys().find(|k| !known.contains(k)) {
        bail!(40104, "Unknown argument to $graphLookup: {bad}");
    }
    let text = |field: &str| match d.get(field) {
        None => Ok(None),
        Some(Value::String(s)) => {
            Ok(Some(FieldPath::parse(s.strip_prefix('$').filter(|_| false).unwrap_or(s))?))
        }
        Some(v) => bail!(40103, "expected string as argument for {field}, found: {}", v.type_name()),
    };
    let depth_max = match d.get("maxDepth") {
        None => None,
        Some(v) if !v.is_number() => bail!(40100, "maxDepth must be numeric, found type: {}", v.type_name()),
        Some(v) => match number::to_i64_exact(v) {
            Some(n) if n >= 0 => Some(n),
            Some(n) => bail!(40101, "maxDepth requires a nonnegative argument, found: {n}"),
            None => bail!(
                40102,
                "maxDepth could not be represented as a long long: {}",
                crate::expression::parse::show(v)
            ),
        },
    };
    let restrict = match d.get("restrictSearchWithMatch") {
        None => None,
        Some(Value::Document(m)) => {
            crate::matcher::Matcher::parse(m.to_doc_buf().doc(), &ctx.query)?;
            Some(m.clone())
        }
        Some(v) => bail!(40185, "restrictSearchWithMatch must be an object, found {}", v.type_name()),
    };
    let Some(from) = d.get("from") else {
        bail!(FAILED_TO_PARSE, "$graphLookup requires 'from' to be specified")
    };
    let namespace = namespace_of(name, from, ctx)?;
    let (Some(into), Some(start), Some(from), Some(to)) =
        (text("as")?, d.get("startWith"), text("connectFromField")?, text("connectToField")?)
    else {
        bail!(
            40105,
            "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified."
        );
    };
    let graph = Graph {
        namespace: namespace.clone(),
        start: Expression::parse(start, &ctx.scope())?,
        from,
        to,
        into,
        depth_max,
        depth_field: text("depthField")?,
        restrict,
    };
    Ok(HostStage {
        name,
        spec: v.clone(),
        namespace: Some(namespace),
        role: Role::Join,
        join: Some(Join::Graph(Arc::new(graph))),
    })
}

impl Graph {
    /// Searches breadth first for each document of the batch.
    pub async fn push(&self, batch: Vec<DocBuf>, host: &dyn PipelineHost, run: &Run) -> Result<Vec<DocBuf>> {
        let mut vars = run.vars.clone();
        let mut out = Vec::with_capacity(batch.len());
        for d in batch {
            let start = match self.start.eval(d.doc(), &mut vars)? {
                None => Vec::new(),
                Some(Value::Array(items)) => items,
                Some(v) => vec![v],
            };
            let found = self.search(start, host, run).await?;
            let mut tree = d.to_document();
            set(&mut tree, self.into.parts(), Value::Array(found));
            out.push(tree.to_doc_buf());
        }
        Ok(out)
    }

    async fn search(
        &self,
        mut frontier: Vec<Value>,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<Vec<Value>> {
        let mut asked = std::collections::HashSet::new();
        let mut seen = std::collections::HashSet::new();
        let mut out = Vec::new();
        let (mut depth, mut bytes) = (0i64, 0usize);
        loop {
            frontier.retain(|v| asked.insert(key(v, &run.collation)));
            if frontier.is_empty() || self.depth_max.is_some_and(|most| depth > most) {
                return Ok(out);
            }
            let mut filter = equals_any(&self.to, std::mem::take(&mut frontier));
            if let Some(restrict) = &self.restrict {
                filter = doc! {"$and": [filter, restrict]};
            }
            let stages = vec![Value::Document(doc! {"$match": filter})];
            for d in all(host.run(&self.namespace, stages, outer(run), run).await?).await? {
                let id = d.get("_id").map_or(Value::Null, |v| v.to_value());
                if !seen.insert(key(&id, &Collation::SIMPLE)) {
                    continue;
                }
                bytes += d.bytes().len();
                if bytes > run.memory_limit {
                    bail!(40099, "$graphLookup reached maximum memory consumption");
                }
                frontier.extend(match self.from.get(d.doc()) {
                    None => Vec::new(),
                    Some(Value::Array(items)) => items,
                    Some(v) => vec![v],
                });
                let mut tree = d.to_document();
                if let Some(field) = &self.depth_field {
                    set(&mut tree, field.parts(), Value::Int64(depth));
                }
                out.push(Value::Document(tree));
            }
            depth += 1;
        }
    }
}

pub fn parse_union(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    let (namespace, pipeline) = match v {
        Value::String(s) => (Namespace::new(&*ctx.namespace.db, s), Vec::new()),
        Value::Document(d) => {
            if let Some(bad) = d.keys().find(|k| !["coll", "pipeline", "db"].contains(k)) {
                bail!(IDL_UNKNOWN_FIELD, "BSON field '$unionWith.{bad}' is an unknown field.");
            }
            let pipeline = match d.get("pipeline") {
                None => Vec::new(),
                Some(Value::Array(stages)) => stages.clone(),
                Some(v) => bail!(
                    TYPE_MISMATCH,
                    "BSON field '$unionWith.pipeline' is the wrong type '{}', expected type 'array'",
                    v.type_name()
                ),
            };
            let coll = match d.get("coll") {
                Some(Value::String(s)) => s.clone(),
                Some(v) => bail!(
                    TYPE_MISMATCH,
                    "BSON field '$unionWith.coll' is the wrong type '{}', expected type 'string'",
                    v.type_name()
                ),
                None if pipeline
                    .first()
                    .and_then(Value::as_document)
                    .is_some_and(|f| f.contains_key("$documents")) =>
                {
                    String::new()
                }
                None if pipeline.is_empty() => bail!(
                    FAILED_TO_PARSE,
                    "$unionWith stage without explicit collection must have a pipeline with $documents as first stage"
                ),
                None => bail!(
                    FAILED_TO_PARSE,
                    "$unionWith stage without explicit collection must have a pipeline with $documents as first stage"
                ),
            };
            (Namespace::new(d.get_str("db").unwrap_or(&ctx.namespace.db), coll), pipeline)
        }
        v => bail!(
            FAILED_TO_PARSE,
            "the $unionWith stage specification must be an object or string, but found {}",
            v.type_name()
        ),
    };
    let mut inner = ctx.clone();
    inner.namespace = namespace.clone();
    inner.in_join = true;
    let parsed = Arc::new(parse::parse_nested(name, &pipeline, &inner, 31441)?);
    let join = Join::Union { namespace: namespace.clone(), pipeline, parsed };
    Ok(HostStage { name, spec: v.clone(), namespace: Some(namespace), role: Role::Join, join: Some(join) })
}

/// All documents of a `$unionWith`.
pub async fn union(
    namespace: &Namespace,
    pipeline: &[Value],
    host: &dyn PipelineHost,
    run: &Run,
) -> Result<Vec<DocBuf>> {
    all(host.run(namespace, pipeline.to_vec(), outer(run), run).await?).await
}
