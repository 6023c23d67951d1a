//! `$lookup` and `$unionWith`: documents of other collections, read through the host. (`$graphLookup`: [`super::graph`].)
//!
//! A `$lookup` by equality alone asks the host once for many documents, for all their values, and joins the answer
//! here by key string; when the answer is large it asks for fewer at once, down to one, whose foreign documents have a
//! limit. Where finding them took a scan of the foreign collection, which it would for the next documents too, the whole collection
//! is read once instead and becomes the [`HashSide`] of the rest of the join, in files where it does not fit; only where
//! it may not use the disk, and does not fit, the join goes on asking.
//! With a pipeline it asks once for each document, or once in all when the pipeline does not depend on the document.

use super::account::{Kind, Use};
use super::graph::Graph;
use super::hash_side::HashSide;
use super::host::{HostStage, Namespace, PipelineHost, Role};
use super::spill::Space;
use super::stages::unwind::set;
use super::{Batch, Charge, Context, Flow, Needs, Pipeline, Run, parse};
use crate::accumulator::value_bytes;
use crate::expression::object::Merging;
use crate::expression::{Constants, Expression, FieldPath, Vars};
use crate::matcher::Matcher;
use document::fts::TextIndex;
use document::{
    Collation, Doc, DocBuf, DocWriter, Document, Result, Value, bail, doc, meter, path, wrong_type,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
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
            Join::Lookup(l) => {
                let bound: Option<Vec<Vec<String>>> =
                    l.bindings.iter().map(|(_, e)| e.needed_fields()).collect();
                let local = l.equality.iter().map(|(local, _)| local.to_string());
                bound.map_or(Needs::Everything, |b| {
                    Needs::Passing(b.into_iter().flatten().chain(local).collect())
                })
            }
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
    /// The pipeline gives the same for every document.
    is_constant: bool,
    parsed: Pipeline,
    into: FieldPath,
}

/// Whether a pipeline, or what is nested in it, draws random numbers. (It may say so of one that only names the operators.)
pub(super) fn is_random(stages: &[Value]) -> bool {
    stages.iter().any(|v| match v {
        Value::Document(d) => d.iter().any(|(name, v)| {
            matches!(name, "$rand" | "$sample" | "$sampleRate") || is_random(std::slice::from_ref(v))
        }),
        Value::Array(items) => is_random(items),
        _ => false,
    })
}

pub(super) fn namespace_of(stage: &str, v: &Value, ctx: &Context) -> Result<Namespace> {
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
                return Err(document::wrong_type(&format!("from.{name}"), v.type_name(), "string"));
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

const LOOKUP_FIELDS: [&str; 7] =
    ["from", "localField", "foreignField", "as", "let", "pipeline", "_internalUnwind"];

pub fn parse_lookup(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    let Value::Document(d) = v else {
        bail!(
            FAILED_TO_PARSE,
            "the $lookup stage specification must be an object, but found {}",
            v.type_name()
        );
    };
    let documents = |stages: &Vec<Value>| {
        stages.first().and_then(Value::as_document).is_some_and(|first| first.contains_key("$documents"))
    };
    if d.get("from").is_none() && !d.get_array("pipeline").is_some_and(documents) {
        bail!(FAILED_TO_PARSE, "must specify 'from' field for a $lookup");
    }
    check_lookup_fields(d)?;
    let Some(into) = lookup_text(d, "as")? else {
        bail!(FAILED_TO_PARSE, "must specify 'as' field for a $lookup");
    };
    // An empty path counts as absent.
    let path = |field| Ok(lookup_text(d, field)?.filter(|s| !s.is_empty()));
    let (local, foreign) = (path("localField")?, path("foreignField")?);
    let pipeline = match d.get("pipeline") {
        None => None,
        Some(Value::Array(stages)) => Some(stages.clone()),
        Some(_) => bail!(TYPE_MISMATCH, "A pipeline stage's 'pipeline' must be an array"),
    };
    let namespace = match d.get("from") {
        Some(v) => namespace_of(name, v, ctx)?,
        None => Namespace::new(&*ctx.namespace.db, ""),
    };
    let equality = equality(local, foreign, pipeline.is_some())?;
    let bindings = lookup_bindings(d, pipeline.is_some(), ctx)?;
    let mut inner = joined(ctx, &namespace, pipeline.as_deref().unwrap_or_default())?;
    if !bindings.is_empty() {
        inner.query.variables = with_bound(std::mem::take(&mut inner.query.variables), &bindings);
    }
    let parsed = match &pipeline {
        None => Pipeline::default(),
        Some(stages) => parse::parse_nested(name, stages, &inner, 51047)?,
    };
    let into = FieldPath::parse(into)?;
    let uncorrelated = equality.is_none() && bindings.is_empty();
    let is_constant = uncorrelated && !is_random(pipeline.as_deref().unwrap_or_default());
    let from = namespace.clone();
    let lookup = Lookup { namespace: from, equality, bindings, pipeline, is_constant, parsed, into };
    Ok(HostStage {
        name,
        spec: v.clone(),
        namespace: Some(namespace),
        role: Role::Join,
        join: Some(Join::Lookup(Arc::new(lookup))),
    })
}

/// The variables of a command with those of a `$lookup`, whose values are not known yet.
fn with_bound(variables: Document, bindings: &[(String, Expression)]) -> Document {
    let mut bound = Merging::default();
    bound.merge(variables);
    for (name, _) in bindings {
        bound.insert(name.clone(), Value::Undefined);
    }
    bound.into_document()
}

/// The context of another collection's pipeline. Which text index that has is known where the pipeline runs; here a leading `$text`
/// must only be well formed, and its score may be asked for.
fn joined(ctx: &Context, namespace: &Namespace, stages: &[Value]) -> Result<Context> {
    super::text::refuse_later(stages)?;
    let mut inner = ctx.clone();
    inner.namespace = namespace.clone();
    inner.in_join = true;
    // What never runs is never optimised.
    inner.query.constants = Constants::default();
    (inner.query.text, inner.query.text_index) = (None, None);
    let first = stages.first().filter(|stage| super::text::is_text_match(stage));
    if let Some(filter) = first.and_then(Value::as_document).and_then(|d| d.get_document("$match")) {
        inner.query.text_index = Some(Arc::new(TextIndex::parse(&doc! { "weights": { "$**": 1 } })?));
        inner.query.text = Matcher::parse(filter.to_doc_buf().doc(), &inner.query)?.text().cloned();
    }
    Ok(inner)
}

fn check_lookup_fields(d: &Document) -> Result<()> {
    if let Some(bad) = d.keys().find(|k| !LOOKUP_FIELDS.contains(k)) {
        bail!(FAILED_TO_PARSE, "unknown argument to $lookup: {bad}");
    }
    Ok(())
}

fn lookup_text<'a>(d: &'a Document, field: &str) -> Result<Option<&'a str>> {
    match d.get_present(field) {
        None => Ok(None),
        Some(Value::String(s)) => Ok(Some(s)),
        Some(v) => Err(wrong_type(&format!("$lookup.{field}"), v.type_name(), "string")),
    }
}

/// The two paths of a join by equality; a join by pipeline may do without.
fn equality(
    local: Option<&str>,
    foreign: Option<&str>,
    has_pipeline: bool,
) -> Result<Option<(FieldPath, FieldPath)>> {
    match (local, foreign) {
        (Some(l), Some(f)) => Ok(Some((FieldPath::parse(l)?, FieldPath::parse(f)?))),
        (None, None) if has_pipeline => Ok(None),
        (None, None) => bail!(
            FAILED_TO_PARSE,
            "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified"
        ),
        _ => bail!(
            FAILED_TO_PARSE,
            "$lookup requires both or neither of 'localField' and 'foreignField' to be specified"
        ),
    }
}

/// The variables of `let`, which only a pipeline can read.
fn lookup_bindings(d: &Document, has_pipeline: bool, ctx: &Context) -> Result<Vec<(String, Expression)>> {
    let bound = match d.get_present("let") {
        None => return Ok(Vec::new()),
        Some(Value::Document(_)) if !has_pipeline => {
            bail!(FAILED_TO_PARSE, "$lookup with a 'let' argument must also specify 'pipeline'")
        }
        Some(Value::Document(bound)) => bound,
        Some(v) => return Err(wrong_type("$lookup.let", v.type_name(), "object")),
    };
    let scope = ctx.scope();
    let binding = |(name, v): (&str, &Value)| {
        crate::expression::parse::check_variable_name(name, true)?;
        Ok((name.to_string(), Expression::parse(v, &scope)?))
    };
    bound.iter().map(binding).collect()
}

pub(super) fn key(v: &Value, c: &Collation) -> Vec<u8> {
    let mut out = Vec::new();
    c.append_value_key(&mut out, v, false);
    out
}

/// The values of a local path that take part in an equality: elements of arrays; null when there is none.
///
/// # Errors
/// Those of [`meter::spend`].
fn local_values(d: Doc<'_>, local: &FieldPath) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    path::for_each_leaf(d, &local.to_string(), &mut |v: Option<document::ValueRef<'_>>| {
        match v {
            None => {}
            Some(document::ValueRef::Array(items)) => out.extend(items.to_array()),
            Some(v) => out.push(v.to_value()),
        }
        Ok(false)
    })?;
    if out.is_empty() {
        out.push(Value::Null);
    }
    Ok(out)
}

/// A filter for documents whose `foreign` equals one of the values. Regular expressions are compared, not matched.
pub(super) fn equals_any(foreign: &FieldPath, values: Vec<Value>) -> Document {
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

/// Variables in scope, for a sub-pipeline.
pub(super) fn outer(run: &Run) -> Vec<(String, Value)> {
    let values = run.vars.values().iter().map(|v| v.clone().unwrap_or(Value::Undefined));
    run.names.iter().cloned().zip(values).collect()
}

/// What the foreign documents of several documents, found by one question, may hold together. Beyond it fewer are asked
/// for at once.
const FOUND_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Documents whose values are asked for at once.
const ASKED_MAX: usize = 512;

/// Documents of the input with the keys of their values.
type Keyed = (DocBuf, Vec<Vec<u8>>);

/// Where a `$lookup` by equality finds foreign documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Means {
    /// The host is asked, for some documents at once.
    Ask,
    /// The same, but the last answer took a scan of the foreign collection.
    Scanned,
    /// The hash side has the whole foreign collection.
    Hash,
    /// The host is asked although it scans: a hash side is too large.
    AskOnly,
}

/// A running `$lookup`.
pub struct RunningLookup {
    plan: Arc<Lookup>,
    /// The result of a sub-pipeline that does not depend on the document.
    constant: Option<Vec<DocBuf>>,
    means: Means,
    /// Documents whose foreign documents stand in `side`, and that have not been handed on.
    keyed: std::vec::IntoIter<Keyed>,
    side: HashSide,
    /// How many documents to ask for at once: fewer after much was found.
    asked_max: usize,
    vars: Vars,
    charge: Charge,
    /// What a hash side of the whole foreign collection takes.
    side_charge: Charge,
    space: Option<Arc<dyn Space>>,
}

impl RunningLookup {
    pub fn new(plan: Arc<Lookup>, run: &Run) -> RunningLookup {
        RunningLookup {
            plan,
            constant: None,
            means: Means::Ask,
            keyed: Vec::new().into_iter(),
            side: HashSide::default(),
            asked_max: ASKED_MAX,
            vars: run.vars.clone(),
            charge: run.charge(run.limits.lookup),
            side_charge: run.charge(run.limits.lookup_side).counted_as(Kind::HashLookup),
            space: run.space(),
        }
    }
    /// Joins documents of the input as long as there is room for them.
    pub async fn run(
        &mut self,
        input: &mut Batch,
        to: &mut Batch,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<Flow> {
        let plan = self.plan.clone();
        loop {
            self.hand_on(to)?;
            if to.is_full() {
                return Ok(match self.keyed.len() {
                    0 => Flow::Continue,
                    _ => Flow::More,
                });
            }
            if input.is_empty() {
                return Ok(Flow::Continue);
            }
            match (&plan.equality, &plan.pipeline) {
                (Some((local, foreign)), None) => self.ask(input, local, foreign, host, run).await?,
                _ => self.by_pipeline(input, to, host, run).await?,
            }
        }
    }

    /// Hands on documents that were joined by equality.
    fn hand_on(&mut self, to: &mut Batch) -> Result<()> {
        while !to.is_full()
            && let Some((d, own)) = self.keyed.next()
        {
            let places = self.side.find(&own)?;
            self.check_bytes(places.iter().map(|place| place.length as usize).sum())?;
            let found = self.side.documents(&places)?;
            let found: Vec<&DocBuf> = found.iter().map(|d| &**d).collect();
            to.push(attach(&d, &self.plan.into, &found)?)?;
        }
        let is_held = self.means == Means::Hash || self.constant.is_some();
        if self.keyed.len() == 0 && !is_held && self.charge.bytes() > 0 {
            self.side = HashSide::default();
            self.charge.set(0);
        }
        Ok(())
    }

    fn check_bytes(&self, bytes: usize) -> Result<()> {
        let most = self.charge.limit();
        if bytes > most {
            bail!(
                4568,
                "Total size of documents in {} matching pipeline's $lookup stage exceeds {most} bytes",
                self.plan.namespace.collection
            );
        }
        Ok(())
    }

    /// Finds the foreign documents of some documents at once.
    async fn ask(
        &mut self,
        input: &mut Batch,
        local: &FieldPath,
        foreign: &FieldPath,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<()> {
        if self.means == Means::Scanned {
            self.means = match self.read_whole(foreign, host, run).await? {
                true => Means::Hash,
                false => Means::AskOnly,
            };
        }
        let mut wanted: HashMap<Vec<u8>, Value> = HashMap::new();
        let mut docs: Vec<Keyed> = Vec::new();
        let mut asked = run.charge(self.charge.limit());
        while docs.len() < self.asked_max
            && let Some(d) = input.pop()
        {
            let mut own = Vec::new();
            for v in local_values(d.doc(), local)? {
                meter::spend(1)?;
                let k = key(&v, &run.collation);
                asked.add(k.len());
                own.push(k.clone());
                if self.means != Means::Hash
                    && let Entry::Vacant(place) = wanted.entry(k)
                {
                    asked.add(place.key().len() + value_bytes(&v));
                    place.insert(v);
                }
            }
            // A value that stands there often finds the same documents.
            own.sort_unstable();
            own.dedup();
            docs.push((d, own));
        }
        if self.means == Means::Hash {
            self.keyed = docs.into_iter();
            return Ok(());
        }
        // In key order, so that the filter is the same whatever the hasher.
        let mut values: Vec<(Vec<u8>, Value)> = wanted.into_iter().collect();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        let filter = equals_any(foreign, values.into_iter().map(|(_, v)| v).collect());
        let stages = vec![Value::Document(doc! {"$match": filter})];
        let most = if docs.len() > 1 { FOUND_BYTES_MAX } else { self.charge.limit() };
        match self.collect(stages, outer(run), most, host, run).await? {
            Some(found) => {
                for d in found {
                    self.side.push(d, foreign, &run.collation)?;
                }
                self.keyed = docs.into_iter();
            }
            None if docs.len() == 1 => return self.check_bytes(usize::MAX),
            None => {
                self.asked_max = (docs.len() / 4).max(1);
                docs.into_iter().rev().for_each(|(d, _)| input.put_back(d));
            }
        }
        Ok(())
    }

    /// Makes the whole foreign collection the hash side; false when it does not fit and may not go to files.
    async fn read_whole(&mut self, foreign: &FieldPath, host: &dyn PipelineHost, run: &Run) -> Result<bool> {
        let mut source = host.run(&self.plan.namespace, Vec::new(), outer(run), run).await?;
        while let Some(batch) = source.next(host).await? {
            for d in batch {
                self.side_charge.add(self.side.push(d, foreign, &run.collation)?);
            }
            if !self.side_charge.is_over() {
                continue;
            }
            let Some(space) = &self.space else {
                source.end(host);
                self.side = HashSide::default();
                self.side_charge.set(0);
                return Ok(false);
            };
            self.side_charge.spilled(self.side.spill(space)?);
        }
        if let Some(space) = &self.space
            && let Some((stored, left)) = self.side.settle(space)?
        {
            self.side_charge.spilled(stored);
            self.side_charge.set(left);
        }
        self.asked_max = ASKED_MAX;
        Ok(true)
    }

    /// What the hash side took.
    pub fn used(&self) -> Option<Use> {
        (self.means == Means::Hash).then_some(self.side_charge.used)
    }

    /// What a sub-pipeline gives; `None` when it is more than `most` bytes.
    async fn collect(
        &mut self,
        stages: Vec<Value>,
        values: Vec<(String, Value)>,
        most: usize,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<Option<Vec<DocBuf>>> {
        let mut source = host.run(&self.plan.namespace, stages, values, run).await?;
        if source.scans() && self.means == Means::Ask {
            self.means = Means::Scanned;
        }
        let (mut found, mut bytes) = (Vec::new(), 0);
        while let Some(batch) = source.next(host).await? {
            bytes += batch.iter().map(|d| d.bytes().len()).sum::<usize>();
            if bytes > most {
                source.end(host);
                self.charge.set(0);
                return Ok(None);
            }
            found.extend(batch);
            self.charge.set(bytes);
        }
        Ok(Some(found))
    }

    /// The variables of a document's sub-pipeline: those from outside, and the join's own, which hide them.
    fn bound_values(&mut self, d: &DocBuf, run: &Run) -> Result<Vec<(String, Value)>> {
        let mut values = outer(run);
        let own: HashMap<&str, usize> =
            self.plan.bindings.iter().enumerate().map(|(i, (name, _))| (name.as_str(), i)).collect();
        values.retain(|(name, _)| !own.contains_key(name.as_str()));
        for (i, (name, e)) in self.plan.bindings.iter().enumerate() {
            // Undefined stands for missing.
            let v = e.eval(d.doc(), &mut self.vars)?.unwrap_or(Value::Undefined);
            // Of those with one name the last counts.
            if own.get(name.as_str()) == Some(&i) {
                values.push((name.clone(), v));
            }
        }
        Ok(values)
    }

    /// Joins one document with what the sub-pipeline gives for it.
    async fn by_pipeline(
        &mut self,
        input: &mut Batch,
        to: &mut Batch,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<()> {
        let plan = self.plan.clone();
        let Some(d) = input.pop() else { return Ok(()) };
        if let Some(found) = &self.constant {
            return to.push(attach(&d, &plan.into, &found.iter().collect::<Vec<&DocBuf>>())?);
        }
        let mut stages: Vec<Value> = plan.pipeline.iter().flatten().cloned().collect();
        if let Some((local, foreign)) = &plan.equality {
            let filter = equals_any(foreign, local_values(d.doc(), local)?);
            // Documents that the pipeline itself brings along are filtered behind the stage that does.
            let at = usize::from(super::parse::begins_with(&stages, "$documents"));
            stages.insert(at, Value::Document(doc! {"$match": filter}));
        }
        let values = self.bound_values(&d, run)?;
        let Some(found) = self.collect(stages, values, self.charge.limit(), host, run).await? else {
            return self.check_bytes(usize::MAX);
        };
        to.push(attach(&d, &plan.into, &found.iter().collect::<Vec<&DocBuf>>())?)?;
        match plan.is_constant {
            true => self.constant = Some(found),
            false => self.charge.set(0),
        }
        Ok(())
    }
}

/// The document with an array of documents at a path.
pub(super) fn attach(d: &DocBuf, into: &FieldPath, joined: &[&DocBuf]) -> Result<DocBuf> {
    meter::spend(joined.iter().map(|d| 1 + d.bytes().len() / 512).sum())?;
    let [name] = into.parts() else {
        let mut tree = d.to_document();
        let items = joined.iter().map(|d| Value::Document(d.to_document())).collect();
        set(&mut tree, into.parts(), Value::Array(items));
        return Ok(tree.to_doc_buf());
    };
    let array = |w: &mut DocWriter<'_>| {
        w.array_with(name, |w| {
            for (i, d) in joined.iter().enumerate() {
                w.with_index(i, |w, index| w.document(index, d.doc()));
            }
        });
    };
    Ok(DocWriter::build(|w| {
        let mut written = false;
        for e in d.doc().iter() {
            match e.name_bytes() == name.as_bytes() {
                true if !written => {
                    array(w);
                    written = true;
                }
                true => {}
                false => w.element(&e),
            }
        }
        if !written {
            array(w);
        }
    }))
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
                Some(v) => return Err(document::wrong_type("$unionWith.pipeline", v.type_name(), "array")),
            };
            let coll = match d.get("coll") {
                Some(Value::String(s)) => s.clone(),
                Some(v) => return Err(document::wrong_type("$unionWith.coll", v.type_name(), "string")),
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
    let inner = joined(ctx, &namespace, &pipeline)?;
    let parsed = Arc::new(parse::parse_nested(name, &pipeline, &inner, 31441)?);
    let join = Join::Union { namespace: namespace.clone(), pipeline, parsed };
    Ok(HostStage { name, spec: v.clone(), namespace: Some(namespace), role: Role::Join, join: Some(join) })
}

/// A running `$unionWith`: what comes after the input.
pub struct RunningUnion {
    namespace: Namespace,
    pipeline: Vec<Value>,
    source: Option<Box<dyn super::Source>>,
}

impl RunningUnion {
    pub fn new(namespace: Namespace, pipeline: Vec<Value>) -> RunningUnion {
        RunningUnion { namespace, pipeline, source: None }
    }
    /// Appends the next batch of the other collection's documents.
    pub async fn next(&mut self, to: &mut Batch, host: &dyn PipelineHost, run: &Run) -> Result<Flow> {
        let source = match &mut self.source {
            Some(source) => source,
            none => none.insert(host.run(&self.namespace, self.pipeline.clone(), outer(run), run).await?),
        };
        match source.next(host).await? {
            Some(batch) => {
                to.extend(batch);
                Ok(Flow::More)
            }
            None => Ok(Flow::Continue),
        }
    }
    /// Nothing more is wanted of it.
    pub fn stop(&mut self, host: &dyn PipelineHost) {
        if let Some(mut source) = self.source.take() {
            source.end(host);
        }
    }
}
