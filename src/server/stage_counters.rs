//! How often pipelines had each stage: `aggStageCounters` in the metrics of serverStatus.

use document::{Doc, Document, ValueRef};
use node::stripe::Counter;
use query::pipeline::table::STAGES;

/// A counter for each row of the table of stages.
pub struct StageCounters(Vec<Counter>);

impl Default for StageCounters {
    fn default() -> StageCounters {
        StageCounters(STAGES.iter().map(|_| Counter::default()).collect())
    }
}

impl StageCounters {
    /// Counts the stages of a pipeline that ran, and those of the pipelines within them.
    pub fn note(&self, pipeline: Doc<'_>) {
        for stage in pipeline.iter().filter_map(|e| e.value().as_document()) {
            let Some(stage) = stage.iter().next() else { continue };
            if let Some(row) = STAGES.iter().position(|row| row.name == stage.name()) {
                self.0[row].increment();
            }
            let Some(arguments) = stage.value().as_document() else { continue };
            for argument in arguments.iter() {
                let is_pipeline = stage.name() == "$facet" || argument.name() == "pipeline";
                if let ValueRef::Array(inner) = argument.value()
                    && is_pipeline
                {
                    self.note(inner);
                }
            }
        }
    }
    pub fn shown(&self) -> Document {
        STAGES.iter().zip(&self.0).map(|(row, n)| (row.name.to_string(), n.get().into())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{Value, doc};

    #[test]
    fn stages_within_stages_count() {
        let counters = StageCounters::default();
        let stages = vec![
            Value::from(doc! { "$match": { "pipeline": 1 } }),
            Value::from(doc! { "$lookup": { "from": "c", "as": "x", "pipeline": [{ "$match": {} }] } }),
            Value::from(doc! { "$facet": { "one": [{ "$match": {} }], "two": [{ "$limit": 1 }] } }),
        ];
        let command = doc! { "pipeline": Value::Array(stages) }.to_doc_buf();
        counters.note(command.doc().get("pipeline").and_then(|v| v.as_array()).unwrap());
        let shown = counters.shown();
        let counted = ["$match", "$lookup", "$facet", "$limit", "$sort"].map(|name| shown.get_i64(name));
        assert_eq!(counted, [3, 1, 1, 1, 0].map(Some));
    }
}
