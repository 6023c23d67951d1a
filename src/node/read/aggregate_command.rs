//! The fields of an `aggregate`, still raw: read in one place for a node and for a router, so that both refuse the same.

use super::fields::Fields;
use crate::shape::batch_size;
use document::{Doc, Result, ValueRef, bail, err};
use query::planner::Hint;

const FIELDS: Fields = Fields { command: "aggregate" };

#[derive(Clone, Debug)]
pub struct AggregateCommand<'a> {
    /// The array of stages.
    pub pipeline: Doc<'a>,
    /// Whether there was a `cursor`.
    pub cursor: bool,
    pub batch_size: Option<u64>,
    pub hint: Option<Hint>,
    pub allow_disk_use: Option<bool>,
    pub explain: bool,
    /// It came from a router, which merges what shards answer.
    pub from_router: bool,
    pub bypass_validation: bool,
    /// `$$NOW`, where the command has begun somewhere else.
    pub now_ms: Option<i64>,
    pub map_reduce: bool,
}

impl<'a> AggregateCommand<'a> {
    /// Reads the fields after the command's own.
    ///
    /// # Errors
    /// 40414, 40415, 14, 9 and 2 as the real server.
    pub fn parse(body: Doc<'a>) -> Result<AggregateCommand<'a>> {
        let mut out = AggregateCommand {
            pipeline: Doc::empty(),
            cursor: false,
            batch_size: None,
            hint: None,
            allow_disk_use: None,
            explain: false,
            from_router: false,
            bypass_validation: false,
            now_ms: None,
            map_reduce: false,
        };
        let mut pipeline = None;
        // A null is no field, but of these it is a wrong one.
        let heeded = |name: &str| matches!(name, "pipeline" | "cursor" | "allowDiskUse" | "explain" | "hint");
        for e in body.iter().skip(1) {
            if matches!(e.value(), ValueRef::Null | ValueRef::Undefined) && !heeded(e.name()) {
                continue;
            }
            match e.name() {
                "pipeline" => match e.value() {
                    ValueRef::Array(a) => pipeline = Some(a),
                    _ => return Err(FIELDS.wrong_type(&e, "array")),
                },
                "cursor" => {
                    out.cursor = true;
                    out.batch_size = batch_size(FIELDS.command, FIELDS.document(&e)?)?;
                }
                "allowDiskUse" | "explain" if e.value().as_bool().is_none() => {
                    return Err(FIELDS.wrong_type(&e, "bool"));
                }
                "allowDiskUse" => out.allow_disk_use = Some(FIELDS.bool(&e)?),
                "explain" => out.explain = FIELDS.bool(&e)?,
                "hint" => out.hint = Hint::given(e.value())?,
                "fromRouter" | "fromMongos" | "needsMerge" => out.from_router |= FIELDS.bool(&e)?,
                "let" | "collation" => drop(FIELDS.document(&e)?),
                "bypassDocumentValidation" => out.bypass_validation = FIELDS.bool(&e)?,
                "runtimeConstants" => {
                    if let Some(ValueRef::DateTime(now)) = FIELDS.document(&e)?.get("localNow") {
                        out.now_ms = Some(now);
                    }
                }
                "isMapReduceCommand" => out.map_reduce = FIELDS.bool(&e)?,
                "exchange"
                | "collectionUUID"
                | "passthroughToShard"
                | "encryptionInformation"
                | "querySettings"
                | "needsSortedMerge"
                | "isHybridSearch"
                | "includeQueryStatsMetrics"
                | "$_requestReshardingResumeToken" => {}
                name => FIELDS.unknown(name)?,
            }
        }
        if out.explain && body.get_present("writeConcern").is_some() {
            bail!(FAILED_TO_PARSE, "Aggregation explain does not support the 'writeConcern' option");
        }
        out.pipeline = pipeline.ok_or_else(|| {
            err!(IDL_FAILED_TO_PARSE, "BSON field 'aggregate.pipeline' is missing but a required field")
        })?;
        Ok(out)
    }
    /// Refuses a command that opens a cursor and does not say so.
    pub fn check_cursor(&self) -> Result<()> {
        if !self.cursor && !self.explain {
            bail!(
                FAILED_TO_PARSE,
                "The 'cursor' option is required, except for aggregate with the explain argument"
            );
        }
        Ok(())
    }
}

/// Whether the argument of `aggregate` names a collection; else it is the number that stands for none.
pub fn names_collection(argument: Option<ValueRef<'_>>) -> Result<bool> {
    match argument {
        Some(ValueRef::String(_) | ValueRef::Binary(..)) => Ok(true),
        Some(v) if is_one(v) => Ok(false),
        Some(v) if v.is_number() => {
            bail!(
                BAD_VALUE,
                "Invalid command format: the 'aggregate' field must specify a collection name or 1"
            )
        }
        Some(v) => bail!(INVALID_NAMESPACE, "collection name has invalid type {}", v.type_name()),
        None => bail!(INVALID_NAMESPACE, "collection name is missing"),
    }
}

/// Of a decimal what it is as a double counts.
fn is_one(v: ValueRef<'_>) -> bool {
    match v {
        ValueRef::Decimal128(_) => document::number::as_f64(&v.to_value()) == Some(1.0),
        v => v.as_i64() == Some(1),
    }
}
