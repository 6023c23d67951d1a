//! mapReduce: a pipeline of the client's functions.
//!
//! ```text
//! query, sort, limit ─> $project {emits: map(document)} ─> $unwind ─> $group by key {value: reduce(pairs)} ─> finalize
//!                                                                            └ on shards and again on the router
//! out  inline            the rows are the reply
//!      replace, merge    $out, $merge
//!      reduce            $merge with a pipeline that reduces the row into the document that has its key
//! ```

use super::aggregate::{Asked, collect};
use super::fields::Fields;
use crate::transaction::Area;
use crate::{Node, Operation, Request};
use document::{Doc, DocBuf, DocWriter, Document, Element, Result, Value, ValueRef, bail, doc};
use query::script::code_of;
use std::sync::Arc;

const FIELDS: Fields = Fields { command: "mapReduce" };

/// What becomes of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Inline,
    Replace,
    Merge,
    Reduce,
}

/// Where the result goes; the names are empty for [`Mode::Inline`].
#[derive(Clone, Debug, Default, PartialEq)]
struct Out {
    mode: Mode,
    db: String,
    collection: String,
    /// The reply names the database too.
    names_db: bool,
}

/// A `mapReduce` command.
#[derive(Clone, Debug, Default)]
pub struct MapReduce {
    pub ns: String,
    map: String,
    reduce: String,
    finalize: Option<String>,
    query: Document,
    sort: Document,
    limit: i64,
    scope: Document,
    out: Out,
}

impl MapReduce {
    /// # Errors
    /// 40414, 40415, 14 and 2 as the real server.
    pub fn parse(request: &Request<'_>) -> Result<MapReduce> {
        let ns = request.namespace()?;
        let mut command = MapReduce { ns, ..MapReduce::default() };
        for e in request.body.iter().skip(1) {
            command.read(request, &e)?;
        }
        for field in ["map", "reduce", "out"] {
            if request.body.get_present(field).is_none() {
                bail!(IDL_FAILED_TO_PARSE, "BSON field 'mapReduce.{field}' is missing but a required field");
            }
        }
        Ok(command)
    }
    fn read(&mut self, request: &Request<'_>, e: &Element<'_>) -> Result<()> {
        if matches!(e.value(), ValueRef::Null | ValueRef::Undefined) {
            return Ok(());
        }
        match e.name() {
            "map" => self.map = self.function(e)?,
            "reduce" => self.reduce = self.function(e)?,
            "finalize" => self.finalize = Some(self.function(e)?),
            "out" => self.out = Out::parse(request.db, e)?,
            "query" => self.query = FIELDS.document(e)?.to_document(),
            "sort" => self.sort = FIELDS.document(e)?.to_document(),
            "scope" => self.add_scope(FIELDS.document(e)?),
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
                self.add_scope(scope);
                Ok(code.to_string())
            }
            v => match code_of(&v.to_value()) {
                Some(code) => Ok(code.to_string()),
                None => Err(FIELDS.wrong_type(e, "[string, javascript, javascriptWithScope]")),
            },
        }
    }
    /// The variables of the command and of its functions are all globals of one session.
    fn add_scope(&mut self, scope: Doc<'_>) {
        for (name, value) in scope.to_document().into_iter() {
            self.scope.insert(&name, value);
        }
    }
    /// Makes stored functions known to the command's; a variable of its own scope hides one.
    pub fn with_stored(mut self, stored: Document) -> MapReduce {
        for (name, value) in std::mem::replace(&mut self.scope, stored).into_iter() {
            self.scope.insert(&name, value);
        }
        self
    }
    /// The pipeline that gives the rows `{_id, value}`, or writes them.
    pub fn pipeline(&self) -> Vec<Value> {
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
        stages.extend(self.writing());
        stages.into_iter().map(Value::Document).collect()
    }
    /// The stage that writes the rows.
    fn writing(&self) -> Option<Document> {
        let target = doc! { "db": self.out.db.as_str(), "coll": self.out.collection.as_str() };
        let into = |target: Document, matched: Value| {
            doc! { "$merge": { "into": target, "whenMatched": matched, "whenNotMatched": "insert" } }
        };
        match self.out.mode {
            Mode::Inline => None,
            Mode::Replace => Some(doc! { "$out": target }),
            Mode::Merge => Some(into(target, "replace".into())),
            Mode::Reduce => Some(into(target, self.reducing())),
        }
    }
    /// The update that reduces the row `$$new` into the document that has its key.
    fn reducing(&self) -> Value {
        let call = |code: &str, args: Value| {
            doc! { "$_internalJsCall": {
                "eval": (Value::JavaScript(code.to_string())), "scope": self.scope.clone(), "args": args,
            } }
        };
        let values = Value::Array(vec!["$value".into(), "$$new.value".into()]);
        let mut value = call(&self.reduce, Value::Array(vec!["$_id".into(), values]));
        if let Some(finalize) = &self.finalize {
            value = call(finalize, Value::Array(vec!["$_id".into(), value.into()]));
        }
        Value::Array(vec![doc! { "$replaceWith": { "_id": "$_id", "value": value } }.into()])
    }
    /// The reply's field for the result: where it went, or the rows.
    ///
    /// # Errors
    /// BSONObjectTooLarge (10334) for rows of more than 16 MB.
    pub fn write_result(&self, rows: &[DocBuf], w: &mut DocWriter<'_>) -> Result<()> {
        match (self.out.mode, self.out.names_db) {
            (Mode::Inline, _) => return write_inline(rows, w),
            (_, true) => w.document_with("result", |w| {
                w.string("db", &self.out.db);
                w.string("collection", &self.out.collection);
            }),
            (_, false) => w.string("result", &self.out.collection),
        }
        Ok(())
    }
}

fn write_inline(rows: &[DocBuf], w: &mut DocWriter<'_>) -> Result<()> {
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

impl Out {
    fn parse(db: &str, e: &Element<'_>) -> Result<Out> {
        let d = match e.value() {
            ValueRef::String(name) => return Out::to(Mode::Replace, db, name, false),
            ValueRef::Document(d) => d,
            _ => bail!(BAD_VALUE, "'out' must be either a string or an object"),
        };
        document::refuse_doubled("mapReduce.out", d.iter().map(|e| e.name()))?;
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
    node.await_readable(op, Area::Database(request.db)).await?;
    let (command, asked) = asked_of(node, command, &request)?;
    let rows = collect(node, op, asked).await?;
    command.write_result(&rows, w)
}

/// The command with the functions stored in its database, and the aggregation that it becomes.
pub(super) fn asked_of(node: &Node, command: MapReduce, request: &Request<'_>) -> Result<(MapReduce, Asked)> {
    let command = command.with_stored(node.stored_functions(request.db));
    let asked = Asked {
        map_reduce: true,
        bypass_validation: request.body.get("bypassDocumentValidation").is_some_and(|v| v.truthy()),
        pipeline: command.pipeline(),
        ..Asked::on(node, &command.ns, request.body)?
    };
    Ok((command, asked))
}
