//! `_setShellFailPoint({configureFailPoint: name, mode, data})`: fail points of this process, set as those of a server.
//!
//! No code of this shell asks a fail point yet: `dummy`, which every binary has for tests of the mechanism itself, is the
//! only one. Any other name is refused as unknown, so that no test believes it switched something on.

use crate::natives::{define, document};
use crate::{Shell, errors};
use document::{Doc, Error, ValueRef, bail, codes};
use parking_lot::Mutex;
use rquickjs::{Ctx, Object, Result, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

const KNOWN: &[&str] = &["dummy"];

/// When a fail point is entered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Off,
    AlwaysOn,
    /// So often, then off.
    Times(u32),
    /// Not the first so many times, then always.
    Skip(u32),
    /// With this probability, each time.
    Random(f64),
}

/// The fail points of the process that were set.
#[derive(Default)]
pub struct FailPoints(Mutex<BTreeMap<&'static str, Mode>>);

impl FailPoints {
    /// Sets one as the command says.
    fn configure(&self, command: Doc<'_>) -> document::Result<()> {
        let Some(("configureFailPoint", Some(name))) =
            command.iter().next().map(|first| (first.name(), first.value().as_str()))
        else {
            bail!(codes::BAD_VALUE, "a fail point is set by {{configureFailPoint: <name>, mode: <mode>}}")
        };
        let Some(known) = KNOWN.iter().find(|known| **known == name) else {
            bail!(codes::FAIL_POINT_SET_FAILED, "{name} not found")
        };
        let Some(mode) = command.get("mode") else {
            bail!(codes::NO_SUCH_KEY, "When setting a failpoint, you must supply a 'mode'")
        };
        self.0.lock().insert(known, parse_mode(mode)?);
        Ok(())
    }
}

fn parse_mode(mode: ValueRef<'_>) -> document::Result<Mode> {
    match mode {
        ValueRef::String("off") => Ok(Mode::Off),
        ValueRef::String("alwaysOn") => Ok(Mode::AlwaysOn),
        ValueRef::String(other) => bail!(codes::BAD_VALUE, "unknown mode: {other}"),
        ValueRef::Document(doc) => {
            let Some(field) = doc.iter().next() else {
                bail!(codes::BAD_VALUE, "an empty 'mode' of a fail point")
            };
            let count = |mode: fn(u32) -> Mode| match field.value().as_i64().map(u32::try_from) {
                Some(Ok(count)) if count <= i32::MAX as u32 => Ok(mode(count)),
                _ => Err(Error::new(codes::BAD_VALUE, format!("'{}' must be a count", field.name()))),
            };
            match field.name() {
                "times" => count(Mode::Times),
                "skip" => count(Mode::Skip),
                "activationProbability" => match field.value().as_f64() {
                    Some(p) if (0.0..=1.0).contains(&p) => Ok(Mode::Random(p)),
                    _ => bail!(codes::BAD_VALUE, "activationProbability must be a number from 0 to 1"),
                },
                other => bail!(codes::BAD_VALUE, "unknown mode: {other}"),
            }
        }
        _ => bail!(codes::TYPE_MISMATCH, "'mode' must be a string or an object"),
    }
}

/// Returns how often the fail point was entered, which is never.
pub fn register<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> Result<()> {
    let of = shell.clone();
    define(ctx, "_setShellFailPoint", move |ctx: Ctx<'js>, command: Value<'js>| -> Result<Object<'js>> {
        let command = document(&ctx, &command, "_setShellFailPoint")?;
        let configured = of.shared.fail_points.configure(command.doc());
        configured.map_err(|error| errors::throw_document(&ctx, &error))?;
        let answer = Object::new(ctx.clone())?;
        answer.set("count", 0)?;
        answer.set("ok", 1)?;
        Ok(answer)
    })
}

#[cfg(test)]
mod tests {
    use super::{FailPoints, Mode};
    use document::{Document, codes, doc};

    fn set(command: Document) -> Result<Mode, i32> {
        let points = FailPoints::default();
        points.configure(command.to_doc_buf().doc()).map_err(|error| error.code)?;
        let mode = points.0.lock()["dummy"];
        Ok(mode)
    }

    #[test]
    fn every_mode_is_kept() {
        let of =
            |mode: Document| set(doc! {"configureFailPoint": "dummy", "mode": document::Value::from(mode)});
        assert_eq!(set(doc! {"configureFailPoint": "dummy", "mode": "alwaysOn"}), Ok(Mode::AlwaysOn));
        assert_eq!(set(doc! {"configureFailPoint": "dummy", "mode": "off", "data": {"a": 1}}), Ok(Mode::Off));
        assert_eq!(of(doc! {"times": 3}), Ok(Mode::Times(3)));
        assert_eq!(of(doc! {"skip": 2.0}), Ok(Mode::Skip(2)));
        assert_eq!(of(doc! {"activationProbability": 0.5}), Ok(Mode::Random(0.5)));
        for wrong in [doc! {}, doc! {"times": (-1)}, doc! {"activationProbability": 2}, doc! {"often": 1}] {
            assert_eq!(of(wrong), Err(codes::BAD_VALUE));
        }
    }

    #[test]
    fn unknown_names_and_missing_modes_are_refused() {
        let unknown = set(doc! {"configureFailPoint": "failCommand", "mode": "off"});
        assert_eq!(unknown, Err(codes::FAIL_POINT_SET_FAILED));
        assert_eq!(set(doc! {"configureFailPoint": "dummy"}), Err(codes::NO_SUCH_KEY));
        assert_eq!(set(doc! {"mode": "off", "configureFailPoint": "dummy"}), Err(codes::BAD_VALUE));
        assert_eq!(set(doc! {"configureFailPoint": "dummy", "mode": 1}), Err(codes::TYPE_MISMATCH));
    }
}
