//! The stages of a plan with what each of them did, as `executionStats` shows them: exact for each access to the
//! collection, derived from those for what lies above.

use super::walk::Counters;
use document::number::count;
use document::{Document, Value, doc};
use query::pipeline::account::Use;

/// What a plan did as a whole.
pub struct Whole {
    /// Documents, or what a write or a count above the plan met.
    pub returned: u64,
    pub counters: Counters,
    /// See [`super::Query::examined`].
    pub examined: Vec<Counters>,
    /// It found the end, unless a limit was reached first.
    pub ended: bool,
}

/// What a stage did, with all below it.
#[derive(Clone, Copy, Default)]
struct Did {
    works: u64,
    advanced: u64,
    ended: bool,
    examined: Counters,
}

/// The stages of `plan`, as [`query::explain::winning_plan`] shows them, with what they did.
pub fn with_counters(plan: Document, whole: &Whole) -> Document {
    let mut examined = whole.examined.iter().copied();
    Run { whole, examined: &mut examined }.stage(plan, whole.ended).0
}

struct Run<'a> {
    whole: &'a Whole,
    examined: &'a mut dyn Iterator<Item = Counters>,
}

impl Run<'_> {
    fn stage(&mut self, stage: Document, ended: bool) -> (Document, Did) {
        let name = stage.get_str("stage").unwrap_or_default().to_string();
        let ended_below = match name.as_str() {
            "SORT" => true,
            "LIMIT" => ended && self.whole.returned < amount(&stage, "limitAmount"),
            _ => ended,
        };
        let (mut below, mut fields, mut is_leaf) = (Did::default(), Document::new(), true);
        for (field, value) in stage.0 {
            let mut input = |run: &mut Self, d: Document| {
                is_leaf = false;
                let (shown, did) = run.stage(d, ended_below);
                below.works += did.works;
                below.advanced += did.advanced;
                below.examined += did.examined;
                Value::Document(shown)
            };
            let value = match (field.as_str(), value) {
                ("inputStage", Value::Document(d)) => input(self, d),
                ("inputStages", Value::Array(list)) => {
                    let inputs = list.into_iter().filter_map(|v| match v {
                        Value::Document(d) => Some(input(self, d)),
                        _ => None,
                    });
                    Value::Array(inputs.collect())
                }
                (_, value) => value,
            };
            fields.push(field, value);
        }
        let did = match is_leaf {
            true => self.leaf(&name, &fields, ended),
            false => self.above(&name, &fields, Did { ended, ..below }),
        };
        (self.shown(&name, fields, did), did)
    }

    /// An access to the collection.
    fn leaf(&mut self, name: &str, fields: &Document, ended: bool) -> Did {
        let examined = self.examined.next().unwrap_or_default();
        let scanned = name.ends_with("IXSCAN") || name.ends_with("_SCAN");
        let (looked, advanced) = match name {
            "EOF" | "RECORD_STORE_FAST_COUNT" => (0, 0),
            _ if scanned && !fields.contains_key("filter") => (examined.keys, examined.keys - examined.dups),
            _ => (examined.keys.max(examined.docs), examined.passed),
        };
        Did { works: looked + u64::from(ended), advanced, ended, examined }
    }

    /// A stage above others, of which `below` is the sum.
    fn above(&self, name: &str, fields: &Document, below: Did) -> Did {
        let (works, found) = (below.works, below.advanced);
        let (works, advanced) = match name {
            "FETCH" if fields.contains_key("filter") => (works, below.examined.passed),
            // What a filter above it refuses counts as refused here: one look at the document decides both.
            "TEXT_MATCH" => (works, below.examined.passed),
            "SHARDING_FILTER" => (works, found.saturating_sub(below.examined.foreign)),
            "OR" | "SORT_MERGE" => (works, found.saturating_sub(self.own_dups(below.examined))),
            "SORT" => {
                let found = found.min(amount(fields, "limitAmount"));
                (works + found + u64::from(below.ended), found)
            }
            "SKIP" => (works, found.saturating_sub(amount(fields, "skipAmount"))),
            "LIMIT" => {
                let limit = amount(fields, "limitAmount");
                (works + u64::from(below.ended && found >= limit), found.min(limit))
            }
            "COUNT" | "UPDATE" | "DELETE" => (works, 0),
            _ => (works, found),
        };
        Did { works, advanced, ..below }
    }

    /// What a union met again: all that was, but for what its branches did by themselves.
    fn own_dups(&self, below: Counters) -> u64 {
        self.whole.counters.dups.saturating_sub(below.dups)
    }

    fn shown(&self, name: &str, mut fields: Document, did: Did) -> Document {
        fields.remove("stage");
        let mut out = doc! { "stage": name };
        out.0.extend(fields.remove("filter").map(|filter| ("filter".to_string(), filter)));
        let idle = did.works.saturating_sub(did.advanced + u64::from(did.ended));
        out.0.extend(
            doc! {
                "nReturned": count(did.advanced), "executionTimeMillisEstimate": 0, "works": count(did.works),
                "advanced": count(did.advanced), "needTime": count(idle), "needYield": 0, "saveState": 0,
                "restoreState": 0, "isEOF": i32::from(did.ended),
            }
            .0,
        );
        let input = ["inputStage", "inputStages"].map(|name| (name, fields.remove(name)));
        out.0.extend(fields.0);
        self.push_own(name, did.examined, &mut out);
        out.0.extend(input.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
        out
    }

    /// What only stages of this name count.
    fn push_own(&self, name: &str, examined: Counters, out: &mut Document) {
        let own = match name {
            "COLLSCAN" | "CLUSTERED_IXSCAN" => doc! { "docsExamined": count(examined.docs) },
            "EXPRESS_IXSCAN" | "EXPRESS_CLUSTERED_IXSCAN" => {
                doc! { "keysExamined": count(examined.keys), "docsExamined": count(examined.docs) }
            }
            "IXSCAN" => {
                let tested =
                    if out.get("isMultiKey") == Some(&Value::Boolean(true)) { examined.keys } else { 0 };
                doc! {
                    "keysExamined": count(examined.keys), "seeks": count(examined.seeks), "dupsTested": count(tested),
                    "dupsDropped": count(examined.dups),
                }
            }
            "DISTINCT_SCAN" | "COUNT_SCAN" => doc! { "keysExamined": count(examined.keys) },
            "TEXT_MATCH" => doc! { "docsRejected": count(examined.docs.saturating_sub(examined.passed)) },
            "FETCH" => doc! { "docsExamined": count(examined.docs), "alreadyHasObj": 0 },
            "SHARDING_FILTER" => doc! { "chunkSkips": count(examined.foreign) },
            "OR" | "SORT_MERGE" => {
                let dropped = self.own_dups(examined);
                doc! { "dupsTested": count(examined.passed), "dupsDropped": count(dropped) }
            }
            "SORT" => {
                let used = self.whole.counters.sort;
                let mut own = doc! { "totalDataSizeSorted": count(used.peak_bytes as u64) };
                push_spills(&mut own, used);
                own
            }
            "COUNT" | "RECORD_STORE_FAST_COUNT" => doc! { "nCounted": count(self.whole.returned) },
            "UPDATE" => doc! {
                "nMatched": count(self.whole.returned), "nWouldModify": count(self.whole.returned), "nWouldUpsert": 0,
            },
            "DELETE" => doc! { "nWouldDelete": count(self.whole.returned) },
            _ => return,
        };
        out.0.extend(own.0);
    }
}

fn amount(stage: &Document, field: &str) -> u64 {
    stage.get_i64(field).map_or(if field == "skipAmount" { 0 } else { u64::MAX }, i64::unsigned_abs)
}

/// Whether and how much was spilled.
pub fn push_spills(out: &mut Document, used: Use) {
    out.push("usedDisk", used.spills > 0);
    out.0.extend(used.fields().0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(plan: Document, returned: u64, examined: Counters) -> Document {
        with_counters(plan, &Whole { returned, counters: examined, examined: vec![examined], ended: true })
    }

    fn numbers(stages: &Document, path: &str) -> [Option<i64>; 4] {
        ["works", "advanced", "needTime", "isEOF"]
            .map(|name| stages.get_path(&format!("{path}{name}")).and_then(Value::as_i64))
    }

    #[test]
    fn works_are_what_was_examined_and_the_end() {
        let scan = doc! { "stage": "COLLSCAN", "filter": { "a": 1 }, "direction": "forward" };
        let sort = doc! { "stage": "SORT", "limitAmount": 2, "inputStage": scan.clone() };
        let examined = Counters { docs: 10, passed: 4, ..Counters::default() };
        let shown = run(sort, 2, examined);
        assert_eq!(numbers(&shown, ""), [Some(14), Some(2), Some(11), Some(1)]);
        assert_eq!(numbers(&shown, "inputStage."), [Some(11), Some(4), Some(6), Some(1)]);
        let limited = doc! { "stage": "LIMIT", "limitAmount": 4, "inputStage": scan };
        let shown = run(limited, 4, examined);
        assert_eq!(numbers(&shown, ""), [Some(11), Some(4), Some(6), Some(1)]);
        assert_eq!(numbers(&shown, "inputStage."), [Some(10), Some(4), Some(6), Some(0)]);
    }

    #[test]
    fn what_was_found_again_or_is_not_owned_is_told_apart() {
        let scan = doc! { "stage": "IXSCAN", "isMultiKey": true };
        let fetch = doc! { "stage": "FETCH", "filter": { "b": 1 }, "inputStage": scan };
        let plan = doc! { "stage": "SHARDING_FILTER", "inputStage": fetch };
        let examined =
            Counters { keys: 9, docs: 7, dups: 2, passed: 5, foreign: 1, seeks: 1, ..Counters::default() };
        let shown = run(plan, 4, examined);
        assert_eq!(numbers(&shown, ""), [Some(10), Some(4), Some(5), Some(1)]);
        assert_eq!(numbers(&shown, "inputStage."), [Some(10), Some(5), Some(4), Some(1)]);
        assert_eq!(numbers(&shown, "inputStage.inputStage."), [Some(10), Some(7), Some(2), Some(1)]);
        assert_eq!(shown.get_path("inputStage.inputStage.dupsDropped").and_then(Value::as_i64), Some(2));
        assert_eq!(shown.get_i64("chunkSkips"), Some(1));
    }
}
