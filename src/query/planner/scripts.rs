//! Plans as scripts (see `golden` for their form): which indexes there are, a query, the plans in the order of preference.
//!
//! ```text
//! index NAME {key} [multikey] [unique] [sparse] [hidden] [partial={filter}]
//! forget                 no indexes
//! sort {sort}            of the next query
//! plan {filter}          the best plan: a line a stage, the outermost first
//! plans {filter}         all that are worth trying, the best first, each on a line
//! ```

use super::*;
use crate::QueryContext;
use crate::explain::{Extras, winning_plan};
use document::extended_json::{from_str, to_relaxed};
use std::fmt::Write;
use std::path::Path;

#[test]
fn every_script_plans_as_written() {
    golden::check(Path::new(env!("CARGO_MANIFEST_DIR")).join("planner/scripts"), 8, || {
        let mut world = World::default();
        move |line: &str, answer: &mut String| world.run(line, answer)
    });
}

#[derive(Default)]
struct World {
    indexes: Vec<IndexInfo>,
    sort: Option<Document>,
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
            "index" => self.indexes.push(index(rest)),
            "forget" => self.indexes.clear(),
            "sort" => self.sort = Some(document(rest)),
            "plan" => {
                let plans = self.plans(rest);
                show(answer, &stages(&plans[0]), "\n");
            }
            "plans" => self.plans(rest).iter().for_each(|plan| show(answer, &stages(plan), " < ")),
            other => panic!("no command: {other}"),
        }
    }

    fn plans(&mut self, filter: &str) -> Vec<Plan> {
        let filter = Matcher::parse(document(filter).to_doc_buf().doc(), &QueryContext::at(0)).unwrap();
        let sort = self.sort.take().map(|s| SortSpec::parse(s.to_doc_buf().doc()).unwrap());
        plans(&Request { sort: sort.as_ref(), ..Request::new(&filter, &self.indexes) }).unwrap()
    }
}

fn index(text: &str) -> IndexInfo {
    let (name, rest) = text.split_once(' ').unwrap();
    let (key, options) = rest.split_once('}').unwrap();
    let has = |option: &str| options.split_whitespace().any(|word| word == option);
    let partial = options.split_once("partial=").map(|(_, filter)| document(filter).to_doc_buf());
    IndexInfo {
        name: name.to_string(),
        key: document(&format!("{key}}}")),
        multikey: has("multikey"),
        unique: has("unique"),
        sparse: has("sparse"),
        hidden: has("hidden"),
        partial_filter: partial,
        ..IndexInfo::default()
    }
}

fn show(answer: &mut String, stages: &[String], between: &str) {
    let _ = writeln!(answer, "{}", stages.join(between));
}

/// The stages of a plan as explain shows them, the last to act first; branches are in brackets.
fn stages(plan: &Plan) -> Vec<String> {
    fn walk(stage: &Document, out: &mut Vec<String>) {
        let mut line = stage.get_str("stage").unwrap_or_default().to_string();
        for field in ["indexName", "direction", "sortPattern", "filter", "indexBounds"] {
            match stage.get(field) {
                Some(Value::String(text)) => line += &format!(" {text}"),
                Some(value) => line += &format!(" {}", to_relaxed(value)),
                None => {}
            }
        }
        out.push(line);
        if let Some(input) = stage.get_document("inputStage") {
            walk(input, out);
        }
        for input in stage.get_array("inputStages").into_iter().flatten().filter_map(Value::as_document) {
            let mut branch = Vec::new();
            walk(input, &mut branch);
            out.push(format!("({})", branch.join(" < ")));
        }
    }
    let mut out = Vec::new();
    walk(&winning_plan(plan, &Extras::default()), &mut out);
    out
}
