//! `benchRun` and its family: operations in a loop on several threads, and how many a second there were.
//!
//! Written in JavaScript over the natives of threads and connections: what is measured is the server, whose part of a
//! round trip is the larger one.

use crate::{Shell, engine};
use rquickjs::{Ctx, Result};
use std::rc::Rc;

pub fn register(ctx: &Ctx<'_>, _shell: &Rc<Shell>) -> Result<()> {
    engine::evaluate(ctx, "bench.js", include_str!("bench/bench.js")).map(|_| ())
}

#[cfg(test)]
mod tests {
    use crate::testing::run;

    #[test]
    fn a_job_without_what_it_needs_is_refused() {
        run(r#"
            function message(f) { try { f(); } catch (e) { return e.message; } return "none"; }
            const said = [message(() => benchRun()), message(() => benchRun({host: "localhost:1"})), message(() => benchFinish(ObjectId()))];
            const expected = ["benchRun takes one document", "the document needs 'ops', a list of operations", "no benchmark with this id runs"];
            if (said.join() !== expected.join()) throw Error(said.join());
        "#)
        .unwrap();
    }

    #[test]
    fn a_server_that_is_not_there_fails_the_run() {
        let script = r#"benchRun({host: "127.0.0.1:1", seconds: 0.01, ops: [{op: "nop"}]});"#;
        assert!(run(script).is_err());
    }
}
