//! Routing decisions as scripts (see `golden` for their form): how a collection is divided, a filter, the shards it reaches.
//!
//! ```text
//! table {key} BOUND BOUND ...     chunks divided at these values of the first field, on shards a, b, c, ...
//! insensitive                     queries have a collation from here on
//! filter {filter}                 the shards asked; "one key" where the filter holds the whole key to one value
//! document {document}             the shard that owns it
//! ```

use super::fake::table;
use crate::router::target;
use crate::routing::RoutingTable;
use document::extended_json::from_str;
use document::{Collation, Document, Value, doc};
use query::QueryContext;
use std::fmt::Write;
use std::path::Path;

const SHARDS: &[&str] = &["a", "b", "c", "d"];

#[test]
fn every_script_routes_as_written() {
    golden::check(Path::new(env!("CARGO_MANIFEST_DIR")).join("router/scripts"), 7, || {
        let mut world = World { table: None, context: QueryContext::default() };
        move |line: &str, answer: &mut String| world.run(line, answer)
    });
}

struct World {
    table: Option<RoutingTable>,
    context: QueryContext,
}

fn document(text: &str) -> Document {
    match from_str(text) {
        Ok(Value::Document(d)) => d,
        other => panic!("{text} is no document: {other:?}"),
    }
}

impl World {
    fn run(&mut self, line: &str, answer: &mut String) {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "table" => {
                let (key, bounds) = rest.split_once('}').unwrap();
                let bounds: Vec<i32> = bounds.split_whitespace().map(|b| b.parse().unwrap()).collect();
                self.table = Some(table(document(&format!("{key}}}")), &bounds, &SHARDS[..=bounds.len()]));
            }
            "insensitive" => {
                let collation = Collation::of_document(&doc! { "locale": "en", "strength": 2 }).unwrap();
                self.context = QueryContext::collated(&collation);
            }
            "filter" => {
                let filter = document(rest).to_doc_buf();
                let target = target::filter(self.table.as_ref().unwrap(), filter.doc(), &self.context);
                let names: Vec<&str> = target.shards.iter().map(|s| &**s).collect();
                let one = if target.key.is_some() { ", one key" } else { "" };
                let _ = writeln!(answer, "{}{one}", names.join(" "));
            }
            "document" => {
                let d = document(rest).to_doc_buf();
                let owner = target::document(self.table.as_ref().unwrap(), d.doc());
                let _ = writeln!(answer, "{}", owner.map_or_else(|e| e.to_string(), |s| s.to_string()));
            }
            other => panic!("no command: {other}"),
        }
    }
}
