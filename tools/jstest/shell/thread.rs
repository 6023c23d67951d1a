//! `Thread` and `CountDownLatch`.

use crate::Shell;
use rquickjs::Ctx;
use std::rc::Rc;

/// The threads and latches of the process.
#[derive(Default)]
pub struct Threads {}

pub fn register(_ctx: &Ctx<'_>, _shell: &Rc<Shell>) -> rquickjs::Result<()> {
    Ok(())
}
