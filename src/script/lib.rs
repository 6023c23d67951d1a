//! JavaScript over BSON: what the shell's engine and the servers' have in common, and the role in which a server's
//! scripts run.
//!
//! ```text
//! bson, kernel/types.js     BSON types as classes, documents as objects and back
//! library/types.js          tojson and its family, helpers on Array, Object, Date ...
//! message                   what a server and its script process say to each other
//! child                     the script process: reads calls, evaluates, replies
//! ```
//!
//! A script may run for ever, or fill the memory, inside a native of the engine that no interrupt reaches. So no server
//! evaluates one: it starts this program again in a role of its own and kills it when time is up.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a process of its own, which no simulation runs"
)]

pub mod bson;
pub mod child;
pub mod errors;
pub mod message;
pub mod natives;

use md5::{Digest, Md5};
use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Function, Value};

/// The stack of a thread that runs JavaScript.
pub const STACK_BYTES: usize = 32 << 20;
/// Where scripts that recurse are stopped by an exception. The rest of the stack is for the natives they call; the
/// engine takes no larger limit than this one.
pub const SCRIPT_STACK_BYTES: usize = 16 << 20;

/// A name and a source.
pub type Source = (&'static str, &'static str);

/// The classes of BSON types.
const TYPES: Source = ("types", include_str!("kernel/types.js"));
/// Texts of values and the helpers that scripts of the shell and the servers rely on.
pub const LIBRARY: Source = ("types", include_str!("library/types.js"));

/// Evaluates sloppy-mode global code, as every script of the shell and the servers is.
pub fn evaluate<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> rquickjs::Result<Value<'js>> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_string());
    ctx.eval_with_options(source, options)
}

/// Defines the classes of BSON types and then what `more` defines. Each file of the kernel is one function of the
/// natives that only the kernel may call.
pub fn load_kernel(ctx: &Ctx<'_>, more: &[Source]) -> rquickjs::Result<()> {
    let natives = bson::natives(ctx)?;
    for (name, source) in std::iter::once(&TYPES).chain(more) {
        let define: Function = evaluate(ctx, name, source)?.get()?;
        define.call::<_, ()>((natives.clone(),))?;
    }
    ctx.globals().remove(bson::NATIVE)
}

/// The MD5 of a text in hexadecimal digits.
pub fn md5_hex(text: &str) -> String {
    document::encoding::hex(&Md5::digest(text.as_bytes()))
}
