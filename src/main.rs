//! Weighs, moves, keeps and serves records: the command line.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
