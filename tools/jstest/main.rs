//! `jstest`: runs tests that were written for the legacy `mongo` shell, and is that shell.
//!
//! Called under the name `mongo`, or as `jstest shell ...`, it is the shell; called otherwise it is the runner, which
//! starts itself as a shell once for every test.

mod runner;

fn main() {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    let mut rest: Vec<_> = args.collect();
    let called_mongo = std::path::Path::new(&name).file_stem().is_some_and(|stem| stem == "mongo");
    let status = if called_mongo {
        jsshell::run(rest)
    } else if rest.first().is_some_and(|first| first == "shell") {
        rest.remove(0);
        jsshell::run(rest)
    } else {
        runner::run(rest)
    };
    std::process::exit(status);
}
