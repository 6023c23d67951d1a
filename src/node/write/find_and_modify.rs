//! findAndModify: one document changed or removed, and shown as it was before or after.
//!
//! The image shown is kept in the log entry (`preImage` or `postImage`), so that a retry is answered with the same. An
//! upsert's entry is that image.

use super::aside::Aside;
use super::delete::{self, DeleteStatement};
use super::retry::kind_of;
use super::shapes;
use super::statement::*;
use super::update::{Filter, UpdateStatement, Upserted, change_record, upsert_may_retry, upsert_waiting};
use crate::read::candidates::{Candidates, Search};
use crate::timeseries::{self, Series};
use crate::{Node, Operation, Request, namespace::Slot};
use document::error::Phase;
use document::{Doc, DocBuf, Document, Result, Value, ValueRef, bail, codes, doc};
use query::matcher::Matcher;
use query::projection::Projection;
use query::sort::SortSpec;
use query::update::Update;
use std::sync::OnceLock;

const SEARCHES_MAX: usize = 100;

struct Command {
    statement: Statement,
    new: bool,
    projection: Option<Projection>,
    bypass: bool,
}
enum Statement {
    Remove(Box<DeleteStatement>),
    Update(Box<UpdateStatement>),
}

/// What happened, as `lastErrorObject` and `value` show it.
struct Answer {
    n: i32,
    updated_existing: Option<bool>,
    upserted: Option<Value>,
    value: Option<DocBuf>,
    /// The document that is for another shard to have: see [`MOVED`].
    moved: Option<DocBuf>,
}

/// What the errors begin with that come after the command was read.
const RUNNING: &str = "Plan executor error during findAndModify";

/// Runs a `findAndModify` command; answers the reply's members without `ok`.
pub async fn find_and_modify(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    check_writable(&ns)?;
    node.check_write_concern(op)?;
    let slot = node.namespaces.slot(&ns);
    let series = timeseries::named(node, op, &slot, request.body).await?;
    let command = Command::parse(node, (&slot, series.as_ref()), request)?;
    match &command.statement {
        Statement::Remove(_) if series.is_some() => {}
        Statement::Update(_) if series.is_some() => {
            bail!(
                INVALID_OPTIONS,
                "Cannot perform a findAndModify with an update on a time-series collection"
            )
        }
        _ => check_no_view(&slot)?,
    }
    let checkout = node.sessions.check_out(node, op).await?;
    let stmt = statement_id(op, 0);
    let mut retried = false;
    let answer = match executed_before(checkout.as_ref(), stmt)? {
        Some(at) => {
            retried = true;
            let entry = node.statement_entry(at, stmt)?;
            check_same_kind(&command, entry.doc())?;
            answered_before(entry, command.new)
        }
        None => match &command.statement {
            Statement::Remove(s) => {
                let old = delete::one(node, op, &slot, s, stmt, true).await;
                let old = old.map_err(|e| e.while_running(|| RUNNING.to_string(), Some(RUNNING)))?;
                Answer {
                    n: old.is_some() as i32,
                    updated_existing: None,
                    upserted: None,
                    value: old,
                    moved: None,
                }
            }
            Statement::Update(s) => {
                let done = run_update(node, op, &slot, s, &command, stmt).await;
                done.map_err(|e| e.while_running(|| RUNNING.to_string(), Some(RUNNING)))?
            }
        },
    };
    reply(&command, answer, retried.then_some(stmt))
}

impl Command {
    /// What a retry is answered with, as the log entry keeps it.
    fn image(&self, old: Doc<'_>, new: Doc<'_>) -> Document {
        match self.new {
            true => doc! { "postImage": new },
            false => doc! { "preImage": old },
        }
    }
    fn parse(node: &Node, (slot, series): (&Slot, Option<&Series>), request: Request<'_>) -> Result<Command> {
        let body = request.body;
        shapes::FIND_AND_MODIFY.check_command(body, request.sequences)?;
        let flag = |name: &str| body.get(name).is_some_and(|v| v.truthy());
        let filter = body.get_document("query").unwrap_or(Doc::empty());
        let variables = crate::read::command_variables(node, body)?;
        let mut context = node.parse_context_on(slot, body.get_document("collation"), variables)?;
        node.note_text_index(&mut context, slot, filter);
        let matcher = Matcher::parse_checked(filter, &context)?;
        let sort = match body.get_document("sort") {
            Some(s) if !s.is_empty() => {
                Some(SortSpec::parse(s)?.with_collation(&context.collation).with_text(matcher.text())?)
            }
            _ => None,
        };
        let fields = body.get_document("fields").or_else(|| body.get_document("projection"));
        let projection = match fields {
            Some(p) if !p.is_empty() => Some(Projection::parse(p, &matcher, &context)?),
            _ => None,
        };
        let hint = crate::read::parse_hint(body)?;
        // A hint must name an index even where `_id` would do.
        let (id, new) =
            (crate::read::pinned_id(filter, &context, slot).filter(|_| hint.is_none()), flag("new"));
        let statement = match (flag("remove"), body.get_present("update")) {
            (true, Some(_)) => bail!(FAILED_TO_PARSE, "Cannot specify both an update and remove=true"),
            (true, None) if body.get_present("arrayFilters").is_some() => {
                bail!(FAILED_TO_PARSE, "Cannot specify arrayFilters and remove=true")
            }
            (true, None) if flag("upsert") => {
                bail!(FAILED_TO_PARSE, "Cannot specify both upsert=true and remove=true ")
            }
            (true, None) if new => {
                bail!(
                    FAILED_TO_PARSE,
                    "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
                )
            }
            (true, None) => {
                let series = delete::with_filter(series.cloned(), filter, &context)?;
                let aside = Aside::default();
                let delete = DeleteStatement { filter: matcher, id, one: true, sort, hint, aside, series };
                Statement::Remove(Box::new(delete))
            }
            (false, None) => bail!(FAILED_TO_PARSE, "Either an update or remove=true must be specified"),
            (false, Some(u)) => {
                let filters: Vec<Document> = match body.get("arrayFilters") {
                    Some(ValueRef::Array(a)) => {
                        a.iter().filter_map(|e| e.value().as_document()).map(|d| d.to_document()).collect()
                    }
                    _ => Vec::new(),
                };
                let update = Update::parse(&u.to_value(), &filters, &context)?;
                Statement::Update(Box::new(UpdateStatement {
                    filter: Filter::Parsed(matcher),
                    id,
                    update,
                    multi: false,
                    upsert: flag("upsert"),
                    supplied: None,
                    sort,
                    hint,
                    sample: crate::sampling::take::id_of(body),
                    aside: Aside::default(),
                    fresh: OnceLock::new(),
                }))
            }
        };
        Ok(Command { statement, new, projection, bypass: flag("bypassDocumentValidation") })
    }
}

/// What one look through the candidates came to.
enum Looked {
    Changed(Answer),
    NothingMatches,
    /// A document that had matched no longer did when its turn came: another one may match by now.
    ChangedAway,
}

async fn run_update(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    s: &UpdateStatement,
    command: &Command,
    stmt: i32,
) -> Result<Answer> {
    for _ in 0..SEARCHES_MAX {
        match change_found(node, op, slot, s, command, stmt).await? {
            Looked::Changed(answer) => return Ok(answer),
            Looked::ChangedAway => continue,
            Looked::NothingMatches => {}
        }
        if !s.upsert {
            slot.read(op, |_| Ok(())).await?;
            return Ok(Answer {
                n: 0,
                updated_existing: Some(false),
                upserted: None,
                value: None,
                moved: None,
            });
        }
        match upsert_waiting(node, op, slot, s, stmt, command.bypass).await {
            Ok(Upserted { new, moved }) => {
                let id = new.get("_id").map(|v| v.to_value());
                return Ok(Answer {
                    n: 1,
                    updated_existing: Some(false),
                    upserted: id,
                    moved: moved.then(|| new.clone()),
                    value: command.new.then_some(new),
                });
            }
            Err(e) if e.code == codes::DUPLICATE_KEY && upsert_may_retry(s.filter.matcher()?, &e) => {}
            Err(e) => return Err(e.at(Phase::Running)),
        }
    }
    bail!(WRITE_CONFLICT, "the documents this findAndModify matched kept changing")
}

/// Changes the first candidate that still matches when the namespace's latch is held.
async fn change_found(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    s: &UpdateStatement,
    command: &Command,
    stmt: i32,
) -> Result<Looked> {
    let image = |old: Doc<'_>, new: Doc<'_>| command.image(old, new);
    let mut changed_away = false;
    let pinned = s.id.as_ref().map(|id| id.to_holder());
    let search = Search { filter: s.filter.matcher()?, sort: s.sort.as_ref(), hint: s.hint.as_ref() };
    let mut candidates = match pinned {
        Some(_) => None,
        None => Some(Candidates::open(node, op, slot, search).await?),
    };
    loop {
        let records = match &mut candidates {
            Some(c) => c.next(op).await.map_err(|e| e.at(Phase::Running))?,
            None => Vec::new(),
        };
        if candidates.is_some() && records.is_empty() {
            break;
        }
        let change = loop {
            let written = node
                .write_waiting(op, &op.received, slot, |unit| {
                    let found = pinned
                        .as_ref()
                        .and_then(|h| unit.collection()?.find_id(h.get("")?))
                        .map(|(record, _)| record);
                    for record in records.iter().copied().chain(found) {
                        if let Some(change) =
                            change_record(unit, s, record, stmt, command.bypass, Some(&image))?
                        {
                            return Ok(Some(change));
                        }
                        changed_away |= pinned.is_none();
                    }
                    Ok(None)
                })
                .await;
            if let Some((change, _)) = s.unless_aside(node, written).map_err(|e| e.at(Phase::Running))? {
                break change;
            }
        };
        if let Some(change) = change {
            let moved = change.new.clone().filter(|_| change.moved);
            let value = if command.new { change.new.or(change.old) } else { change.old };
            let answer = Answer { n: 1, updated_existing: Some(true), upserted: None, value, moved };
            return Ok(Looked::Changed(answer));
        }
        if pinned.is_some() {
            break;
        }
    }
    Ok(if changed_away { Looked::ChangedAway } else { Looked::NothingMatches })
}

/// Refuses a repetition that asks for something else than was done.
///
/// # Errors
/// 40606 and its neighbours.
fn check_same_kind(command: &Command, entry: Doc<'_>) -> Result<()> {
    let refuse = |code: i32, what: &str| {
        Err(document::Error::new(
            code,
            format!("findAndModify retry request is not compatible with the previous write: {what}"),
        ))
    };
    // An upsert's entry holds the document itself.
    if entry.get_str("needsRetryImage").is_some() && kind_of(entry) != "i" {
        bail!(
            INCOMPLETE_TRANSACTION_HISTORY,
            "the document that this findAndModify returned was too large to reach this member"
        );
    }
    let kept = |name: &str| entry.get_document(name).is_some_and(|d| !d.is_empty());
    match (kind_of(entry), &command.statement) {
        ("d", Statement::Update(_)) => refuse(40606, "it removed the document"),
        ("i", Statement::Remove(_)) => refuse(40608, "it inserted a document"),
        ("u", Statement::Remove(_)) => refuse(40606, "it updated the document"),
        ("u", Statement::Update(_)) if command.new && kept("preImage") => {
            refuse(40610, "the document after the update is wanted, and the one before it is stored")
        }
        ("u", Statement::Update(_)) if !command.new && kept("postImage") => {
            refuse(40611, "the document before the update is wanted, and the one after it is stored")
        }
        _ => Ok(()),
    }
}

fn answered_before(entry: DocBuf, new: bool) -> Answer {
    let entry = entry.doc();
    let image = |name: &str| entry.get_document(name).filter(|d| !d.is_empty()).map(|d| d.to_owned());
    let value = image("postImage").or_else(|| image("preImage"));
    // What an upsert makes is the entry itself; there is no image of it.
    let inserted = || image("o").filter(|_| new && kind_of(entry) == "i");
    let value = value.or_else(inserted);
    let answer = Answer { n: 1, updated_existing: None, upserted: None, value, moved: None };
    match kind_of(entry) {
        "d" => answer,
        "i" => Answer {
            updated_existing: Some(false),
            upserted: entry.get_document("o").and_then(|o| o.get("_id")).map(|v| v.to_value()),
            ..answer
        },
        _ => Answer { updated_existing: Some(true), ..answer },
    }
}

fn reply(command: &Command, answer: Answer, retried: Option<i32>) -> Result<Document> {
    let mut last = doc! { "n": answer.n };
    if let Some(existing) = answer.updated_existing {
        last.push("updatedExisting", existing);
    }
    if let Some(id) = answer.upserted {
        last.push("upserted", id);
    }
    let value = match (answer.value, &command.projection) {
        (None, _) => Value::Null,
        (Some(v), None) => Value::from(v),
        (Some(v), Some(p)) => {
            let mut out = Vec::new();
            p.apply(v.doc(), &mut out)?;
            Value::from(DocBuf::from_validated(out))
        }
    };
    let mut reply = doc! { "lastErrorObject": last, "value": value };
    if let Some(stmt) = retried {
        reply.push("retriedStmtId", stmt);
    }
    if let Some(moved) = answer.moved {
        reply.push(MOVED, Value::from(moved));
    }
    Ok(reply)
}
