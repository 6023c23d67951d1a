//! `mongos`: the `tessera` beside it, under this name.

mod by_name;

fn main() {
    std::process::exit(by_name::become_server("mongos"));
}
