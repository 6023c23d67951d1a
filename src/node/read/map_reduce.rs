//! mapReduce: a pipeline of the client's functions.
//!
//! ```text
//! query, sort, limit ─> $project {emits: map(document)} ─> $unwind ─> $group by key {value: reduce(pairs)} ─> finalize
//!                                                                            └ on shards and again on the router
//! out  inline            the rows are the reply
//!      replace, merge    $out, $merge
//!      reduce            each row is reduced with the document that has its key, in batches, and then merged
//! ```

use super::aggregate::{Asked, collect, open};
use super::fields::Fields;
use crate::exec::batch::Documents;
use crate::generic::is_generic;
use crate::{Node, Operation, Request};
use document::{
    Collation, Doc, DocBuf, DocWriter, Document, Element, Result, Value, ValueRef, bail, doc, err,
};
use query::script::{Function, Scripts, code_of};
use std::sync::Arc;

const FIELDS: Fields = Fields { command: "mapReduce" };
/// Rows that are reduced into a collection at a time.
pub const BATCH: usize = 1000;

/// What becomes of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Inline,
    Replace,
    Merge,
    Reduce,
}

/// Where the result goes; the names are empty for [`Mode::Inline`].
#[derive(Clone, Debug, PartialEq)]
pub struct Out {
    pub mode: Mode,
    pub db: String,
    pub collection: String,
    /// The reply names the database too.
    names_db: bool,
}

/// A `mapReduce` command.
#[derive(Clone, Debug)]
pub struct MapReduce {
    pub ns: String,
    map: String,
    reduce: String,
    finalize: Option<String>,
    query: Document,
    sort: Document,
    limit: i64,
    scope: Document,
    pub out: Out,
}

/// What has been read of a command's optional fields.
#[derive(Default)]
struct Given {
    map: Option<String>,
    reduce: Option<String>,
    out: Option<Out>,
    finalize: Option<String>,
    query: Document,
    sort: Document,
    limit: i64,
    scope: Document,
}

impl MapReduce {
    /// # Errors
    /// 40414, 40415, 14 and 2 as the real server.
    pub fn parse(request: &Request<'_>) -> Result<MapReduce> {
        let ns = request.namespace()?;
        let mut given = Given::default();
        for e in request.body.iter().skip(1) {
            given.read(request, &e)?;
        }
        let missing =
            |f: &str| err!(IDL_FAILED_TO_PARSE, "BSON field 'mapReduce.{f}' is missing but a required field");
        Ok(MapReduce {
            ns,
            map: given.map.ok_or_else(|| missing("map"))?,
            reduce: given.reduce.ok_or_else(|| missing("reduce"))?,
            out: given.out.ok_or_else(|| missing("out"))?,
            finalize: given.finalize,
            query: given.query,
            sort: given.sort,
            limit: given.limit,
            scope: given.scope,
        })
    }
    /// Makes stored functions known to the command's; a variable of its own scope hides one.
    pub fn with_stored(mut self, stored: Document) -> MapReduce {
        for (name, value) in std::mem::replace(&mut self.scope, stored).into_iter() {
            self.scope.insert(&name, value);
        }
        self
    }
    /// The pipeline that gives the rows `{_id, value}`.
    pub fn stages(&self) -> Vec<Value> {
        let mut stages = Vec::new();
        if !self.query.is_empty() {
            stages.push(doc! { "$match": self.query.clone() });
        }
        if !self.sort.is_empty() {
            stages.push(doc! { "$sort": self.sort.clone() });
        }
        if self.limit > 0 {
            stages.push(doc! { "$limit": self.limit });
        }
        let code = |code: &str| Value::JavaScript(code.to_string());
        let scope = &self.scope;
        stages.push(doc! { "$project": {
            "_id": 0, "emits": { "$_internalJsEmit": { "eval": code(&self.map), "scope": scope.clone() } },
        } });
        stages.push(doc! { "$unwind": "$emits" });
        stages.push(doc! { "$group": { "_id": "$emits.k", "value": { "$_internalJsReduce": {
            "data": "$emits", "eval": code(&self.reduce), "scope": scope.clone(),
        } } } });
        if let Some(finalize) = &self.finalize {
            stages.push(doc! { "$project": { "value": { "$_internalJsCall": {
                "eval": code(finalize), "scope": scope.clone(), "args": ["$_id", "$value"],
            } } } });
        }
        stages.into_iter().map(Value::Document).collect()
    }
    /// What reduces the value of a document with a new one.
    ///
    /// # Errors
    /// 31264 where scripting is disabled.
    pub fn reducer(&self, scripts: &Scripts) -> Result<Reducer> {
        let scope = Some(Arc::new(self.scope.to_doc_buf()));
        Ok(Reducer {
            reduce: scripts.function(&self.reduce, scope.clone())?,
            finalize: self.finalize.as_ref().map(|f| scripts.function(f, scope)).transpose()?,
        })
    }
    /// The reply's field for a result that went into a collection.
    pub fn write_result(&self, w: &mut DocWriter<'_>) {
        match self.out.names_db {
            true => w.document_with("result", |w| {
                w.string("db", &self.out.db);
                w.string("collection", &self.out.collection);
            }),
            false => w.string("result", &self.out.collection),
        }
    }
}

/// The reply's field for an inline result.
///
/// # Errors
/// BSONObjectTooLarge (10334) above 16 MB.
pub fn write_inline(rows: &[DocBuf], w: &mut DocWriter<'_>) -> Result<()> {
    let bytes: usize = rows.iter().map(|d| d.bytes().len() + 8).sum();
    if bytes > 16 << 20 {
        bail!(BSON_OBJECT_TOO_LARGE, "mapReduce: the result of {bytes} bytes is too large to be inline");
    }
    w.array_with("results", |w| {
        for (i, row) in rows.iter().enumerate() {
            w.with_index(i, |w, name| w.document(name, row.doc()));
        }
    });
    Ok(())
}

impl Given {
    fn read(&mut self, request: &Request<'_>, e: &Element<'_>) -> Result<()> {
        if matches!(e.value(), ValueRef::Null | ValueRef::Undefined) {
            return Ok(());
        }
        match e.name() {
            "map" => self.map = Some(self.function(e)?),
            "reduce" => self.reduce = Some(self.function(e)?),
            "finalize" => self.finalize = Some(self.function(e)?),
            "out" => self.out = Some(Out::parse(request.db, e)?),
            "query" => self.query = FIELDS.document(e)?.to_document(),
            "sort" => self.sort = FIELDS.document(e)?.to_document(),
            "scope" => self.scope = FIELDS.document(e)?.to_document(),
            "collation" => drop(FIELDS.document(e)?),
            "limit" => {
                self.limit = FIELDS.integer(e)?;
                if self.limit < 0 {
                    bail!(BAD_VALUE, "BSON field 'limit' value must be >= 0, actual value '{}'", self.limit);
                }
            }
            "verbose" | "bypassDocumentValidation" | "jsMode" => drop(FIELDS.bool(e)?),
            name => FIELDS.unknown(name)?,
        }
        Ok(())
    }
    fn function(&mut self, e: &Element<'_>) -> Result<String> {
        match e.value() {
            ValueRef::JavaScriptWithScope(code, scope) => {
                self.scope.0.extend(scope.to_document().0);
                Ok(code.to_string())
            }
            v => match code_of(&v.to_value()) {
                Some(code) => Ok(code.to_string()),
                None => Err(FIELDS.wrong_type(e, "[string, javascript, javascriptWithScope]")),
            },
        }
    }
}

impl Out {
    fn parse(db: &str, e: &Element<'_>) -> Result<Out> {
        let d = match e.value() {
            ValueRef::String(name) => return Out::to(Mode::Replace, db, name, false),
            ValueRef::Document(d) => d,
            _ => bail!(BAD_VALUE, "'out' must be either a string or an object"),
        };
        let (mut target, mut into) = (None, None);
        for e in d {
            match (e.name(), e.value()) {
                ("inline", v) if v.is_number() || v.as_bool().is_some() => target = Some((Mode::Inline, "")),
                ("replace", ValueRef::String(name)) => target = Some((Mode::Replace, name)),
                ("merge", ValueRef::String(name)) => target = Some((Mode::Merge, name)),
                ("reduce", ValueRef::String(name)) => target = Some((Mode::Reduce, name)),
                ("db", ValueRef::String(name)) => into = Some(name),
                ("sharded", v) if v.as_bool().is_some() || v.is_number() => {}
                ("nonAtomic", v) if v.truthy() => {}
                ("nonAtomic", _) => {
                    bail!(BAD_VALUE, "The 'nonAtomic' option of mapReduce must be true or left out")
                }
                (name @ ("inline" | "replace" | "merge" | "reduce" | "db" | "sharded"), v) => {
                    bail!(TYPE_MISMATCH, "'out.{name}' has the wrong type '{}'", v.type_name())
                }
                (name, _) => {
                    bail!(IDL_UNKNOWN_FIELD, "BSON field 'mapReduce.out.{name}' is an unknown field.")
                }
            }
        }
        match target {
            Some((Mode::Inline, _)) => {
                let empty = String::new;
                Ok(Out { mode: Mode::Inline, db: empty(), collection: empty(), names_db: false })
            }
            Some((mode, name)) => Out::to(mode, into.unwrap_or(db), name, into.is_some()),
            None => bail!(BAD_VALUE, "'out' requires 'replace', 'merge', 'reduce' or 'inline'"),
        }
    }
    fn to(mode: Mode, db: &str, name: &str, names_db: bool) -> Result<Out> {
        crate::request::check_collection_name(db, name)?;
        Ok(Out { mode, db: db.to_string(), collection: name.to_string(), names_db })
    }
    pub fn ns(&self) -> String {
        format!("{}.{}", self.db, self.collection)
    }
}

/// `reduce` and `finalize` for rows whose key is in the target already.
pub struct Reducer {
    reduce: Function,
    finalize: Option<Function>,
}

impl Reducer {
    /// The row that replaces `old` once `new` has been reduced into it.
    ///
    /// # Errors
    /// The functions'.
    pub fn reduced(&self, old: Doc<'_>, new: Doc<'_>) -> Result<DocBuf> {
        let of = |d: Doc<'_>, name: &str| d.get(name).map_or(Value::Undefined, |v| v.to_value());
        let key = of(new, "_id");
        let values = Value::Array(vec![of(old, "value"), of(new, "value")]);
        let mut value = self.reduce.call(vec![key.clone(), values])?;
        if let Some(finalize) = &self.finalize {
            value = finalize.call(vec![key.clone(), value])?;
        }
        Ok(DocWriter::build(|w| {
            key.write(w, "_id");
            value.write(w, "value");
        }))
    }
    /// `rows`, each reduced with the one of `found` that has its key.
    ///
    /// # Errors
    /// The functions'.
    pub fn into_found(&self, rows: Vec<DocBuf>, found: &[DocBuf]) -> Result<Vec<DocBuf>> {
        let key = |d: &DocBuf| {
            let mut key = Vec::new();
            let id = d.get("_id").map_or(Value::Null, |v| v.to_value());
            Collation::SIMPLE.append_value_key(&mut key, &id, false);
            key
        };
        let by_key: std::collections::HashMap<Vec<u8>, &DocBuf> = found.iter().map(|d| (key(d), d)).collect();
        rows.into_iter()
            .map(|row| match by_key.get(&key(&row)) {
                Some(old) => self.reduced(old.doc(), row.doc()),
                None => Ok(row),
            })
            .collect()
    }
}

/// The generic arguments of a command that go with what it becomes.
pub fn copy_generic(body: Doc<'_>, w: &mut DocWriter<'_>) {
    let with = |name: &str| is_generic(name) || matches!(name, "collation" | "bypassDocumentValidation");
    body.iter().skip(1).filter(|e| with(e.name())).for_each(|e| w.element(&e));
}

/// Runs a `mapReduce` command on this node; writes the reply's members without `ok`.
///
/// # Errors
/// Those of the pipeline and the functions.
pub async fn map_reduce(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    request: Request<'_>,
    w: &mut DocWriter<'_>,
) -> Result<()> {
    let command = MapReduce::parse(&request)?;
    node.check_write_concern(op)?;
    node.await_read_concern(op).await?;
    let command = command.with_stored(node.stored_functions(request.db));
    let mut asked = Asked::on(node, &command.ns, request.body)?;
    asked.map_reduce = true;
    asked.bypass_validation = request.body.get("bypassDocumentValidation").is_some_and(|v| v.truthy());
    asked.pipeline = command.stages();
    let out = &command.out;
    match out.mode {
        Mode::Inline => return write_inline(&collect(node, op, asked).await?, w),
        Mode::Replace => {
            asked
                .pipeline
                .push(doc! { "$out": { "db": out.db.as_str(), "coll": out.collection.as_str() } }.into());
            collect(node, op, asked).await?;
        }
        Mode::Merge => {
            asked.pipeline.push(merge_into(out).into());
            collect(node, op, asked).await?;
        }
        Mode::Reduce => reduce_into(node, op, &command, asked).await?,
    }
    command.write_result(w);
    Ok(())
}

fn merge_into(out: &Out) -> Document {
    doc! { "$merge": {
        "into": { "db": out.db.as_str(), "coll": out.collection.as_str() },
        "whenMatched": "replace", "whenNotMatched": "insert",
    } }
}

async fn reduce_into(node: &Arc<Node>, op: &Arc<Operation>, command: &MapReduce, asked: Asked) -> Result<()> {
    let reducer = command.reducer(&node.parse_context(Document::new()).scripts)?;
    let bypass_validation = asked.bypass_validation;
    let mut rows = open(node, op, asked).await?;
    let mut waiting = Vec::new();
    loop {
        let ended = rows.ended();
        if !ended {
            let mut out = Documents::default();
            rows.fill(node, op, &mut out).await?;
            waiting.append(&mut out.list);
        }
        while waiting.len() >= BATCH || (ended && !waiting.is_empty()) {
            let batch: Vec<DocBuf> = waiting.drain(..waiting.len().min(BATCH)).collect();
            reduce_batch(node, op, command, &reducer, batch, bypass_validation).await?;
        }
        if ended {
            return Ok(());
        }
    }
}

async fn reduce_batch(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    command: &MapReduce,
    reducer: &Reducer,
    rows: Vec<DocBuf>,
    bypass_validation: bool,
) -> Result<()> {
    let out = &command.out;
    let there = Asked {
        ns: out.ns(),
        pipeline: vec![doc! { "$match": { "_id": { "$in": ids_of(&rows) } } }.into()],
        allow_disk_use: true,
        ..Asked::default()
    };
    let rows = reducer.into_found(rows, &collect(node, op, there).await?)?;
    let literal = Value::Array(rows.iter().map(|d| Value::Document(d.to_document())).collect());
    let written = Asked {
        ns: format!("{}.$cmd.aggregate", out.db),
        pipeline: vec![doc! { "$documents": { "$literal": literal } }.into(), merge_into(out).into()],
        allow_disk_use: true,
        bypass_validation,
        ..Asked::default()
    };
    collect(node, op, written).await.map(|_| ())
}

/// The keys of rows.
pub fn ids_of(rows: &[DocBuf]) -> Value {
    Value::Array(rows.iter().map(|d| d.get("_id").map_or(Value::Null, |v| v.to_value())).collect())
}
