//! What an explained command reads, and what it would do with it.

use super::super::aggregate::Asked;
use super::super::count::{self, CountCommand};
use super::super::distinct::{self, DistinctCommand};
use super::super::find::{self, FindCommand, Parsed};
use super::super::{command_variables, parse_hint};
use crate::exec::Shape;
use crate::namespace::Slot;
use crate::{Node, Operation, Request};
use document::{Collation, Doc, Document, Result, ValueRef, bail};
use query::QueryContext;
use query::matcher::Matcher;
use query::planner::Distinct;
use query::sort::SortSpec;

#[derive(Default)]
pub(super) struct Subject {
    pub(super) filter: Matcher,
    pub(super) sort: Option<SortSpec>,
    pub(super) hint: Option<query::planner::Hint>,
    pub(super) min: Option<Document>,
    pub(super) max: Option<Document>,
    pub(super) collation: Collation,
    pub(super) shape: Shape,
    /// Whether a sort may go on in files; `None`: as the parameter says.
    pub(super) allow_disk_use: Option<bool>,
    /// `COUNT`, `UPDATE`, `DELETE`, ... around the plan.
    pub(super) around: Option<&'static str>,
    /// Where nothing matches, a document would be inserted.
    pub(super) upsert: bool,
    /// The fields that are read, where no projection says so.
    pub(super) needed: Option<Vec<String>>,
    /// Documents are cut down to these fields.
    pub(super) narrows: bool,
    /// One record is asked for of each value of a path.
    pub(super) distinct: Option<Distinct>,
    /// Stages of a pipeline that tell its plan shape from that of its filter alone.
    pub(super) stages: Vec<u8>,
}

impl Subject {
    /// Reads the command `name`, any but `aggregate`.
    pub(super) fn of(
        node: &Node,
        op: &Operation,
        slot: &Slot,
        name: &str,
        body: Doc<'_>,
        request: &Request<'_>,
    ) -> Result<Subject> {
        let statement = match name {
            "update" => first_statement(body, "updates", request),
            "delete" => first_statement(body, "deletes", request),
            _ => None,
        };
        let collation = statement.unwrap_or(body).get_document("collation");
        let mut context = node.parse_context_on(slot, collation, command_variables(node, body)?)?;
        let filter = ["query", "q", "filter"].iter().find_map(|f| statement.unwrap_or(body).get_document(f));
        node.note_text_index(&mut context, slot, filter.unwrap_or(Doc::empty()));
        match name {
            "find" => Subject::of_find(node, op, slot, body),
            "count" => {
                let c = CountCommand::parse(body)?;
                let limit = Some(c.limit).filter(|n| *n > 0);
                let shape = Shape { skip: c.skip, limit, ..Shape::default() };
                let plain = Subject::plain(c.query, &context)?;
                let (around, needed) = (Some("COUNT"), Some(Vec::new()));
                Ok(Subject { hint: c.hint, shape, around, needed, ..plain })
            }
            "distinct" => {
                let c = DistinctCommand::parse(body)?;
                Ok(Subject {
                    needed: Some(vec![c.key.to_string()]),
                    distinct: Some(c.distinct()),
                    hint: c.hint,
                    ..Subject::plain(c.query, &context)?
                })
            }
            "findAndModify" | "findandmodify" => {
                let remove = body.get("remove").is_some_and(|v| v.truthy());
                let around = if remove { "DELETE" } else { "UPDATE" };
                Subject::of_write(body, "query", around, Some(1), &context)
            }
            "update" => {
                let s = only_statement(body, "updates", request)?;
                let multi = s.get("multi").is_some_and(|v| v.truthy());
                Subject::of_write(s, "q", "UPDATE", (!multi).then_some(1), &context)
            }
            "delete" => {
                let s = only_statement(body, "deletes", request)?;
                let multi = s.get_i64("limit") != Some(1);
                Subject::of_write(s, "q", "DELETE", (!multi).then_some(1), &context)
            }
            other => bail!(COMMAND_NOT_FOUND, "Explain failed due to unknown command: {other}"),
        }
    }

    /// A filter alone.
    fn plain(filter: Doc<'_>, context: &QueryContext) -> Result<Subject> {
        let filter = Matcher::parse_checked(filter, context)?;
        Ok(Subject { filter, collation: context.collation.clone(), ..Subject::default() })
    }

    fn of_find(node: &Node, op: &Operation, slot: &Slot, body: Doc<'_>) -> Result<Subject> {
        let command = FindCommand::parse(body)?;
        let mut parsed = Parsed::of(node, op, slot, &command, body)?;
        let wanted = parsed.wanted(&command);
        let (filter, shape) = (wanted.filter, wanted.shape);
        Ok(Subject {
            filter,
            shape,
            sort: parsed.sort,
            hint: parsed.hint,
            min: parsed.min,
            max: parsed.max,
            collation: parsed.collation,
            allow_disk_use: command.allow_disk_use,
            ..Subject::default()
        })
    }

    /// A statement of a write, whose filter stands in the field `filter`.
    fn of_write(
        s: Doc<'_>,
        filter: &str,
        around: &'static str,
        limit: Option<u64>,
        context: &QueryContext,
    ) -> Result<Subject> {
        let sort = s.get_document("sort").filter(|s| !s.is_empty()).map(SortSpec::parse).transpose()?;
        Ok(Subject {
            sort: sort.map(|s| s.with_collation(&context.collation)),
            hint: parse_hint(s)?,
            shape: Shape { limit, ..Shape::default() },
            around: Some(around),
            upsert: s.get("upsert").is_some_and(|v| v.truthy()),
            ..Subject::plain(s.get_document(filter).unwrap_or(Doc::empty()), context)?
        })
    }
}

/// The aggregation by which a command reads a view.
///
/// # Errors
/// CommandNotSupportedOnView (166) for a command that writes; NotImplemented (238) where that writes to a time series.
pub(super) fn asked_of_view(node: &Node, slot: &Slot, name: &str, body: Doc<'_>) -> Result<Asked> {
    let ns = slot.ns.as_str();
    match name {
        "find" => find::on_view(node, ns, &FindCommand::parse(body)?, body),
        "count" => count::on_view(node, ns, &CountCommand::parse(body)?, body),
        "distinct" => distinct::on_view(node, ns, &DistinctCommand::parse(body)?, body),
        _ if crate::timeseries::of(node, slot).is_some() => {
            bail!(NOT_IMPLEMENTED, "explain of {name} on a time series collection is not implemented")
        }
        _ => bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {ns} is a view, not a collection"),
    }
}

/// The first statement of a write command.
fn first_statement<'a>(body: Doc<'a>, list: &str, request: &Request<'a>) -> Option<Doc<'a>> {
    match body.get(list) {
        Some(ValueRef::Array(a)) => a.iter().find_map(|e| e.value().as_document()),
        _ => request.documents(list).next(),
    }
}

/// The statement of a write command that has one.
fn only_statement<'a>(body: Doc<'a>, list: &str, request: &Request<'a>) -> Result<Doc<'a>> {
    let statements: Vec<Doc<'_>> = match body.get(list) {
        Some(ValueRef::Array(a)) => a.iter().filter_map(|e| e.value().as_document()).collect(),
        _ => request.documents(list).collect(),
    };
    match statements[..] {
        [only] => Ok(only),
        _ => bail!(INVALID_LENGTH, "explained write batches must be of size 1"),
    }
}
