//! `tessera`: the cluster in one process, and both servers, chosen by the name it is started under.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: document::meter::Counted<mimalloc::MiMalloc> = document::meter::Counted(mimalloc::MiMalloc);

fn main() {
    std::process::exit(server::process::by_name(std::env::args_os().collect()));
}
