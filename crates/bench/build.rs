//! Tells the program which compiler made it and how, and with which versions of the libraries it measures: a results file
//! has to name them.

use std::{env, fs, path::Path, process::Command};

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
    lock_file();
}

/// The lock file of the workspace, or that of this package where it is built alone. As a dependency of another program
/// this crate has none: versions are not known then.
fn lock_file() {
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let lock = Path::new(&package)
        .ancestors()
        .take(3)
        .map(|folder| folder.join("Cargo.lock"))
        .find(|lock| lock.exists());
    if let Some(lock) = &lock {
        println!("cargo::rerun-if-changed={}", lock.display());
    }
    let text = lock.and_then(|lock| fs::read_to_string(lock).ok()).unwrap_or_default();
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("Cargo.lock"), text).expect("cargo's folder for it");
}
