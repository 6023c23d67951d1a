//! Expressions that no document has a part in. One that has no value fails a command before it runs, whether or not a document
//! asks for it, as the real server finds it while it optimises.
//!
//! ```text
//! QueryContext with Constants::checked ──scope──> Variables ──parse──> each outermost expression is looked through
//!                                                                      the first failure is kept ──check──> Err
//! ```
//!
//! What was asked for before something is parsed is parsed to its end first: an error of the text comes before one of a value.

use super::{Expression, Vars};
use document::error::Phase;
use document::{Doc, Error, Result, meter};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Whether constants are looked at while expressions are parsed, and the first that failed. Contexts and scopes of one command share it.
#[derive(Clone, Debug, Default)]
pub struct Constants(Option<Arc<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    /// How many expressions are being parsed, one in the other.
    depth: AtomicU32,
    failure: OnceLock<Error>,
}

impl Constants {
    pub fn checked() -> Constants {
        Constants(Some(Arc::default()))
    }

    /// # Errors
    /// What the first constant without a value has failed with, in the phase [`Phase::Constant`].
    pub fn check(&self) -> Result<()> {
        match self.0.as_ref().and_then(|noted| noted.failure.get()) {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    /// Parses, and looks through what comes of it if it is part of no other expression.
    pub(super) fn around(&self, parse: impl FnOnce() -> Result<Expression>) -> Result<Expression> {
        let Some(noted) = &self.0 else { return parse() };
        noted.depth.fetch_add(1, Ordering::Relaxed);
        let parsed = parse();
        let outermost = noted.depth.fetch_sub(1, Ordering::Relaxed) == 1;
        if outermost
            && let Ok(expression) = &parsed
            && let Err(failure) = settle(expression)
        {
            let _ = noted.failure.set(failure);
        }
        parsed
    }
}

/// Evaluates each constant in an expression, the innermost first where an operator evaluates only some of its arguments.
fn settle(e: &Expression) -> Result<()> {
    if is_strict(e) {
        return evaluate(e);
    }
    match e {
        Expression::Object(fields) => fields.iter().try_for_each(|(_, e)| settle(e)),
        Expression::Array(items) | Expression::Call(_, _, items) => items.iter().try_for_each(settle),
        Expression::Special(node) => {
            node.settled().into_iter().try_for_each(settle)?;
            match e.is_constant() {
                true => evaluate(e),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Whether it is a constant in which evaluation passes over nothing.
fn is_strict(e: &Expression) -> bool {
    match e {
        Expression::Constant(_) => true,
        Expression::Object(fields) => fields.iter().all(|(_, e)| is_strict(e)),
        Expression::Array(items) | Expression::Call(_, _, items) => items.iter().all(is_strict),
        _ => false,
    }
}

fn evaluate(e: &Expression) -> Result<()> {
    match e.eval(Doc::empty(), &mut Vars::new(0)) {
        // It is evaluated again when the command runs.
        Err(e) if e.code == meter::OVERRUN => Ok(()),
        Err(e) => Err(e.at(Phase::Constant)),
        Ok(_) => Ok(()),
    }
}
