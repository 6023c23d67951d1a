//! The body and sequences of a command as a server takes them apart: its name, the generic arguments every command may
//! carry, and what the commands' own fields hold: filters, updates, projections, sorts, pipelines. The message around
//! them is made here, so that all of the input is theirs.
#![no_main]
use document::{Doc, Document, ValueRef};
use libfuzzer_sys::fuzz_target;
use node::Operation;
use query::QueryContext;
use query::matcher::Matcher;
use query::pipeline::{Context, Namespace};
use query::projection::Projection;
use query::sort::SortSpec;
use query::update::Update;
use std::sync::Arc;
use wire::op_compressed::Codecs;
use wire::{Limits, Message, ReplyTo, decode, encode};

/// Parses whatever a field of this name would be to the commands that have one, and uses what came of it.
fn parse_field(name: &str, value: ValueRef<'_>) {
    let context = QueryContext::at(0);
    let sample = document::doc! { "_id": 1, "a": [1, { "b": "x" }], "c": { "d": 2.5 } }.to_doc_buf();
    match (name, value) {
        ("q" | "query" | "filter", ValueRef::Document(d)) => {
            if let Ok(matcher) = Matcher::parse(d, &context) {
                let _ = matcher.matches(sample.doc());
            }
        }
        ("projection" | "fields", ValueRef::Document(d)) => {
            if let Ok(projection) = Projection::parse(d, &Matcher::always(), &context) {
                let _ = projection.apply(sample.doc(), &mut Vec::new());
            }
        }
        ("sort", ValueRef::Document(d)) => {
            if let Ok(sort) = SortSpec::parse(d) {
                let _ = sort.key(sample.doc());
            }
        }
        ("u" | "update", value) => {
            if let Ok(update) = Update::parse(&value.to_value(), &[], &context) {
                let _ = update.apply(sample.doc(), None, false);
            }
        }
        ("pipeline", ValueRef::Array(a)) => {
            let _ = query::pipeline::parse(
                &a.to_array(),
                &Context::new(Namespace::parse("d.c"), context.clone()),
            );
        }
        _ => {}
    }
}

fn parse_fields(d: Doc<'_>) {
    for e in d.iter() {
        parse_field(e.name(), e.value());
    }
}

fuzz_target!(|data: &[u8]| {
    let mut frame = Vec::new();
    encode::begin(&mut frame, 1, 0, 2013);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(data);
    encode::finish(&mut frame, 0);
    let decoded = decode(frame.into(), &Limits::STANDARD, Default::default(), &mut Codecs::default());
    let Ok(message) = decoded else { return };
    let _ = ReplyTo::to(&message);
    let Message::Msg(request) = message else { return };
    let body = request.body();
    let _ = request.command_name().len();
    let _ = Operation::parse(1, Arc::default(), body);
    parse_fields(body);
    for list in ["updates", "deletes", "ops"] {
        if let Some(ValueRef::Array(a)) = body.get(list) {
            a.iter().filter_map(|e| e.value().as_document()).for_each(parse_fields);
        }
    }
    for sequence in request.sequences() {
        request.documents(sequence).for_each(parse_fields);
        let documents: Vec<Document> = request.documents(sequence).map(Doc::to_document).collect();
        assert_eq!(documents.len(), sequence.len());
    }
});
