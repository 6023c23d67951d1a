//! `jstest`: runs tests that were written for the legacy `mongo` shell, and is that shell.
//!
//! Called under the name `mongo`, or as `jstest shell ...`, it is the shell; under the name `mongobridge`, or as `jstest bridge ...`,
//! the proxy that tests put before their servers; called otherwise it is the runner, which starts itself as a shell once for every test.

mod runner;

fn main() {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    let mut rest: Vec<_> = args.collect();
    let called = std::path::Path::new(&name).file_stem().is_some_and(|stem| stem == "mongo");
    let bridge = std::path::Path::new(&name).file_stem().is_some_and(|stem| stem == "mongobridge");
    let mut takes = |role: &str| {
        let named = rest.first().is_some_and(|first| first == role);
        named.then(|| rest.remove(0)).is_some()
    };
    let status = if called || takes("shell") {
        jsshell::run(rest)
    } else if bridge || takes("bridge") {
        jsshell::bridge::run(rest)
    } else {
        runner::run(rest)
    };
    std::process::exit(status);
}
