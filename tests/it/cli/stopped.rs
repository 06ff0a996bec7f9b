//! Every verb ends when a server has stopped: it is frozen, so that it takes connections and answers nothing.

use std::{
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use steelyard::server::Wish;

use super::Desk;
use crate::programs::{self, need};

/// Beyond this a verb hangs. All of them have a limit of one second for an operation.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the program; none where it does not end.
fn ended(desk: &Desk, args: &[&str]) -> Option<(Output, Duration)> {
    let mut command = desk.command(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if child.try_wait().unwrap().is_some() {
            return Some((child.wait_with_output().unwrap(), begin.elapsed()));
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

fn every_verb_ends(name: &str) {
    let server = need!(programs::server(name, &Wish::default()));
    let desk = Desk::new();
    desk.run("generate people --count 300 p.json").well();
    let join = if server.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{join}timeout=1&connect_timeout=1", server.url());
    desk.run(&format!("copy p.json {} --key key -q", server.url())).well();
    server.freeze();
    let verbs: [&[&str]; 9] = [
        &["get", &url, "bob17"],
        &["each", &url],
        &["each", &url, "--where", "name~an"],
        &["put", &url, "p.json", "--key", "key"],
        &["delete", &url, "bob17"],
        &["delete", &url, "--where", "age>=80"],
        &["copy", "p.json", &url, "--key", "key"],
        &["copy", &url, "out.json"],
        &["bench", "keep", "--scale", "0.01", "--on", &url, "--budget", "3", "--no-audit"],
    ];
    let faults: Vec<String> = std::thread::scope(|scope| {
        let verbs = verbs.map(|args| (args, scope.spawn(|| ended(&desk, args))));
        type Run<'s> = std::thread::ScopedJoinHandle<'s, Option<(Output, Duration)>>;
        let fault = |(args, run): (&[&str], Run<'_>)| {
            let args = args.join(" ");
            match run.join().unwrap() {
                None => Some(format!("{args}: no end within {} s", PATIENCE.as_secs())),
                Some((output, took)) => {
                    let err = String::from_utf8_lossy(&output.stderr).into_owned();
                    println!(
                        "{name}: {args}: {:.1} s, {:?}: {err}",
                        took.as_secs_f64(),
                        output.status
                    );
                    output.status.success().then(|| format!("{args}: exit 0: {err}"))
                }
            }
        };
        verbs.into_iter().filter_map(fault).collect()
    });
    server.thaw();
    assert!(faults.is_empty(), "{name}: {}", faults.join("\n"));
    assert!(!desk.path().join("out.json").exists(), "{name}: a copy of nothing was left");
}

macro_rules! servers {
    ($($name:ident)*) => {
        $(#[test] fn $name() { every_verb_ends(stringify!($name)); })*
    };
}

servers!(mariadb postgres redis memcached ferretdb couchdb s3 tyrant);
