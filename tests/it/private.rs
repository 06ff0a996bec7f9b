//! Private servers are private: another user of this machine reads nothing of theirs, and who does not know
//! the password of this start does nothing with them.

use std::{
    cell::{Cell, RefCell},
    fs,
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Output,
    sync::{Arc, Mutex},
    time::Duration,
};

use steelyard::{
    ErrorKind, Result,
    record::dataset::Dataset,
    server::{PROGRAMS, Plan, Program, Ready, Server, Wish},
    store::{self, Key, Layout, Row},
};

use crate::{
    children::{Command, descendants},
    programs::{self, need, password},
};

/// A user of no program here, whom no server trusts.
const STRANGER: u32 = 65_533;
/// Those whose protocol has no password, or whose first user only a client can make. They are bound to the
/// loopback address; docs/servers.md says that every user of the machine can reach them.
const WITHOUT_PASSWORD: [&str; 3] = ["memcached", "mongodb", "tyrant"];
/// Every private server that can be started here, by TCP and by a socket where it can be.
fn each(mut look: impl FnMut(&Program, &Server)) {
    for program in PROGRAMS {
        for socket in [false, true].into_iter().take(1 + usize::from(program.sockets)) {
            let wish = Wish { socket, ..Wish::default() };
            let there = program.find().is_some();
            match there.then(|| program.start(&wish)) {
                Some(Ok(server)) => look(program, &server),
                Some(Err(e)) => panic!("{}: {e:?}", program.name),
                // No package manager has it.
                None if program.name == "mongodb" => {}
                None => programs::skip(format_args!("there is no {} here", program.name)),
            }
        }
    }
}

/// The folder of all that is a server's.
fn folder(server: &Server) -> PathBuf {
    let own = |folder: &&Path| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("steelyard-"))
    };
    server.data().ancestors().find(own).expect("a folder of its own").to_owned()
}

/// What another user gets to see.
fn as_user(user: u32, program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).uid(user).gid(user).current_dir("/").output().unwrap()
}

/// Which of these files and folders a user can open for reading: one process looks at all of them.
fn opened(user: u32, paths: &[&str]) -> Vec<String> {
    // A redirection opens the file, without a process for each.
    const LOOK: &str =
        r#"for path; do { true < "$path"; } 2> /dev/null && echo "$path"; done; echo end"#;
    let looked = as_user(user, "sh", &[&["-c", LOOK, "sh"], paths].concat());
    let told = String::from_utf8(looked.stdout).unwrap();
    let mut told: Vec<_> = told.lines().map(str::to_owned).collect();
    assert_eq!(told.pop().as_deref(), Some("end"), "{}", String::from_utf8_lossy(&looked.stderr));
    told
}

#[test]
fn nobody_else_reads_the_files_of_a_server() {
    each(|program, server| {
        let folder = folder(server);
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}: {}", program.name, folder.display());
        need!(programs::root("nobody else can look as another user"));
        let found = as_user(STRANGER, "find", &[folder.to_str().unwrap()]);
        let told = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(!found.status.success() && told.lines().count() <= 1, "{}: {told}", program.name);
        let files = String::from_utf8(Command::new("find").arg(&folder).output().unwrap().stdout);
        let files = files.unwrap();
        let files: Vec<&str> = files.lines().collect();
        let own = opened(0, &files);
        assert!(own.len() > files.len() / 2, "{}: {own:?} of {files:?}", program.name);
        let read = opened(STRANGER, &files);
        assert!(read.is_empty(), "{}: {read:?} of {} files", program.name, files.len());
    });
}

#[test]
fn no_password_is_an_argument_of_a_process() {
    each(|program, server| {
        let Some(password) = password(server.url()) else {
            assert!(WITHOUT_PASSWORD.contains(&program.name), "{} has no password", program.name);
            // Not a skip: some have none.
            return;
        };
        assert!(password.len() >= 32, "{}", program.name);
        let processes = server.processes();
        assert!(!processes.is_empty());
        for process in processes {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            assert!(!line.contains(password), "{}: {line}", program.name);
        }
    });
}

#[test]
fn each_start_has_a_password_of_its_own() {
    let first = need!(programs::server("redis", &Wish::default()));
    let second = need!(programs::server("redis", &Wish::default()));
    assert_ne!(password(first.url()).unwrap(), password(second.url()).unwrap());
}

/// The users of a process: real, effective, saved, of files.
fn users(process: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    users.split_whitespace().map(|user| user.parse().unwrap()).collect()
}

#[test]
fn each_server_runs_as_a_user_of_its_own() {
    need!(programs::root("servers run as this user"));
    let mut seen = Vec::new();
    each(|program, server| {
        // What is in root's home, with all that it needs, can be run by nobody else; a single file can.
        let binary = program.find().unwrap();
        let open = |folder: &Path| fs::metadata(folder).unwrap().permissions().mode() & 0o001 != 0;
        if !["ferretdb", "s3"].contains(&program.name) && !binary.ancestors().all(open) {
            return println!("{}: {} is out of reach", program.name, binary.display());
        }
        let processes = server.processes();
        let mut own: Vec<u32> = processes.iter().flat_map(|process| users(*process)).collect();
        own.sort_unstable();
        own.dedup();
        let [user] = own[..] else { panic!("{}: users {own:?}", program.name) };
        // No account's, no other server's, and nobody else's.
        let account = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(user)).unwrap();
        assert!(account.is_none(), "{}: {account:?}", program.name);
        assert!(!seen.contains(&user), "{}: {user} is another's", program.name);
        seen.push(user);
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(process) = entry.file_name().to_string_lossy().parse() else { continue };
            let others = !processes.contains(&process) && users(process).contains(&user);
            // It may have come after the list was made.
            assert!(!others || server.processes().contains(&process), "{process} is {user}'s, too");
        }
        // A service that runs as one of these gets in by no process of it.
        for service in ["nobody", "postgres", "mysql", "redis", "memcache"] {
            let Ok(Some(service)) = nix::unistd::User::from_name(service) else { continue };
            let parts = ["cwd/.", "root/.", "environ", "fd/."];
            let parts_of = |process| parts.map(|part| format!("/proc/{process}/{part}"));
            let paths: Vec<String> = processes.iter().flat_map(parts_of).collect();
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let read = opened(service.uid.as_raw(), &paths);
            assert!(read.is_empty(), "{}: {} reads {read:?}", program.name, service.name);
        }
    });
}

/// What stands in files when the server has begun, somebody may find in them.
#[test]
fn no_file_of_a_server_has_its_password() {
    each(|program, server| {
        // Not a skip: some have none.
        let Some(password) = password(server.url()) else { return };
        let of = |server: &Server| {
            let mut grep = Command::new("grep");
            let found = grep.args(["-rlF", "--", password]).arg(folder(server)).output().unwrap();
            String::from_utf8(found.stdout).unwrap()
        };
        assert_eq!(of(server), "", "{}", program.name);
    });
}

#[test]
fn a_server_that_is_started_again_has_its_password_and_no_file_with_it() {
    for name in ["mariadb", "postgres", "redis", "ferretdb"] {
        let mut server = need!(programs::server(name, &Wish::default()), continue);
        server.kill();
        server.restart().unwrap();
        let password = password(server.url()).unwrap().to_owned();
        let mut grep = Command::new("grep");
        let found = grep.args(["-rlF", "--", &password]).arg(folder(&server)).output().unwrap();
        assert_eq!(String::from_utf8(found.stdout).unwrap(), "", "{name}");
        assert_eq!(refused(server.url()), None, "{name}");
    }
}

/// Opens a store, writes and reads; says what was refused.
fn refused(url: &str) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tried = runtime.block_on(async {
        let place = store::open(url).await?;
        place.prepare(&Layout::plain()).await?;
        let key = Key::new("stranger")?;
        let record = Dataset::Users.document(1, 1).expect("a record");
        place.put(&[Row { key: key.clone(), record }]).await?;
        place.get(&[key]).await.map(drop)
    });
    tried.err().map(|e| format!("{e} ({:?})", e.kind()))
}

#[test]
fn nobody_does_anything_without_the_password() {
    each(|program, server| {
        let url = server.url();
        assert_eq!(refused(url), None, "{}: with it", program.name);
        // Not a skip: some have none.
        let Some(password) = password(url) else { return };
        let wrong = url.replace(password, &"0".repeat(password.len()));
        // Of a login, nothing; of S3, no secret of the right user.
        let without = url.replace(&format!(":{password}@"), "@").replace(password, "");
        // And nobody at all.
        let (head, rest) = without.split_once("//").unwrap();
        let nobody = rest.split_once('@').map(|(_, rest)| format!("{head}//{rest}"));
        for url in [wrong, without.clone()].into_iter().chain(nobody) {
            let why = refused(&url);
            println!("{}: {why:?}", program.name);
            assert!(why.is_some(), "{}: {url} was served", program.name);
            assert!(!why.unwrap().contains(password), "{}", program.name);
        }
    });
}

/// What its superuser may do with files of the machine, the rest of it may not do for strangers.
#[test]
fn mariadb_reads_and_writes_no_files_but_in_a_folder_of_its_own() {
    let server = need!(programs::server("mariadb", &Wish::default()));
    let place = fs::read_to_string(format!("/proc/{}/cmdline", server.processes()[0])).unwrap();
    let option = place.split('\0').find_map(|word| word.strip_prefix("--secure-file-priv="));
    let files = Path::new(option.expect("where files may be"));
    assert!(files.starts_with(folder(&server)), "{}", files.display());
}

/// Where the password comes from, of those who have one and of whom the command line knows which.
#[test]
fn a_password_need_not_be_in_the_url() {
    let desk = tempfile::tempdir().unwrap();
    let at = |name: &str| desk.path().join(name);
    let write = |name: &str, text: String| {
        fs::write(at(name), text).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o600)).unwrap();
    };
    each(|program, server| {
        let url = server.url();
        // Not a skip: some have none.
        let Some(password) = password(url) else { return };
        let without = url.replace(&format!(":{password}@"), "@");
        let without = without.replace(&format!("&secret_access_key={password}"), "");
        assert!(!without.contains(password), "{}", program.name);
        write("password", format!("{password}\n"));
        write("other", "wrong\n".into());
        write("pgpass", format!("*:1:*:*:wrong\n*:*:postgres:test:{password}\n"));
        write("pgpass-other", "127.0.0.1:*:*:*:wrong\n".into());
        write(".my.cnf", format!("[client]\nuser=root\npassword=\"{password}\"\n"));
        let gets = |url: &str, variables: &[(&str, &str)]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_steelyard"));
            command.args(["get", url, "nothing"]).current_dir(desk.path());
            command.env("HOME", at("nowhere")).env_remove("PGPASSFILE");
            let done = command.envs(variables.iter().copied()).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(!said.contains(password), "{}: {said}", program.name);
            // There is no such key, or no table yet.
            let let_in = ["no record with key", "no table", "no database"];
            (!let_in.iter().any(|says| said.contains(says))).then_some(said)
        };
        let sign = if without.contains('?') { '&' } else { '?' };
        let by_file = |file: &str| format!("{without}{sign}password_file={file}");
        let name = program.name;
        assert_eq!(gets(url, &[]), None, "{name}: in the URL");
        assert_eq!(gets(&by_file("password"), &[("STEELYARD_PASSWORD", "wrong")]), None, "{name}");
        assert!(gets(&by_file("other"), &[("STEELYARD_PASSWORD", password)]).is_some(), "{name}");
        assert!(gets(&without, &[]).is_some(), "{name}: without");
        // Of Redis, the user of whom its server asks a password has a name.
        let named = without.replace("redis://@", "redis://default@");
        assert_eq!(gets(&named, &[("STEELYARD_PASSWORD", password)]), None, "{name}: variable");
        let home = desk.path().to_str().unwrap();
        match name {
            "postgres" => {
                assert_eq!(gets(&without, &[("PGPASSFILE", "pgpass")]), None);
                assert!(gets(&without, &[("PGPASSFILE", "pgpass-other")]).is_some());
                let both = [("PGPASSFILE", "pgpass-other"), ("STEELYARD_PASSWORD", password)];
                assert_eq!(gets(&without, &both), None);
            }
            "mariadb" => {
                assert_eq!(gets(&without, &[("HOME", home)]), None);
                assert_eq!(gets(&without.replace("root@", ""), &[("HOME", home)]), None);
            }
            _ => {}
        }
    });
}

/// A program that has bound a port before the server could: it answers whoever comes as the server would, and keeps
/// what it is sent.
struct Thief {
    port: u16,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Thief {
    fn new(answer: &'static [u8]) -> Thief {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = got.clone();
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // Not a skip: the thief's own end.
                let Ok(mut stream) = stream else { return };
                let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
                let mut bytes = [0; 1000];
                let read = stream.read(&mut bytes).unwrap_or(0);
                kept.lock().unwrap().extend(&bytes[..read]);
                let _ = stream.write_all(answer);
                let _ = stream.write_all(b"more");
            }
        });
        Thief { port, got }
    }
}

thread_local! {
    /// The program that is planned with the ports of thieves, and those ports, the last first.
    static ROBBED: Cell<Option<&'static Program>> = const { Cell::new(None) };
    static PORTS: RefCell<Vec<u16>> = const { RefCell::new(Vec::new()) };
}

/// The plan of a program, but its port is that of a thief, as long as there are some.
fn robbed(plan: &mut Plan) -> Result<()> {
    (ROBBED.get().expect("a program").plan)(plan)?;
    let Some(taken) = PORTS.with_borrow_mut(Vec::pop) else { return Ok(()) };
    let mut chosen = 0;
    for launch in &mut plan.launches {
        if let Ready::Answers { port, .. } = &mut launch.ready {
            chosen = std::mem::replace(port, taken);
        }
    }
    let put = |text: &mut String| *text = text.replace(&chosen.to_string(), &taken.to_string());
    put(&mut plan.url);
    plan.launches.iter_mut().flat_map(|launch| &mut launch.args).for_each(put);
    Ok(())
}

/// Starts a server whose ports others have taken as often as there are thieves.
fn start_robbed(program: &'static Program, thieves: &[Thief]) -> Result<Server> {
    ROBBED.set(Some(program));
    PORTS.set(thieves.iter().map(|thief| thief.port).collect());
    Program { plan: robbed, ..*program }.start(&Wish::default())
}

/// What a program's own server answers when it is asked whether it is ready.
fn answer_of(program: &Program) -> &'static [u8] {
    match program.name {
        "redis" => b"+OK\r\n+PONG\r\n",
        "postgres" => b"R",
        "memcached" => b"VERSION 1\r\n",
        "tyrant" => b"\0",
        "couchdb" | "s3" => b"HTTP/1.1 200 OK\r\n\r\n",
        _ => b"hello",
    }
}

#[test]
fn a_port_that_another_program_took_gets_no_password_and_is_not_the_servers() {
    for program in PROGRAMS {
        if program.find().is_none() {
            match program.name {
                "mongodb" => continue,
                name => programs::skip(format_args!("there is no {name} here")),
            }
            continue;
        }
        let thieves = [Thief::new(answer_of(program)), Thief::new(answer_of(program))];
        let server = start_robbed(program, &thieves).unwrap_or_else(|e| panic!("{e:?}"));
        for thief in &thieves {
            assert!(!server.url().contains(&format!(":{}", thief.port)), "{}", server.url());
            let got = thief.got.lock().unwrap();
            assert!(got.is_empty(), "{}: {:?}", program.name, String::from_utf8_lossy(&got));
        }
        assert_eq!(refused(server.url()), None, "{}", program.name);
    }
}

#[test]
fn a_server_whose_ports_are_all_taken_does_not_start() {
    let program = PROGRAMS.iter().find(|program| program.name == "redis").expect("a program");
    if program.find().is_none() {
        return programs::skip("there is no redis here");
    }
    let thieves: Vec<_> = (0..3).map(|_| Thief::new(answer_of(program))).collect();
    let error = start_robbed(program, &thieves).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    // The last of three.
    let says = format!("port {} of 127.0.0.1 was taken by another program", thieves[0].port);
    assert!(error.to_string().contains(&says), "{error}");
    assert!(thieves.iter().all(|thief| thief.got.lock().unwrap().is_empty()));
}

#[test]
fn a_port_that_is_taken_before_a_server_is_started_again_is_an_error() {
    let mut server = need!(programs::server("redis", &Wish::default()));
    let port = server.url().rsplit(':').next().unwrap().parse().unwrap();
    server.kill();
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let error = server.restart().unwrap_err();
    assert!(error.to_string().contains("was taken by another program"), "{error}");
    drop(taken);
    server.restart().unwrap();
    assert_eq!(refused(server.url()), None);
}

/// The environment of a process.
fn environment(process: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    bytes.split(|b| *b == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect()
}

/// Who may do anything on a server can read its environment.
#[test]
fn a_server_gets_nothing_of_the_environment_but_what_programs_need() {
    const PASSED: [&str; 7] =
        ["PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD"];
    let passed = |name: &str| PASSED.contains(&name) || name.starts_with("LC_");
    // Those of the user who runs this. A python of pyenv is a script that sets the last itself.
    let kept = |name: &str| !passed(name) && !name.starts_with("PYENV_");
    let kept: Vec<String> = std::env::vars()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert!(!kept.is_empty(), "there is nothing to be kept from a server");
    each(|program, server| {
        let watched = folder(server).display().to_string();
        let watchmen = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("steelyard-watchman") && line.contains(&watched)
        });
        let watchmen = watchmen.map(|entry| entry.file_name().to_string_lossy().parse().unwrap());
        let watchmen: Vec<u32> = watchmen.collect();
        assert_eq!(watchmen.len(), 1, "{}", program.name);
        let mut homes = 0;
        for process in server.processes().into_iter().chain(watchmen) {
            for entry in environment(process) {
                assert!(!kept.contains(&entry), "{}: {process} has {entry}", program.name);
                homes += usize::from(entry == format!("HOME={watched}"));
            }
        }
        assert!(homes > 0, "{}: HOME is no folder of the server's own", program.name);
    });
}

/// Files in memory and segments of System V that belong to a user.
fn memory_of(user: u32) -> usize {
    let files = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let files = files.filter(|file| file.metadata().is_ok_and(|data| data.uid() == user)).count();
    let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let of = |line: &&str| line.split_whitespace().nth(7) == Some(&user.to_string());
    files + segments.lines().filter(of).count()
}

#[test]
fn no_server_leaves_memory_behind_however_it_ends() {
    // What belongs to this user may be of another program.
    need!(programs::root("servers run as this user"));
    for name in ["postgres", "ferretdb"] {
        let there = || programs::server(name, &Wish::default());
        let server = need!(there(), continue);
        let user = users(server.processes()[0])[0];
        assert!(memory_of(user) > 0, "{name}: there is none to be removed");
        server.stop();
        assert_eq!(memory_of(user), 0, "{name}: stopped");

        let mut server = there().unwrap();
        let user = users(server.processes()[0])[0];
        server.kill();
        assert!(memory_of(user) > 0, "{name}: there is none to be removed");
        drop(server);
        assert_eq!(memory_of(user), 0, "{name}: killed");

        // And where steelyard itself is killed.
        let mut steelyard = Command::new(env!("CARGO_BIN_EXE_steelyard"))
            .args(["servers", "run", name])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut out = std::io::BufReader::new(steelyard.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut url).unwrap();
        let family = descendants(steelyard.id());
        let user = family
            .iter()
            .map(|pid| users(*pid))
            .find_map(|users| users.first().copied().filter(|user| *user != 0));
        let user = user.expect("a user of the server's own");
        assert!(memory_of(user) > 0, "{name}: there is none to be removed");
        steelyard.kill().unwrap();
        steelyard.wait().unwrap();
        let begin = std::time::Instant::now();
        while memory_of(user) > 0 && begin.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert_eq!(memory_of(user), 0, "{name}: steelyard was killed");
    }
}
