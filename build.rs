//! Tells the program which compiler made it and how: a results file has to name both.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
        .unwrap_or_default();
    println!("cargo::rustc-env=STEELYARD_RUSTC={version}");
    for (name, variable) in [("TARGET", "TARGET"), ("OPT_LEVEL", "OPT_LEVEL")] {
        let value = env::var(variable).unwrap_or_default();
        println!("cargo::rustc-env=STEELYARD_{name}={value}");
    }
}
