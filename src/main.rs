//! Weighs, moves, keeps and serves records: the command line.

mod cli;

/// Counts allocations in the untimed pass of a bench; elsewhere it is the system's allocator.
#[global_allocator]
static ALLOCATOR: steelyard::bench::allocations::Counting = steelyard::bench::allocations::Counting;

fn main() -> std::process::ExitCode {
    cli::run()
}
