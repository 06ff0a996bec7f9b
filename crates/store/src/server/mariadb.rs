//! MariaDB, and MySQL, which is started nearly the same.
//!
//! Making a data folder takes seconds, so it is a copy of a template.

use std::path::Path;

use super::{Cache, Launch, Plan, Program, Ready, Settings, find, ready::free_port, template};
use crate::{Error, ErrorKind, Result, durability::Tier};

pub(super) const PROGRAM: Program = Program {
    name: "mariadb",
    about: "MariaDB or MySQL; settings: engine=innodb|myisam|aria, binlog=on, general_log=on, \
            flush_method=nosync and the like, doublewrite=off, max_connections=N",
    binaries: &["mysqld", "mariadbd"],
    version: &["--no-defaults", "--version"],
    install: "apt-get install mariadb-server",
    tiers: &[Tier::T3, Tier::T2, Tier::T1],
    settings: Settings::Known(&[
        "engine",
        "binlog",
        "general_log",
        "flush_method",
        "doublewrite",
        "max_connections",
    ]),
    sockets: true,
    cache: Some(Cache {
        least: 6 << 20,
        // Engines other than InnoDB keep their keys in the second.
        args: |bytes| {
            let size = |name: &str| format!("--{name}={bytes}");
            vec![size("innodb-buffer-pool-size"), size("key-buffer-size")]
        },
    }),
    plan,
};

/// The database that is there from the start.
const DATABASE: &str = "steelyard";

/// The size of the log of changes, which is part of the template: the server would write one of its
/// own size anew at each start.
fn log_size(maria: bool) -> &'static str {
    match maria {
        true => "--innodb-log-file-size=64M",
        false => "--innodb-redo-log-capacity=64M",
    }
}

fn plan(plan: &mut Plan) -> Result<()> {
    let version = PROGRAM.version_of(&plan.binary).unwrap_or_default();
    let maria = version.contains("MariaDB");
    let tier = plan.tier(Tier::T3);
    let engine = plan.setting("engine").map(str::to_ascii_lowercase);
    let transactional = engine.as_deref().is_none_or(|engine| engine == "innodb");
    if let Some(tier @ (Tier::T2 | Tier::T3)) = plan.wish.tier.filter(|_| !transactional) {
        let engine = engine.as_deref().unwrap_or_default();
        return Err(tier.refused(&format!("engine {engine}"), &[Tier::T1]));
    }
    let data = plan.folder.join("data");
    plan.leave_root(&["mysql", "nobody"])?;
    template::provide(plan, &data, template(&version), || install(plan, maria, &data))?;

    let port = free_port()?;
    let folder = plan.folder.clone();
    let path = |name: &str| folder.join(name).display().to_string();
    let init = plan.folder.join("begin.sql");
    // It speaks first, as soon as it is ready.
    let mut launch =
        Launch::new(&plan.binary, Ready::Answers { port, ask: b"".into(), answer: b"" });
    launch = launch.secret(&init, begin(&plan.password, maria));
    launch = launch.args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve"]);
    launch = launch.args([
        format!("--datadir={}", data.display()),
        format!("--tmpdir={}", plan.make_folder("tmp")?.display()),
        format!("--socket={}", path("s")),
        format!("--pid-file={}", path("pid")),
        format!("--init-file={}", init.display()),
        format!("--secure-file-priv={}", plan.make_folder("files")?.display()),
        format!("--port={port}"),
        format!("--innodb-buffer-pool-size={}M", plan.wish.memory.unwrap_or(128)),
    ]);
    launch = launch.args([log_size(maria), "--key-buffer-size=32M", "--performance-schema=OFF"]);
    launch = launch.args([
        "--innodb-buffer-pool-load-at-startup=OFF",
        "--innodb-buffer-pool-dump-at-shutdown=OFF",
    ]);
    launch = launch.arg("--local-infile=ON");
    launch = launch.args(if maria { &[][..] } else { &["--mysqlx=OFF"] }.iter().copied());
    let (flush, sync) = match tier {
        Tier::T3 => ("1", "1"),
        Tier::T0 | Tier::T1 | Tier::T2 => ("2", "0"),
    };
    launch = launch.arg(format!("--innodb-flush-log-at-trx-commit={flush}"));
    launch = launch.arg(format!("--sync-binlog={sync}"));
    match on(plan, "binlog")? {
        true => {
            let log = plan.make_folder("binlog")?.join("log").display().to_string();
            launch = launch.args([format!("--log-bin={log}"), "--server-id=1".into()]);
            launch = launch.arg("--binlog-format=ROW");
        }
        false => launch = launch.arg("--skip-log-bin"),
    }
    if let Some(method) = plan.setting("flush_method") {
        launch = launch.arg(format!("--innodb-flush-method={method}"));
    }
    if let Some(connections) = plan.setting("max_connections") {
        launch = launch.arg(format!("--max-connections={connections}"));
    }
    if plan.setting("doublewrite").is_some() {
        let state = if on(plan, "doublewrite")? { "ON" } else { "OFF" };
        launch = launch.arg(format!("--innodb-doublewrite={state}"));
    }
    if on(plan, "general_log")? {
        let log = path("general.log");
        launch = launch.args(["--general-log=ON".into(), format!("--general-log-file={log}")]);
    }
    plan.launches.push(launch);
    plan.url = format!("mysql://root:{}@127.0.0.1:{port}/{DATABASE}", plan.password);
    let engine = engine.map(|engine| format!("engine={engine}"));
    let socket = plan.wish.socket.then(|| format!("socket={}", path("s")));
    for (i, option) in engine.into_iter().chain(socket).enumerate() {
        plan.url += if i == 0 { "?" } else { "&" };
        plan.url += &option;
    }
    plan.data = data;
    Ok(())
}

fn on(plan: &Plan, name: &str) -> Result<bool> {
    match plan.setting(name) {
        None | Some("off") => Ok(false),
        Some("on") => Ok(true),
        Some(other) => Err(Error::invalid(format!("{name}={other}: on or off"))),
    }
}

/// The name of the template of this version.
fn template(version: &str) -> Option<String> {
    // "mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"
    let number = version.split_whitespace().skip_while(|word| *word != "Ver").nth(1)?;
    Some(template::name("mysql", number))
}

/// The statements that it begins with, before it listens: a line each. Whoever came with the data folder may
/// come in with the password of this start only.
fn begin(password: &str, maria: bool) -> String {
    let mut text = format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n");
    if maria {
        // Among them one of the name that this machine had when the folder was made.
        text += "DELETE FROM mysql.global_priv WHERE User IN ('root', '');\nFLUSH PRIVILEGES;\n";
    }
    for host in ["localhost", "127.0.0.1"] {
        // MySQL's root is at home at a socket only.
        text += &format!(
            "DROP USER IF EXISTS ''@'{host}';\n\
             CREATE USER IF NOT EXISTS root@'{host}';\n\
             ALTER USER root@'{host}' IDENTIFIED BY '{password}';\n\
             GRANT ALL ON *.* TO root@'{host}' WITH GRANT OPTION;\n"
        );
    }
    text + "DROP USER IF EXISTS root@'::1';\n"
}

fn install(plan: &Plan, maria: bool, data: &Path) -> Result<()> {
    let mut launch = if maria {
        let script = "mariadb-install-db";
        let script = find::program(script).ok_or_else(|| {
            let what = format!("{script} is not installed; {}", PROGRAM.install);
            Error::new(ErrorKind::NotFound, what)
        })?;
        Launch::new(script, Ready::Ends).args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        ])
    } else {
        Launch::new(&plan.binary, Ready::Ends).args(["--no-defaults", "--initialize-insecure"])
    };
    launch = launch.args([
        format!("--datadir={}", data.display()),
        format!("--tmpdir={}", plan.make_folder("tmp")?.display()),
        log_size(maria).into(),
    ]);
    plan.run(&launch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_named_for_their_version() {
        let maria = "mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64";
        assert_eq!(template(maria).as_deref(), Some("mysql-10.11.6-MariaDB-0+deb12u1"));
        assert_eq!(template("something else"), None);
    }

    #[test]
    fn it_begins_with_a_statement_a_line() {
        let text = begin("secret", true);
        assert!(text.lines().all(|line| line.ends_with(';')), "{text}");
        assert_eq!(text.matches("IDENTIFIED BY 'secret'").count(), 2);
    }
}
