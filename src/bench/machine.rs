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

/// Name to version: steelyard, the compiler and its settings, and each library it uses directly.
pub fn software() -> BTreeMap<String, String> {
    let mut versions = locked(include_str!("../../Cargo.toml"), include_str!("../../Cargo.lock"));
    let mut put = |name: &str, version: &str| versions.insert(name.to_owned(), version.to_owned());
    put("steelyard", env!("CARGO_PKG_VERSION"));
    put("rustc", env!("STEELYARD_RUSTC"));
    put("target", env!("STEELYARD_TARGET"));
    put("opt-level", env!("STEELYARD_OPT_LEVEL"));
    versions
}

/// The versions in a lock file of the packages that a manifest depends on.
fn locked(manifest: &str, lock: &str) -> BTreeMap<String, String> {
    let parse = |text: &str| text.parse::<toml::Table>().unwrap_or_default();
    let (manifest, lock) = (parse(manifest), parse(lock));
    let wanted = manifest.get("dependencies").and_then(toml::Value::as_table);
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let mut versions = BTreeMap::new();
    for package in packages.into_iter().flatten() {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str);
        if let (Some(name), Some(version)) = (text("name"), text("version"))
            && let Some(wish) = wanted.and_then(|w| w.get(name))
        {
            // A lock file can hold several versions of a package; ours is the one asked for.
            let wish = wish.as_str().or_else(|| wish.get("version")?.as_str()).unwrap_or("");
            if version.starts_with(wish) || !versions.contains_key(name) {
                versions.insert(name.to_owned(), version.to_owned());
            }
        }
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
    fn picks_the_version_asked_for() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"0.9.1\"\n\
                    [[package]]\nname = \"a\"\nversion = \"1.2.3\"\n\
                    [[package]]\nname = \"b\"\nversion = \"5.0.0\"\n";
        let versions = locked("[dependencies]\na = { version = \"1.2.0\" }\n", lock);
        assert_eq!(versions.len(), 1);
        let versions = locked("[dependencies]\na = \"1.2.3\"\n", lock);
        assert_eq!(versions["a"], "1.2.3");
        assert!(locked("not toml [", lock).is_empty());
    }
}
