//! Updates written as a pipeline.

use crate::ParseContext;
use document::{Doc, DocBuf, Result, Value, bail};

/// Stages an update may use.
const ALLOWED: &[&str] = &["$addFields", "$set", "$project", "$unset", "$replaceRoot", "$replaceWith"];

#[derive(Clone, Debug)]
pub(super) struct Steps {}

impl Steps {
    pub(super) fn parse(stages: &[Value], _ctx: &ParseContext) -> Result<Steps> {
        for stage in stages {
            let name = match stage {
                Value::Document(d) => d.keys().next().unwrap_or(""),
                _ => bail!(TYPE_MISMATCH, "Each element of the 'pipeline' array must be an object"),
            };
            if !ALLOWED.contains(&name) {
                bail!(INVALID_OPTIONS, "{name} is not allowed to be used within an update");
            }
        }
        bail!(NOT_IMPLEMENTED, "updates with a pipeline are known but not implemented in this server")
    }
    pub(super) fn apply(&self, _old: Doc<'_>) -> Result<DocBuf> {
        bail!(NOT_IMPLEMENTED, "updates with a pipeline are known but not implemented in this server")
    }
}
