//! Connections to servers.

use crate::Shell;
use rquickjs::Ctx;
use std::rc::Rc;

pub fn register(_ctx: &Ctx<'_>, _shell: &Rc<Shell>) -> rquickjs::Result<()> {
    Ok(())
}
