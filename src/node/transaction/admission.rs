//! What a command may say and do as part of a transaction, checked before it runs; the same on a node and on a router.

use crate::operation::{Operation, ReadLevel};
use document::{Doc, Error, Result, ValueRef, bail};

/// Commands that end a transaction and run in none.
pub fn ends(name: &str) -> bool {
    matches!(
        name,
        "commitTransaction" | "abortTransaction" | "prepareTransaction" | "coordinateCommitTransaction"
    )
}

/// Stages that read or write what no snapshot holds.
const STAGES: &[&str] = &[
    "$changeStream",
    "$currentOp",
    "$indexStats",
    "$collStats",
    "$listSessions",
    "$listLocalSessions",
    "$listCatalog",
    "$out",
    "$merge",
    "$planCacheStats",
    "$unionWith",
];

/// # Errors
/// InvalidOptions (72) for concerns out of place, OperationNotSupportedInTransaction (263) for what no transaction does.
pub fn check(op: &Operation, name: &str, db: &str, body: Doc<'_>) -> Result<()> {
    let starts = op.session.as_ref().is_some_and(|s| s.start_transaction);
    if ends(name) {
        if starts {
            bail!(
                OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "Cannot run '{name}' as the first statement of a multi-document transaction."
            );
        }
        return Ok(());
    }
    if op.write_concern.given {
        bail!(INVALID_OPTIONS, "writeConcern is not allowed within a multi-statement transaction");
    }
    check_read_concern(op, starts)?;
    let collection = body.iter().next().and_then(|e| e.value().as_str()).unwrap_or("");
    if matches!(db, "local" | "config") || (db == "admin" && name != "bulkWrite" && !collection.is_empty()) {
        bail!(
            OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "Cannot run command against the '{db}' database in a transaction."
        );
    }
    if collection == "system.views" && matches!(name, "find" | "aggregate" | "distinct") {
        return Err(Error::new(51071, "Cannot do a transaction on system.views"));
    }
    if collection == "system.profile" {
        bail!(
            OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "Cannot run command against the '{db}.{collection}' collection in a transaction."
        );
    }
    match name {
        "count" => bail!(
            OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "Cannot run 'count' in a multi-document transaction. Please see \
             http://dochub.mongodb.org/core/transaction-count for a recommended alternative."
        ),
        "find" if body.get("tailable").is_some_and(|v| v.truthy()) => {
            bail!(INVALID_OPTIONS, "Tailable cursors are not allowed in transactions")
        }
        "killCursors" if starts => bail!(
            OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "Cannot run 'killCursors' as the first statement of a multi-document transaction."
        ),
        "aggregate" => check_pipeline(body),
        _ => Ok(()),
    }
}

fn check_read_concern(op: &Operation, starts: bool) -> Result<()> {
    let concern = &op.read_concern;
    if concern.given && !starts {
        bail!(INVALID_OPTIONS, "Only the first command in a transaction may specify a readConcern");
    }
    if concern.after_op_time.is_some() {
        bail!(
            INVALID_OPTIONS,
            "afterOpTime is not allowed in the readConcern of a multi-document transaction"
        );
    }
    if matches!(concern.level, ReadLevel::Available | ReadLevel::Linearizable) {
        bail!(
            INVALID_OPTIONS,
            "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction"
        );
    }
    Ok(())
}

fn check_pipeline(body: Doc<'_>) -> Result<()> {
    if body.get("explain").is_some_and(|v| v.truthy()) {
        bail!(
            OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "Cannot run 'explain' in a multi-document transaction."
        );
    }
    let Some(ValueRef::Array(stages)) = body.get("pipeline") else { return Ok(()) };
    check_stages(stages)
}

/// What a stage runs inside reads the same snapshot, and may do no more than the stage.
fn check_stages(stages: Doc<'_>) -> Result<()> {
    for stage in stages.iter().filter_map(|e| e.value().as_document()?.iter().next()) {
        let name = stage.name();
        if STAGES.contains(&name) {
            bail!(
                OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "Operation not permitted in transaction :: caused by :: Aggregation stage {name} cannot run within a \
                 multi-document transaction."
            );
        }
        let Some(spec) = stage.value().as_document() else { continue };
        for inner in spec.iter().filter(|e| name == "$facet" || (name == "$lookup" && e.name() == "pipeline"))
        {
            if let ValueRef::Array(stages) = inner.value() {
                check_stages(stages)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{codes, doc};

    #[test]
    fn a_stage_that_no_transaction_runs_is_none_in_another_stage_either() {
        let code = |stage: document::Document| {
            let body =
                doc! { "aggregate": "c", "pipeline": vec![doc! { "$match": {} }, stage], "cursor": {} };
            check_pipeline(body.to_doc_buf().doc()).err().map(|e| e.code)
        };
        let stats = doc! { "$collStats": {} };
        let lookup =
            |stage: document::Document| doc! { "$lookup": { "from": "d", "as": "a", "pipeline": [stage] } };
        let refused = Some(codes::OPERATION_NOT_SUPPORTED_IN_TRANSACTION);
        assert_eq!(code(stats.clone()), refused);
        assert_eq!(code(lookup(stats.clone())), refused);
        assert_eq!(
            code(doc! { "$facet": { "a": [{ "$match": {} }], "b": [{ "$unionWith": "d" }] } }),
            refused
        );
        assert_eq!(code(lookup(lookup(doc! { "$facet": { "a": [stats.clone()] } }))), refused);
        assert_eq!(code(lookup(doc! { "$match": { "a": [stats.clone()] } })), None);
        assert_eq!(code(doc! { "$project": { "pipeline": [stats] } }), None);
    }
}
