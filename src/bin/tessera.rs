//! `tessera`: the cluster in one process, and the two servers under one name.

use clap::Parser;
use server::options::Program;
use server::up::{Cli, CliCommand};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let code = match Cli::parse().command {
        CliCommand::Up(up) => server::up::main(up),
        CliCommand::Mongod { args } => program(Program::Mongod, args),
        CliCommand::Mongos { args } => program(Program::Mongos, args),
    };
    std::process::exit(code);
}

fn program(program: Program, args: Vec<String>) -> i32 {
    let argv = std::iter::once(program.name().to_string()).chain(args).collect();
    server::process::main(program, argv)
}
