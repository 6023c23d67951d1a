//! `print`, `sleep`, `quit` and what else a script says to the shell itself.

use crate::Shell;
use rquickjs::prelude::Rest;
use rquickjs::{Coerced, Ctx, Function};
use std::rc::Rc;

/// State that all threads of the process share.
#[derive(Default)]
pub struct State {}

pub fn register(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> rquickjs::Result<()> {
    let globals = ctx.globals();
    let out = shell.clone();
    let print = move |values: Rest<Coerced<String>>| {
        out.print_line(&values.0.into_iter().map(|v| v.0).collect::<Vec<_>>().join(" "));
    };
    globals.set("print", Function::new(ctx.clone(), print)?.with_name("print")?)?;
    let sleep = |ms: f64| std::thread::sleep(std::time::Duration::from_secs_f64((ms / 1000.0).max(0.0)));
    globals.set("sleep", Function::new(ctx.clone(), sleep)?.with_name("sleep")?)
}
