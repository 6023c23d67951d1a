//! What a commit asks of a document and what may take too long under its latch: the document's keys in an index, whether a validator accepts
//! it, and why it does not.
//!
//! ```text
//! under the latch      asked within a bound ───> answered: the commit goes on
//!                           └─ too long ───> the question is kept; the write fails with OVERRUN, and what it did before stays
//! without the latch    [`Ahead::work`] answers the question
//! under the latch      the write goes on from where it stopped, asks again, and finds the answer
//! ```
//!
//! A refusal is an answer, too, so that of several reasons a write is refused for the same one as ever. Whoever asks so can be called again:
//! [`Node::write_waiting`] does it.

#[cfg(test)]
mod tests;

use super::extras::Validator;
use crate::exec::query::LATCHED_QUANTA;
use crate::{Node, Operation};
use document::{Doc, DocBuf, Document, Result, meter};
use parking_lot::Mutex;
use std::sync::Arc;
use storage::IndexSpec;
use storage::index::{Asked, Computed, KeyBuffer, KeySource, Keys, Met};

/// How often in a row an answer may be of no use, since the document has become another one, before the question is answered under the latch.
const MISSES_MAX: u32 = 8;

/// The questions of one operation that were too long for a latch.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    wanted: Option<(Question, Arc<DocBuf>)>,
    /// Of the last two documents: an update has so many.
    known: Vec<(Question, Arc<DocBuf>, Answer)>,
    misses: u32,
}

#[derive(Clone, Debug)]
enum Question {
    Keys(Arc<IndexSpec>, Keys),
    Verdict(Arc<Validator>),
    Description(Arc<Validator>),
}

#[derive(Debug)]
enum Answer {
    Keys(Result<(KeyBuffer, Met)>),
    Verdict(Result<bool>),
    Description(Document),
}

impl Question {
    fn is(&self, other: &Question) -> bool {
        match (self, other) {
            (Question::Keys(a, of), Question::Keys(b, whose)) => Arc::ptr_eq(a, b) && of == whose,
            (Question::Verdict(a), Question::Verdict(b))
            | (Question::Description(a), Question::Description(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    fn answer(&self, node: &Node, doc: Doc<'_>) -> Answer {
        match self {
            Question::Keys(spec, keys) => {
                let mut out = KeyBuffer::default();
                let met = Asked { spec, doc, keys: *keys }.compute(0, &mut out);
                Answer::Keys(met.map(|met| (out, met)))
            }
            Question::Verdict(validator) => Answer::Verdict(validator.accepts_now(node, doc)),
            Question::Description(validator) => Answer::Description(validator.description(doc)),
        }
    }
}

impl Ahead {
    /// What was answered without the latch, through `read`; otherwise what `evaluate` comes to within the bound of a latch.
    ///
    /// # Errors
    /// [`meter::OVERRUN`] where that was too long: see [`Ahead::work`]. Those of `evaluate`.
    fn ask<T>(
        &self,
        question: impl Fn() -> Question,
        doc: Doc<'_>,
        read: impl FnOnce(&Answer) -> Option<Result<T>>,
        evaluate: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut state = self.0.lock();
        if !state.known.is_empty() {
            let asked = question();
            let known = state.known.iter().find(|(q, of, _)| q.is(&asked) && of.bytes() == doc.bytes());
            if let Some(found) = known.and_then(|(_, _, answer)| read(answer)) {
                state.misses = 0;
                return found;
            }
        }
        let changes = state.misses > MISSES_MAX;
        drop(state);
        if changes {
            return meter::unbroken(evaluate);
        }
        let done = meter::bounded(LATCHED_QUANTA, evaluate);
        if done.as_ref().is_err_and(|e| e.code == meter::OVERRUN) {
            self.want(question(), doc);
        }
        done
    }

    fn want(&self, question: Question, doc: Doc<'_>) {
        let mut state = self.0.lock();
        if state.known.iter().any(|(q, ..)| q.is(&question)) {
            state.misses += 1;
        }
        let same = state.known.iter().rev().map(|(_, of, _)| of).find(|of| of.bytes() == doc.bytes());
        let doc = same.cloned().unwrap_or_else(|| Arc::new(doc.to_owned()));
        state.wanted = Some((question, doc));
    }

    /// Answers the question that was too long, without the latch; false where there is none.
    pub(super) fn work(&self, node: &Node) -> bool {
        let Some((question, doc)) = self.0.lock().wanted.take() else { return false };
        let answer = question.answer(node, doc.doc());
        let mut state = self.0.lock();
        let other = state.known.iter().rev().map(|(_, of, _)| of).find(|of| !Arc::ptr_eq(of, &doc)).cloned();
        let stays =
            |of: &Arc<DocBuf>| Arc::ptr_eq(of, &doc) || other.as_ref().is_some_and(|o| Arc::ptr_eq(of, o));
        state.known.retain(|(q, of, _)| stays(of) && !(Arc::ptr_eq(of, &doc) && q.is(&question)));
        state.known.push((question, doc, answer));
        true
    }

    /// Whether the validator accepts the document.
    ///
    /// # Errors
    /// [`meter::OVERRUN`], and those of `accepts`.
    pub(super) fn verdict(
        &self,
        validator: &Arc<Validator>,
        doc: Doc<'_>,
        accepts: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        let read = |answer: &Answer| match answer {
            Answer::Verdict(verdict) => Some(verdict.clone()),
            _ => None,
        };
        self.ask(|| Question::Verdict(Arc::clone(validator)), doc, read, accepts)
    }

    /// Why the validator does not accept the document.
    ///
    /// # Errors
    /// [`meter::OVERRUN`].
    pub(super) fn description(&self, validator: &Arc<Validator>, doc: Doc<'_>) -> Result<Document> {
        let read = |answer: &Answer| match answer {
            Answer::Description(told) => Some(Ok(told.clone())),
            _ => None,
        };
        let describe = || {
            if doc.bytes().len() > DESCRIBED_BYTES_MAX {
                meter::aside()?;
            }
            Ok(meter::unbroken(|| validator.description(doc)))
        };
        self.ask(|| Question::Description(Arc::clone(validator)), doc, read, describe)
    }
}

/// The keys of a document as small as this are few enough for a latch.
const BYTES_FEW: usize = 4096;

/// Why a larger document is refused is not described under a latch.
const DESCRIBED_BYTES_MAX: usize = 16 * 1024;

/// Where a write has keys from: of one that can be called again, those that take long are computed without the latch.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Computed,
    Ahead(&'a Operation),
}

impl KeySource for Source<'_> {
    fn keys(&self, asked: Asked<'_>, slot: usize, out: &mut KeyBuffer) -> Result<Met> {
        let op = match self {
            Source::Ahead(op) if asked.doc.bytes().len() > BYTES_FEW => op,
            _ => return Computed.keys(asked, slot, out),
        };
        // Either reads or evaluates.
        let out = std::cell::RefCell::new(out);
        let read = |answer: &Answer| match answer {
            Answer::Keys(Ok((keys, met))) => {
                out.borrow_mut().extend(slot, keys);
                Some(Ok(met.clone()))
            }
            Answer::Keys(Err(e)) => Some(Err(e.clone())),
            _ => None,
        };
        let compute = || asked.compute(slot, &mut out.borrow_mut());
        op.ahead.ask(|| Question::Keys(Arc::clone(asked.spec), asked.keys), asked.doc, read, compute)
    }
}
