//! Data directories of servers.

use super::{refused, tree};
use crate::natives::define;
use rquickjs::{Ctx, Result};
use std::path::Path;

pub(super) fn register(ctx: &Ctx<'_>) -> Result<()> {
    define(ctx, "resetDbpath", |ctx: Ctx<'_>, path: String| -> Result<()> {
        let made = tree::remove(Path::new(&path)).and_then(|_| std::fs::create_dir_all(&path));
        made.map_err(|error| refused(&ctx, "resetDbpath failed", &path, &error))
    })?;
    define(ctx, "copyDbpath", |ctx: Ctx<'_>, from: String, to: String| -> Result<()> {
        // The lock belongs to the server that runs on the original.
        let wanted = |path: &Path| !path.ends_with("mongod.lock");
        let copied =
            tree::remove(Path::new(&to)).and_then(|_| tree::copy(Path::new(&from), Path::new(&to), &wanted));
        copied.map_err(|error| refused(&ctx, "copyDbpath failed", &from, &error))
    })
}
