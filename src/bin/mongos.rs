//! `mongos`: options in, exit code out.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    std::process::exit(server::process::main(server::options::Program::Mongos, std::env::args().collect()));
}
