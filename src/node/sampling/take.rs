//! Which queries of a command are sampled, and what is kept of each.
//!
//! A read is kept as its filter with collation and variables, a write as its statement. An update that is sampled is sent on with its
//! sample's id, by which the node that executes it notes what it has changed.

use super::{Sample, Sampler};
use crate::Request;
use document::{Doc, DocBuf, DocWriter, Document, Value, ValueRef, doc};

/// The queries of one command that were chosen.
pub struct Taken {
    pub samples: Vec<Sample>,
    /// The command, where its statements carry ids now: its body and the documents of this list.
    changed: Option<Changed>,
}

struct Changed {
    body: DocBuf,
    /// The list of statements and its documents back to back.
    list: Option<(&'static str, Vec<u8>)>,
}

/// The commands that are queries, by the names of their rows.
pub fn is_query(name: &str) -> bool {
    matches!(
        name,
        "find" | "aggregate" | "count" | "distinct" | "update" | "delete" | "findAndModify" | "bulkWrite"
    )
}

/// Chooses among the queries of a command; `None` where none was. `name` is that of the command's row.
pub fn take(sampler: &Sampler, name: &str, request: &Request<'_>) -> Option<Taken> {
    let taken = match name {
        "update" | "delete" => of_statements(sampler, name, request),
        "bulkWrite" => of_operations(sampler, request),
        "findAndModify" => of_find_and_modify(sampler, request),
        _ => of_read(sampler, name, request),
    }?;
    (!taken.samples.is_empty()).then_some(taken)
}

impl Taken {
    /// The command as it goes on.
    pub fn body<'t>(&'t self, original: Doc<'t>) -> Doc<'t> {
        self.changed.as_ref().map_or(original, |c| c.body.doc())
    }
    pub fn sequences<'t>(&'t self, original: &[(&'t str, &'t [u8])]) -> Vec<(&'t str, &'t [u8])> {
        let Some((name, bytes)) = self.changed.as_ref().and_then(|c| c.list.as_ref()) else {
            return original.to_vec();
        };
        let others = original.iter().filter(|(other, _)| other != name).copied();
        others.chain([(*name, bytes.as_slice())]).collect()
    }
}

fn sample(ns: &str, uuid: [u8; 16], name: &str, command: Document) -> Sample {
    Sample { id: runtime::uuid(), ns: ns.to_string(), uuid, name: name.to_string(), command }
}

fn of_read(sampler: &Sampler, name: &str, request: &Request<'_>) -> Option<Taken> {
    let ns = request.namespace().ok()?;
    let uuid = sampler.draw(&ns)?;
    let body = request.body;
    let filter = match name {
        "find" => body.get_document("filter"),
        "aggregate" => first_match(body),
        _ => body.get_document("query"),
    };
    let mut command = doc! {
        "filter": filter.unwrap_or(Doc::empty()),
        "collation": body.get_document("collation").unwrap_or(Doc::empty()),
    };
    if let Some(variables) = body.get_document("let") {
        command.push("let", variables);
    }
    Some(Taken { samples: vec![sample(&ns, uuid, name, command)], changed: None })
}

/// What a pipeline asks of its collection's documents first.
fn first_match(body: Doc<'_>) -> Option<Doc<'_>> {
    body.get("pipeline")?.as_array()?.iter().next()?.value().as_document()?.get_document("$match")
}

fn of_statements(sampler: &Sampler, name: &str, request: &Request<'_>) -> Option<Taken> {
    let list = if name == "update" { "updates" } else { "deletes" };
    let ns = request.namespace().ok()?;
    let mut samples = Vec::new();
    let mut bytes = Vec::new();
    if !is_list(request.body, list) {
        return None;
    }
    for statement in request.documents(list) {
        let Some(uuid) = sampler.draw(&ns) else {
            bytes.extend_from_slice(statement.bytes());
            continue;
        };
        let kept = sample(&ns, uuid, name, one_statement(name, list, &ns, statement, request.body));
        bytes.extend_from_slice(with_id(statement, kept.id).doc().bytes());
        samples.push(kept);
    }
    let changed = (name == "update" && !samples.is_empty())
        .then(|| Changed { body: without(request.body, list), list: Some(("updates", bytes)) });
    Some(Taken { samples, changed })
}

/// A command of one statement.
fn one_statement(name: &str, list: &str, ns: &str, statement: Doc<'_>, body: Doc<'_>) -> Document {
    let (db, collection) = storage::split_namespace(ns);
    let mut command = Document::new();
    command.push(name, collection);
    command.push(list, vec![Value::from(statement)]);
    if let Some(variables) = body.get_document("let") {
        command.push("let", variables);
    }
    command.push("$db", db);
    command
}

fn of_find_and_modify(sampler: &Sampler, request: &Request<'_>) -> Option<Taken> {
    const KEPT: &[&str] = &[
        "query",
        "sort",
        "remove",
        "update",
        "new",
        "upsert",
        "fields",
        "collation",
        "arrayFilters",
        "hint",
        "let",
    ];
    let ns = request.namespace().ok()?;
    let uuid = sampler.draw(&ns)?;
    let (db, collection) = storage::split_namespace(&ns);
    let mut command = doc! { "findAndModify": collection };
    for e in request.body.iter().filter(|e| KEPT.contains(&e.name())) {
        command.push(e.name(), e.value().to_value());
    }
    command.push("$db", db);
    let kept = sample(&ns, uuid, "findAndModify", command);
    let changed = Changed { body: with_id(request.body, kept.id), list: None };
    Some(Taken { samples: vec![kept], changed: Some(changed) })
}

/// Each operation of a bulkWrite counts as the update or the delete that it is.
fn of_operations(sampler: &Sampler, request: &Request<'_>) -> Option<Taken> {
    let namespaces: Vec<&str> =
        request.documents("nsInfo").map(|d| d.get_str("ns").unwrap_or_default()).collect();
    let mut samples = Vec::new();
    let mut bytes = Vec::new();
    if !is_list(request.body, "ops") {
        return None;
    }
    for operation in request.documents("ops") {
        match of_operation(sampler, operation, &namespaces, request.body) {
            Some(kept) => {
                bytes.extend_from_slice(with_id(operation, kept.id).doc().bytes());
                samples.push(kept);
            }
            None => bytes.extend_from_slice(operation.bytes()),
        }
    }
    let changed = (!samples.is_empty())
        .then(|| Changed { body: without(request.body, "ops"), list: Some(("ops", bytes)) });
    Some(Taken { samples, changed })
}

fn of_operation(sampler: &Sampler, operation: Doc<'_>, namespaces: &[&str], body: Doc<'_>) -> Option<Sample> {
    use crate::write::bulk_write::{delete_statement, update_statement};
    let first = operation.iter().next()?;
    let ns = namespaces.get(usize::try_from(first.value().as_i64()?).ok()?)?;
    let (name, list, statement): (_, _, fn(Doc<'_>) -> DocBuf) = match first.name() {
        "update" => ("update", "updates", update_statement),
        "delete" => ("delete", "deletes", delete_statement),
        _ => return None,
    };
    let uuid = sampler.draw(ns)?;
    Some(sample(ns, uuid, name, one_statement(name, list, ns, statement(operation).doc(), body)))
}

fn with_id(d: Doc<'_>, id: [u8; 16]) -> DocBuf {
    DocWriter::build(|w| {
        d.iter().filter(|e| e.name_bytes() != b"sampleId").for_each(|e| w.element(&e));
        w.binary("sampleId", 4, &id);
    })
}

/// Whether the list, where it stands in the body, holds documents alone: what is no statement is refused later, as it came.
fn is_list(body: Doc<'_>, list: &str) -> bool {
    match body.get(list) {
        Some(ValueRef::Array(items)) => items.iter().all(|e| e.value().as_document().is_some()),
        Some(_) => false,
        None => true,
    }
}

fn without(body: Doc<'_>, list: &str) -> DocBuf {
    DocWriter::build(|w| {
        body.iter().filter(|e| e.name() != list).for_each(|e| w.element(&e));
    })
}

/// The id of the sample that a statement, or a findAndModify, is.
pub fn id_of(statement: Doc<'_>) -> Option<[u8; 16]> {
    statement.get("sampleId").and_then(|v| v.as_uuid())
}

#[cfg(test)]
mod tests {
    use super::super::{Configuration, Kind};
    use super::*;
    use document::array;

    fn sampler() -> Sampler {
        let sampler = Sampler::default();
        let c = Configuration { ns: "d.c".into(), uuid: [7; 16], samples_per_second: 1e9, start_ms: 1 };
        sampler.learn(&[c], 2.0);
        sampler
    }
    fn taken(name: &str, command: Document) -> Option<(Vec<Sample>, Document)> {
        let body = command.to_doc_buf();
        let request = Request { db: "d", body: body.doc(), sequences: &[] };
        let taken = take(&sampler(), name, &request)?;
        let sequences = taken.sequences(&[]);
        let mut out = taken.body(body.doc()).to_document();
        let request = Request { db: "d", body: taken.body(body.doc()), sequences: &sequences };
        for list in ["updates", "ops"] {
            if request.has_documents(list) {
                let items: Vec<Document> = request.documents(list).map(|d| d.to_document()).collect();
                out.insert(list, items);
            }
        }
        Some((taken.samples, out))
    }

    #[test]
    fn a_read_is_kept_as_its_filter_collation_and_variables() {
        let find = doc! { "find": "c", "filter": { "a": "$$x" }, "let": { "x": 1 }, "limit": 3 };
        let (samples, sent) = taken("find", find.clone()).unwrap();
        assert_eq!(sent, find);
        assert_eq!(samples[0].name, "find");
        assert_eq!(samples[0].command, doc! { "filter": { "a": "$$x" }, "collation": {}, "let": { "x": 1 } });
        let pipeline = array![{ "$match": { "a": 1 } }, { "$match": { "b": 1 } }];
        let (samples, _) = taken("aggregate", doc! { "aggregate": "c", "pipeline": pipeline }).unwrap();
        assert_eq!(samples[0].command.get_document("filter"), Some(&doc! { "a": 1 }));
        let grouped = doc! { "aggregate": "c", "pipeline": array![{ "$group": { "_id": 1 } }] };
        let (samples, _) = taken("aggregate", grouped).unwrap();
        assert_eq!(samples[0].command.get_document("filter"), Some(&doc! {}));
        let count = doc! { "count": "c", "query": { "a": 1 }, "collation": { "locale": "fr" } };
        let (samples, _) = taken("count", count).unwrap();
        assert_eq!(samples[0].command, doc! { "filter": { "a": 1 }, "collation": { "locale": "fr" } });
        assert!(taken("find", doc! { "find": "other" }).is_none());
        assert!(taken("aggregate", doc! { "aggregate": 1, "pipeline": [] }).is_none());
    }

    #[test]
    fn each_statement_is_a_query_and_an_update_carries_its_id() {
        let update = doc! {
            "update": "c", "updates": [{ "q": { "a": 1 }, "u": { "$inc": { "n": 1 } } }, { "q": {}, "u": {}, "multi": false }],
            "ordered": false,
        };
        let (samples, sent) = taken("update", update).unwrap();
        assert_eq!(samples.len(), 2);
        let statements = sent.get_array("updates").unwrap();
        for (kept, statement) in samples.iter().zip(statements) {
            assert_eq!(id_of(statement.as_document().unwrap().to_doc_buf().doc()), Some(kept.id));
            assert_eq!(kept.kind(), Kind::Write);
            assert_eq!((kept.command.get_str("update"), kept.command.get_str("$db")), (Some("c"), Some("d")));
        }
        assert_eq!(sent.get_bool("ordered"), Some(false));
        let delete = doc! { "delete": "c", "deletes": [{ "q": { "a": 1 }, "limit": 0 }] };
        let (samples, sent) = taken("delete", delete.clone()).unwrap();
        assert_eq!((samples.len(), sent), (1, delete));
        let modify = doc! { "findAndModify": "c", "query": { "a": 1 }, "remove": true, "lsid": 1 };
        let (samples, sent) = taken("findAndModify", modify).unwrap();
        assert_eq!(id_of(sent.to_doc_buf().doc()), Some(samples[0].id));
        assert!(samples[0].command.contains_key("query") && !samples[0].command.contains_key("lsid"));
    }

    #[test]
    fn operations_of_a_bulk_write_are_updates_and_deletes() {
        let bulk = doc! {
            "bulkWrite": 1, "nsInfo": [{ "ns": "d.other" }, { "ns": "d.c" }],
            "ops": [
                { "insert": 1, "document": {} }, { "update": 0, "filter": {}, "updateMods": {} },
                { "update": 1, "filter": { "a": 1 }, "updateMods": { "$set": { "b": 1 } } },
                { "delete": 1, "filter": { "a": 2 }, "multi": true },
            ],
        };
        let (samples, sent) = taken("bulkWrite", bulk).unwrap();
        let names: Vec<&str> = samples.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["update", "delete"]);
        let ids: Vec<bool> = sent
            .get_array("ops")
            .unwrap()
            .iter()
            .map(|o| o.as_document().unwrap().contains_key("sampleId"))
            .collect();
        assert_eq!(ids, [false, false, true, true]);
    }
}
