//! Evaluation that became too long for a latch, or may not begin under one.

use crate::exec::query::LATCHED_QUANTA;
use document::{Doc, DocBuf, Result, meter};
use parking_lot::Mutex;

/// What a document is evaluated to. When that cannot be done under the latch, the document goes here, is evaluated
/// without the latch, and what came of it holds under the latch as long as the document is the same.
pub struct Aside<T>(Mutex<State<T>>);

#[derive(Default)]
enum State<T> {
    #[default]
    None,
    Wanted(DocBuf),
    Ready(DocBuf, T),
}

impl<T> Default for Aside<T> {
    fn default() -> Aside<T> {
        Aside(Mutex::new(State::None))
    }
}

impl<T: Clone> Aside<T> {
    /// Evaluates under a latch.
    ///
    /// # Errors
    /// [`meter::OVERRUN`], among others: see [`Aside::unless`].
    pub fn latched(&self, old: Doc<'_>, evaluate: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut state = self.0.lock();
        if let State::Ready(of, done) = &*state
            && of.bytes() == old.bytes()
        {
            return Ok(done.clone());
        }
        let done = meter::bounded(LATCHED_QUANTA, evaluate);
        if done.as_ref().is_err_and(|e| e.code == meter::OVERRUN) {
            *state = State::Wanted(old.to_owned());
        }
        done
    }
    /// Whether something is to be evaluated without the latch.
    pub fn is_wanted(&self) -> bool {
        matches!(&*self.0.lock(), State::Wanted(_))
    }
    /// What a write came to; `None` when a document had to be evaluated without the latch first, which has been done: the
    /// write is to be repeated.
    ///
    /// # Errors
    /// The write's, and the evaluation's.
    pub fn unless<W>(
        &self,
        written: Result<W>,
        evaluate: impl FnOnce(Doc<'_>) -> Result<T>,
    ) -> Result<Option<W>> {
        match written {
            Err(e) if e.code == meter::OVERRUN => {
                let wanted = std::mem::take(&mut *self.0.lock());
                if let State::Wanted(old) = wanted {
                    let done = evaluate(old.doc())?;
                    *self.0.lock() = State::Ready(old, done);
                }
                Ok(None)
            }
            other => other.map(Some),
        }
    }
}
