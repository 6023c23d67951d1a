//! Natives of the family `missing`.

use crate::Shell;
use rquickjs::Ctx;
use std::rc::Rc;

/// Names of natives that a test called and this shell does not have.
#[derive(Default)]
pub struct Missing {}
pub fn register(_ctx: &Ctx<'_>, _shell: &Rc<Shell>) -> rquickjs::Result<()> {
    Ok(())
}
