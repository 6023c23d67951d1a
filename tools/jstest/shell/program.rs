//! Programs that tests start.

use crate::{Shared, Shell};
use rquickjs::Ctx;
use std::rc::Rc;

/// The programs of the process, by pid, with their captured output.
#[derive(Default)]
pub struct Programs {}

pub fn register(_ctx: &Ctx<'_>, _shell: &Rc<Shell>) -> rquickjs::Result<()> {
    Ok(())
}

/// Called once when the shell ends: stops what is still running.
pub fn finish(_shared: &Shared) {}
