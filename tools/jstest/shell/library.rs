//! The JavaScript that is loaded before a test: the kernel, then our prelude or the files of a directory.

use crate::engine::evaluate;
use crate::{Library, Shell, codes, errors};
use rquickjs::{Ctx, Value};
use std::path::Path;
use std::rc::Rc;

macro_rules! embedded {
    ($directory:literal: $($name:literal)*) => {
        &[$((concat!($directory, "/", $name, ".js"), include_str!(concat!("../", $directory, "/", $name, ".js")))),*]
    };
}

/// Classes that the real shell has natively, beside the BSON types; the same under both libraries.
const KERNEL: &[(&str, &str)] = embedded!("shell/kernel": "handles");

/// Our own library after [`script::LIBRARY`], in the order of its dependencies.
const PRELUDE: &[(&str, &str)] = embedded!("prelude":
    "utils" "assert" "write_results" "mongo" "session" "db" "bulk" "collection" "collection_placement" "cursor" "query" "explain" "crud" "help"
    "sh" "rs"
    "servers" "bridge" "fail_points" "check_log" "replsettest" "replsettest_members" "replsettest_data"
    "checks" "shardingtest" "shardingtest_chunks");

/// Files of a foreign library that others need when they are loaded, in that order; the rest follow by name.
const FOREIGN_ORDER: &[&str] = &[
    "error_codes.js",
    "types.js",
    "assert.js",
    "utils.js",
    "db.js",
    "mongo.js",
    "collection.js",
    "query.js",
    "session.js",
    "servers.js",
    "servers_misc.js",
];

/// The BSON types and the classes of the shell.
pub fn load_kernel(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    script::load_kernel(ctx, KERNEL)
}

/// Loads the library that the shell was called with.
pub fn load(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> rquickjs::Result<()> {
    match &shell.options.library {
        Library::Own => {
            codes::define(ctx)?;
            load_embedded(ctx, &[script::LIBRARY])?;
            load_embedded(ctx, PRELUDE)
        }
        Library::Directory(directory) => load_directory(ctx, directory),
    }
}

fn load_embedded(ctx: &Ctx<'_>, files: &[(&str, &str)]) -> rquickjs::Result<()> {
    for (name, source) in files {
        evaluate(ctx, name, source)?;
    }
    Ok(())
}

/// A file of a foreign library, and what it threw when it was run before those it needs.
struct Pending<'js> {
    path: std::path::PathBuf,
    missed: Option<Value<'js>>,
}

/// Runs all `*.js` of a directory. A file that needs a name of a later one (ReferenceError) is tried again after the
/// others, as long as a round makes progress. What a file threw first is what is told: run again, one that declares
/// its names with `let` may fail for having declared them.
fn load_directory(ctx: &Ctx<'_>, directory: &Path) -> rquickjs::Result<()> {
    let paths = list_scripts(directory).map_err(|error| {
        errors::throw(ctx, &format!("cannot read the shell library {}: {error}", directory.display()))
    })?;
    if !paths.iter().any(|path| path.ends_with("error_codes.js")) {
        codes::define(ctx)?;
    }
    let mut pending: Vec<Pending> = paths.into_iter().map(|path| Pending { path, missed: None }).collect();
    while !pending.is_empty() {
        let round = pending.len();
        let mut postponed = Vec::new();
        for file in pending {
            if let Some(file) = run_or_postpone(ctx, file)? {
                postponed.push(file);
            }
        }
        if postponed.len() == round
            && let Some(thrown) = postponed.swap_remove(0).missed
        {
            return Err(ctx.throw(thrown));
        }
        pending = postponed;
    }
    Ok(())
}

/// Runs a file; gives it back when it misses a name.
fn run_or_postpone<'js>(ctx: &Ctx<'js>, file: Pending<'js>) -> rquickjs::Result<Option<Pending<'js>>> {
    let Pending { path, missed } = file;
    let source = std::fs::read_to_string(&path)
        .map_err(|error| errors::throw(ctx, &format!("cannot read {}: {error}", path.display())))?;
    let Err(error) = evaluate(ctx, &path.to_string_lossy(), &source) else { return Ok(None) };
    let thrown = errors::caught(ctx, error);
    let misses_a_name = is_reference_error(&thrown);
    let told = missed.unwrap_or(thrown);
    if misses_a_name { Ok(Some(Pending { path, missed: Some(told) })) } else { Err(ctx.throw(told)) }
}

fn list_scripts(directory: &Path) -> std::io::Result<Vec<std::path::PathBuf>> {
    let mut paths: Vec<_> = std::fs::read_dir(directory)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| {
            path.extension().is_some_and(|e| e == "js") && !path.to_string_lossy().ends_with(".tpl.js")
        })
        .collect();
    let rank = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = FOREIGN_ORDER.iter().position(|known| *known == name).unwrap_or(FOREIGN_ORDER.len());
        (place, name)
    };
    paths.sort_by_key(|path| rank(path));
    Ok(paths)
}

fn is_reference_error(thrown: &Value<'_>) -> bool {
    let name = thrown.as_object().and_then(|object| object.get::<_, Option<String>>("name").ok().flatten());
    name.as_deref() == Some("ReferenceError")
}
