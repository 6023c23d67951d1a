//! One binary holds both servers. `mongod` and `mongos` are programs of a few kilobytes that become the `tessera` that
//! stands in the same directory, which acts by the name it was started under. The process keeps its id, and the
//! servers are linked once instead of three times.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Replaces this process by `tessera` under `name`. Returns, with an exit code, only when that fails.
pub(crate) fn become_server(name: &str) -> i32 {
    let program = match std::env::current_exe() {
        Ok(path) => path.with_file_name("tessera"),
        Err(error) => {
            eprintln!("{name}: cannot tell where this program stands: {error}");
            return 1;
        }
    };
    let mut args = std::env::args_os();
    let given = args.next().filter(|given| Path::new(given).ends_with(name));
    let error = Command::new(&program).arg0(given.unwrap_or_else(|| name.into())).args(args).exec();
    eprintln!("{name}: cannot start {}: {error}", program.display());
    eprintln!("{name} needs the program 'tessera' in its own directory.");
    1
}
