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

/// The lock file of the build, which is beside its target folder, whoever builds this crate. Where the target folder is
/// elsewhere, versions are not known: better none than those of another build.
fn lock_file() {
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let mut locks = Path::new(&out).ancestors().skip(1).map(|folder| folder.join("Cargo.lock"));
    let lock = locks.find(|lock| lock.exists());
    if let Some(lock) = &lock {
        println!("cargo::rerun-if-changed={}", lock.display());
    }
    let text = lock.and_then(|lock| fs::read_to_string(lock).ok()).unwrap_or_default();
    fs::write(Path::new(&out).join("lock.toml"), text).expect("cargo's folder for it");
}
