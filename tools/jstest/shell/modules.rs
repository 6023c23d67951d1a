//! Scripts, modules and `load`.

use crate::{Shell, engine, errors};
use rquickjs::{Ctx, Runtime};
use std::path::Path;
use std::rc::Rc;

/// Gives the runtime its loader of modules; called before there is a context.
pub fn install(_runtime: &Runtime, _shell: &Rc<Shell>) {}

pub fn register(_ctx: &Ctx<'_>, _shell: &Rc<Shell>) -> rquickjs::Result<()> {
    Ok(())
}

/// Runs a file given on the command line.
pub fn run_file(ctx: &Ctx<'_>, _shell: &Rc<Shell>, path: &Path) -> rquickjs::Result<()> {
    let source = std::fs::read_to_string(path)
        .map_err(|error| errors::throw(ctx, &format!("error loading js file: {}: {error}", path.display())))?;
    engine::evaluate(ctx, &path.to_string_lossy(), &source).map(|_| ())
}
