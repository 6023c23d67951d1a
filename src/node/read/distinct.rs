//! distinct: the different values of a field, elements of arrays taken singly.
//!
//! An index that delivers the field in order, and has met no array, gives one value for each seek.

use super::aggregate::{self, Asked};
use super::command_variables;
use super::fields::Fields;
use crate::exec::{Opened, Output, Query, Wanted};
use crate::{Node, Operation, Request};
use document::{Collation, Doc, DocBuf, DocWriter, Result, Value, ValueRef, bail, doc, err, meter, path};
use query::matcher::Matcher;
use query::planner::{Distinct, Hint};
use std::collections::BTreeMap;
use std::sync::Arc;

const FIELDS: Fields = Fields { command: "distinct" };
/// Bytes of values that a reply may hold.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// A distinct's fields.
pub struct DistinctCommand<'a> {
    pub key: &'a str,
    pub query: Doc<'a>,
    pub hint: Option<Hint>,
    pub collation: Option<Doc<'a>>,
}

impl<'a> DistinctCommand<'a> {
    pub fn parse(body: Doc<'a>) -> Result<DistinctCommand<'a>> {
        let (mut key, mut query, mut hint, mut collation) = (None, Doc::empty(), None, None);
        for e in body.iter().skip(1) {
            if matches!(e.value(), ValueRef::Null | ValueRef::Undefined) && e.name() != "hint" {
                continue;
            }
            match e.name() {
                "key" => key = Some(FIELDS.string(&e)?),
                "query" => query = FIELDS.document(&e)?,
                "hint" => hint = Hint::given(e.value())?,
                "collation" => collation = Some(FIELDS.document(&e)?),
                "collectionUUID" | "querySettings" | "includeQueryStatsMetrics" => {}
                name => FIELDS.unknown(name)?,
            }
        }
        let key = key.ok_or_else(|| {
            err!(IDL_FAILED_TO_PARSE, "BSON field 'distinct.key' is missing but a required field")
        })?;
        if key.contains('\0') {
            bail!(31032, "Key field cannot contain an embedded null byte");
        }
        Ok(DistinctCommand { key, query, hint, collation })
    }
    /// What is asked of an index.
    pub fn distinct(&self) -> Distinct {
        Distinct { path: self.key.to_string(), ..Distinct::default() }
    }
    /// The pipeline whose documents have the values, on a view or a pseudo collection.
    fn pipeline(&self) -> Vec<Value> {
        match self.query.is_empty() {
            true => Vec::new(),
            false => vec![Value::Document(doc! { "$match": self.query })],
        }
    }
}

/// The aggregation whose documents have the values, on a view or a pseudo collection.
pub fn on_view(node: &Node, ns: &str, command: &DistinctCommand<'_>, body: Doc<'_>) -> Result<Asked> {
    let (pipeline, hint) = (command.pipeline(), command.hint.clone());
    Ok(Asked { pipeline, hint, ..Asked::on(node, ns, body)? })
}

/// Values met so far, in the collation's order: by their keys, each in a document of its own.
struct Values<'k> {
    collation: Collation,
    key: &'k str,
    seen: BTreeMap<Vec<u8>, DocBuf>,
    bytes: usize,
    too_big: bool,
}

impl<'k> Values<'k> {
    fn new(key: &'k str, collation: &Collation) -> Values<'k> {
        let (seen, collation) = (BTreeMap::new(), collation.clone());
        Values { key, collation, seen, bytes: 5, too_big: false }
    }
    fn add(&mut self, v: ValueRef<'_>) -> Result<()> {
        let mut encoded = Vec::with_capacity(16);
        self.collation.append_key(&mut encoded, v, false);
        meter::spend(1 + encoded.len() / 64)?;
        if self.seen.contains_key(&encoded) {
            return Ok(());
        }
        let holder = DocWriter::build(|w| w.value("", v));
        self.bytes += holder.doc().bytes().len();
        self.seen.insert(encoded, holder);
        self.too_big |= self.bytes > BYTES_MAX;
        Ok(())
    }
    /// Adds what a document has, up to the value that is too much. What was added of one that failed may be added again.
    fn add_of(&mut self, d: Doc<'_>) -> Result<()> {
        let key = self.key;
        path::for_each_leaf(d, key, &mut |v| {
            match v {
                Some(ValueRef::Array(items)) => {
                    for e in items {
                        self.add(e.value())?;
                        if self.too_big {
                            break;
                        }
                    }
                }
                Some(v) => self.add(v)?,
                None => {}
            }
            Ok(self.too_big)
        })?;
        Ok(())
    }
    fn finish(self) -> Result<Vec<u8>> {
        if self.too_big {
            bail!(17217, "distinct too big, 16mb cap");
        }
        let mut array = vec![0; 4];
        let mut w = DocWriter::resume(&mut array);
        for (n, holder) in self.seen.values().enumerate() {
            if let Some(e) = holder.doc().iter().next() {
                w.with_index(n, |w, name| w.value(name, e.value()));
            }
        }
        array.push(0);
        let length = array.len() as u32;
        array[..4].copy_from_slice(&length.to_le_bytes());
        Ok(array)
    }
}

impl Output for Values<'_> {
    fn is_full(&self) -> bool {
        self.too_big
    }
    fn put(&mut self, doc: Doc<'_>) -> Result<bool> {
        self.add_of(doc)?;
        Ok(true)
    }
    fn put_with(&mut self, write: &mut dyn FnMut(&mut Vec<u8>) -> Result<()>) -> Result<bool> {
        let mut out = Vec::new();
        write(&mut out)?;
        self.put(DocBuf::from_validated(out).doc())
    }
}

/// Runs a `distinct` command; writes the reply's `values`. Tells whether it was answered by the pipeline of a view.
pub async fn distinct(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    request: Request<'_>,
    w: &mut DocWriter<'_>,
) -> Result<bool> {
    let ns = super::target(node, &request)?;
    let command = DistinctCommand::parse(request.body)?;
    op.check_interrupt()?;
    node.await_readable(op, node.area_of(&ns)).await?;
    node.heed_query_settings(op, &ns, request.body)?;
    let slot = node.namespaces.slot(&ns);
    node.check_uuid(request.body, &slot)?;
    let variables = command_variables(node, request.body)?;
    let mut context = node.parse_context_on(&slot, command.collation, variables)?;
    context.timeless = true;
    node.note_text_index(&mut context, &slot, command.query);
    let filter = Matcher::parse_checked(command.query, &context)?;
    let mut values = Values::new(command.key, &context.collation);
    let by_index = command.distinct();
    let wanted = Wanted {
        filter,
        hint: command.hint.as_ref(),
        collation: context.collation.clone(),
        needed: Some(vec![command.key.to_string()]),
        distinct: Some(&by_index),
        ..Wanted::default()
    };
    let opened = match super::pseudo::is_pseudo(&ns) {
        true => None,
        false => Some(Query::open(node, op, &slot, wanted, &mut values).await?),
    };
    let of_view = matches!(opened, Some(Opened::View(_)));
    match opened {
        Some(Opened::Absent) => {}
        Some(Opened::Query(mut query)) => query.fill(node, op, &mut values).await?,
        Some(Opened::View(_)) | None => {
            let asked = on_view(node, &ns, &command, request.body)?;
            for d in aggregate::collect(node, op, asked).await? {
                values.add_of(d.doc())?;
            }
        }
    }
    write(values, w)?;
    if let Some(at) = op.transaction().and_then(|t| t.read_time()) {
        w.timestamp("atClusterTime", at);
    }
    Ok(of_view)
}

fn write(values: Values<'_>, w: &mut DocWriter<'_>) -> Result<()> {
    let array = values.finish()?;
    w.array("values", Doc::from_validated(&array));
    Ok(())
}
