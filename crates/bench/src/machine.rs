//! The machine and the software a run was made with (rule 21).

use std::{collections::BTreeMap, fs};

use super::{quiet, results::Machine};
use crate::record::Time;

/// What can be found out about this machine; what cannot is empty or `None`.
pub fn describe() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    Machine {
        cpu: field(&cpuinfo, "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory: field(&read("/proc/meminfo"), "MemTotal")
            .and_then(|m| m.strip_suffix(" kB")?.trim().parse::<u64>().ok())
            .map_or(0, |kb| kb.saturating_mul(1024)),
        kernel: format!("{} {}", std::env::consts::OS, read("/proc/sys/kernel/osrelease").trim())
            .trim()
            .to_owned(),
        os: read("/etc/os-release")
            .lines()
            .find_map(|l| l.strip_prefix("PRETTY_NAME="))
            .map(|n| n.trim_matches('"').to_owned())
            .unwrap_or_default(),
        governor: fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .ok()
            .map(|g| g.trim().to_owned()),
        virtual_machine: field(&cpuinfo, "flags")
            .map(|flags| flags.split(' ').any(|f| f == "hypervisor")),
        features: features(),
        load: quiet::load(),
    }
}

/// Now, RFC 3339, to the second.
pub fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.map_or(0, |d| d.as_secs());
    Time::from_unix(seconds as i64, 0).map(|t| t.to_string()).unwrap_or_default()
}

/// The value behind `name` and a colon, in the first line that has it.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The vector extensions that the codecs choose between at run time.
fn features() -> Vec<String> {
    let mut found: Vec<&str> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! look {
            ($($name:tt)*) => {
                $(if std::is_x86_feature_detected!($name) { found.push($name); })*
            };
        }
        look!("sse4.2" "avx2" "bmi2" "pclmulqdq" "avx512f" "avx512bw" "avx512vbmi2");
    }
    #[cfg(target_arch = "aarch64")]
    found.push("neon");
    found.into_iter().map(str::to_owned).collect()
}

/// The libraries that a figure may be a figure of: what reads, writes, packs, sends and counts.
const LIBRARIES: [&str; 33] = [
    "base64",
    "bson",
    "bytes",
    "dashu-int",
    "flate2",
    "futures-util",
    "hdrhistogram",
    "jiff",
    "memchr",
    "mongodb",
    "mysql_async",
    "mysql_common",
    "nix",
    "object_store",
    "percent-encoding",
    "quick-xml",
    "rand_pcg",
    "redis",
    "regex",
    "reqwest",
    "rusqlite",
    "rustls",
    "serde",
    "serde_json",
    "simdutf8",
    "socket2",
    "sonic-rs",
    "tokio",
    "tokio-postgres",
    "tokio-rustls",
    "unicode-normalization",
    "zmij",
    "zstd",
];

/// Name to version: steelyard, the compiler and its settings, and each library that may be measured.
pub fn software() -> BTreeMap<String, String> {
    let mut versions = locked(&LIBRARIES, include_str!(concat!(env!("OUT_DIR"), "/lock.toml")));
    let mut put = |name: &str, version: &str| versions.insert(name.to_owned(), version.to_owned());
    put("steelyard", env!("CARGO_PKG_VERSION"));
    put("rustc", env!("STEELYARD_RUSTC"));
    put("target", env!("STEELYARD_TARGET"));
    put("opt-level", env!("STEELYARD_OPT_LEVEL"));
    versions
}

/// The versions of these packages in a lock file, as the crates of steelyard use them.
fn locked(names: &[&str], lock: &str) -> BTreeMap<String, String> {
    let lock = lock.parse::<toml::Table>().unwrap_or_default();
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let packages: Vec<_> = packages.into_iter().flatten().collect();
    let text = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let ours = packages
        .iter()
        .filter(|package| text(package, "name").is_some_and(|name| name.starts_with("steelyard")));
    let uses = ours.filter_map(|package| package.get("dependencies")?.as_array()).flatten();
    let mut versions = BTreeMap::new();
    for (name, version) in uses.filter_map(toml::Value::as_str).filter_map(|used| {
        // Of several versions in the file, it says which.
        let (name, version) = used.split_once(' ').unwrap_or((used, ""));
        names.contains(&name).then_some((name, version.to_owned()))
    }) {
        let only = packages.iter().find(|p| text(p, "name").as_deref() == Some(name));
        let version = match version.is_empty() {
            true => only.and_then(|package| text(package, "version")),
            false => Some(version),
        };
        versions.extend(version.map(|version| (name.to_owned(), version)));
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_where_it_runs_and_what_it_is_made_of() {
        let machine = describe();
        assert!(!machine.cpu.is_empty() && machine.cores >= 1, "{machine:?}");
        let software = software();
        assert_eq!(software["steelyard"], env!("CARGO_PKG_VERSION"));
        assert!(software["rustc"].contains("rustc"), "{software:?}");
        assert!(software.contains_key("serde_json") && software.contains_key("bson"));
        assert!(!software.contains_key("insta"), "tests are not part of what is measured");
    }

    #[test]
    fn every_library_is_in_the_lock_file() {
        let software = software();
        let missing = LIBRARIES.iter().find(|&&name| !software.contains_key(name));
        assert_eq!(missing, None, "a library that is no longer used");
    }

    #[test]
    fn picks_the_version_that_is_used() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"0.9.1\"\n\
                    [[package]]\nname = \"a\"\nversion = \"1.2.3\"\n\
                    [[package]]\nname = \"b\"\nversion = \"5.0.0\"\n\
                    [[package]]\nname = \"c\"\nversion = \"6.0.0\"\n\
                    [[package]]\nname = \"steelyard-store\"\nversion = \"0.1.0\"\n\
                    dependencies = [\"a 1.2.3\", \"c\"]\n";
        let versions = locked(&["a", "b", "c"], lock);
        assert_eq!(versions["a"], "1.2.3");
        assert_eq!(versions["c"], "6.0.0");
        assert!(!versions.contains_key("b"), "nobody of ours uses it");
        assert!(locked(&["a"], "not toml [").is_empty());
    }
}
