//! Habits: pipes that close, errors nobody reads, colours, help, completions, manual pages.

use std::{
    fs::OpenOptions,
    io::{BufRead, BufReader, Read},
    process::Stdio,
};

use super::{Desk, Ran, STEELYARD, pages, ran};
use crate::{
    children::Command,
    programs::{self, need},
};

#[test]
fn who_has_read_enough_may_close_the_pipe() {
    let desk = Desk::with_catalogue();
    // More than a pipe holds, so that writing goes on when it is closed.
    desk.run("generate catalogue big.mrc --count 400").well();
    desk.write("bad.mrc", "no record at all \x1d".repeat(20_000));
    for args in [
        "show big.mrc",
        "copy big.mrc - --to json -q",
        "copy big.mrc - --to marcxml -q",
        "generate catalogue --count 100000",
        "check bad.mrc",
        "completions bash",
    ] {
        let mut command = desk.command(args.split(' '));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "{args}: {line:?}");
        let Ran { status, err, .. } = ran(child.wait_with_output().unwrap());
        assert_eq!((status, err.as_str()), (Some(0), ""), "{args}");
    }
}

#[test]
fn messages_nobody_can_get_change_nothing() {
    let desk = Desk::with_catalogue();
    desk.write("bad.mrc", &desk.read("a.mrc")[..5000]);
    desk.write("results.json", "{}");
    for (args, status) in [
        ("copy a.mrc b.json", 0),
        ("copy bad.mrc c.json", 1),
        ("copy a.mrc d.json --json", 0),
        ("generate users e.json --count 3", 0),
        ("show missing.mrc", 3),
        ("report results.json", 3),
        ("copy a.mrc b.nothing", 2),
        ("copy", 2),
        ("check bad.mrc", 1),
        ("bench formats a.mrc --formats json --rounds 1 --budget 1 --no-compressed", 0),
    ] {
        let heard = desk.run(args);
        assert_eq!(heard.status, Some(status), "{args}: {}", heard.err);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let full = ran(desk.command(args.split(' ')).stderr(full).output().unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 2>&-", STEELYARD]).args(args.split(' '));
        let closed = ran(shell.current_dir(desk.path()).output().unwrap());
        for unheard in [full, closed] {
            assert_eq!(unheard.status, Some(status), "{args}");
            if !args.starts_with("bench") {
                assert_eq!(unheard.out, heard.out, "{args}");
            }
        }
    }
    assert!(desk.read("b.json").ends_with(b"}\n"));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let desk = Desk::with_catalogue();
    desk.write("bad.mrc", &desk.read("a.mrc")[..5000]);
    desk.run(
        "bench formats a.mrc --formats json --rounds 1 --budget 1 --no-compressed --out r.json",
    )
    .well();
    for args in [
        "show a.mrc 1",
        "check a.mrc",
        "check bad.mrc --json",
        "copy a.mrc - --to json",
        "copy a.mrc - --to csv --fields 001 --where 001=none",
        "generate users --count 1",
        "formats",
        "completions fish",
        "report r.json",
        "report r.json --format svg",
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let Ran { status, err, .. } =
            ran(desk.command(args.split(' ')).stdout(full).output().unwrap());
        if args.contains("001=none") {
            // Nothing is written, so nothing fails.
            assert_eq!(status, Some(0), "{err}");
            continue;
        }
        assert_eq!(status, Some(3), "{args}: {err}");
        assert!(err.ends_with("No space left on device (os error 28)\n"), "{args}: {err}");
    }
}

#[test]
fn colours_are_for_terminals() {
    let desk = Desk::with_catalogue();
    let plain = desk.run("show a.mrc 1").well();
    assert!(plain.text().starts_with("record 1, byte 0\nLDR    "), "{}", plain.text());
    assert!(!plain.out.contains(&0x1b));
    let coloured = desk.run("show a.mrc 1 --color always").well();
    assert!(coloured.text().contains("\x1b[1;36mLDR\x1b[0m"), "{}", coloured.text());
    assert_eq!(desk.run("show a.mrc 1 --color never").well(), plain);
    let stripped: String = coloured
        .text()
        .split("\x1b[")
        .enumerate()
        .map(|(i, s)| if i == 0 { s } else { s.split_once('m').unwrap().1 })
        .collect();
    assert_eq!(stripped, plain.text());
    // Help, errors and tables too.
    for args in ["--help", "copy --help", "copy", "formats", "show a.mrc x"] {
        let Ran { out, err, .. } = desk.run(args);
        assert!(!out.contains(&0x1b) && !err.contains('\x1b'), "{args}");
    }
}

#[test]
fn a_terminal_gets_colours_unless_it_does_not_want_them() {
    need!(programs::found("script"));
    let desk = Desk::with_catalogue();
    let on_terminal = |env: Option<&str>, args: &str| {
        let mut script = Command::new("script");
        script.args(["-qec", &format!("'{STEELYARD}' {args}"), "/dev/null"]);
        script.current_dir(desk.path()).env_remove("NO_COLOR").stdin(Stdio::null());
        script.envs(env.map(|value| ("NO_COLOR", value)));
        let ran = ran(script.output().unwrap());
        assert_eq!(ran.status, Some(0), "{ran:?}");
        ran.text().replace("\r\n", "\n")
    };
    let plain = desk.run("show a.mrc 1").well();
    let coloured = desk.run("show a.mrc 1 --color always").well();
    assert_eq!(on_terminal(None, "show a.mrc 1"), coloured.text());
    assert_eq!(on_terminal(Some("1"), "show a.mrc 1"), plain.text());
    assert_eq!(on_terminal(None, "show a.mrc 1 --color never"), plain.text());
    assert_eq!(on_terminal(None, "show a.mrc 1 | cat"), plain.text());
    // The screen of a bench is bold in places.
    let bench = "bench formats a.mrc --formats json,marc21 --rounds 1 --budget 1";
    let screen = on_terminal(None, bench);
    assert!(screen.contains("\x1b[1mFormats: ") && !screen.contains("\\u{1b}"), "{screen}");
    assert!(!on_terminal(Some("1"), bench).contains("\x1b[1m"));
    // Progress is drawn there, and cleared away.
    let copied = on_terminal(None, "copy a.mrc b.json");
    assert!(copied.contains("120 records read, 120 written\n"), "{copied:?}");
    assert!(!on_terminal(None, "copy a.mrc b.json --quiet").contains("written"));
}

/// All verbs, with those that a verb has; without clap's own `help`.
fn verbs(desk: &Desk) -> Vec<String> {
    let below = |verb: &str| -> Vec<String> {
        let help = desk.run(&format!("{verb} --help")).well();
        let list = help.text().split_once("\nCommands:\n");
        let list = list.map_or("", |(_, list)| list.split("\n\n").next().unwrap());
        let names = list.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   "));
        let names =
            names.map(|l| l.split_whitespace().next().unwrap()).filter(|name| *name != "help");
        names.map(|name| format!("{verb} {name}")).collect()
    };
    let mut all = below("");
    let deeper: Vec<String> = all.iter().flat_map(|verb| below(verb)).collect();
    all.extend(deeper);
    all
}

#[test]
fn every_verb_teaches_by_example() {
    let desk = Desk::new();
    let verbs = verbs(&desk);
    assert!(verbs.len() >= 11 && verbs.contains(&" bench objects".into()), "{verbs:?}");
    for verb in verbs.iter().map(String::as_str).chain([""]) {
        let help = desk.run(&format!("{verb} --help")).well();
        let (_, examples) = help.text().split_once("\nExamples:\n").expect(verb);
        let shown = examples.lines().filter(|l| l.trim_start().starts_with("steelyard")).count();
        assert!(shown >= 1, "{verb}: {examples}");
        // Of the verb, and each example as it could be typed: its verbs and options exist.
        for example in examples.lines().filter(|l| l.trim_start().starts_with("steelyard")) {
            assert!(example.contains(verb), "{verb}: {example}");
            let words: Vec<&str> = example.split_whitespace().collect();
            if words[1] == "help" {
                continue;
            }
            let of = format!(" {}", words[1]);
            let help = verbs
                .iter()
                .filter(|v| **v == of || v.starts_with(&format!("{of} ")))
                .map(|v| desk.run(&format!("{v} --help")).text().to_owned())
                .collect::<String>();
            assert!(!help.is_empty(), "{example}");
            // Up to where the shell takes over; the tour aside, options are those of the verb.
            let own = words.iter().take_while(|w| !["|", ">", ">>", "&&", "<"].contains(w));
            for option in own.filter(|w| w.starts_with("--")) {
                assert!(help.contains(option), "{example}: {option}");
            }
            // Behind two spaces stands what it does.
            let typed = example.trim_start().split("  ").next().unwrap();
            pages::understood(&desk, verb, typed);
        }
    }
    assert_eq!(desk.run("").status, Some(2));
    assert!(desk.run("--version").well().text().starts_with("steelyard 0"));
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let desk = Desk::new();
    for (shell, mark) in [
        ("bash", "complete -F _steelyard"),
        ("zsh", "#compdef steelyard"),
        ("fish", "complete -c steelyard"),
    ] {
        let script = desk.run(&format!("completions {shell}")).well();
        assert!(script.text().contains(mark), "{shell}");
        for word in ["rejects", "objects", "completions", "marc8"] {
            assert!(script.text().contains(word), "{shell}: {word}");
        }
        let file = format!("steelyard.{shell}");
        desk.write(&file, &script.out);
        if programs::installed(shell) {
            let parsed = Command::new(shell).arg("-n").arg(&file).current_dir(desk.path()).output();
            let Ran { status, err, .. } = ran(parsed.unwrap());
            assert_eq!((status, err.as_str()), (Some(0), ""), "{shell}");
        }
    }
    need!(programs::found("bash"));
    // As bash would ask it: what can follow `steelyard co`?
    let ask = "source steelyard.bash; COMP_WORDS=(steelyard co); COMP_CWORD=1; \
               _steelyard steelyard co steelyard; echo ${COMPREPLY[@]}";
    let asked = Command::new("bash").args(["-c", ask]).current_dir(desk.path()).output();
    assert_eq!(ran(asked.unwrap()).text(), "copy completions\n");
    // Values of options and arguments, which the parser takes from the same tables.
    for (typed, offered) in [
        ("steelyard copy --to mar", "marshal marc21 marcxml"),
        ("steelyard servers run m", "mariadb memcached mongodb"),
        ("steelyard generate cat", "catalogue"),
        ("steelyard audit --durability t", "t0 t1 t2 t3"),
        ("steelyard bench documents --on sq", "sqlite"),
        ("steelyard copy --layout d", "document"),
    ] {
        let words: Vec<&str> = typed.split(' ').collect();
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let ask = format!(
            "source steelyard.bash; COMP_WORDS=({typed}); COMP_CWORD={}; _steelyard steelyard {last} {before}; \
             echo ${{COMPREPLY[@]}}",
            words.len() - 1
        );
        let asked = Command::new("bash").args(["-c", &ask]).current_dir(desk.path()).output();
        assert_eq!(ran(asked.unwrap()).text().trim_end(), offered, "{typed}");
    }
}

#[test]
fn help_is_a_verb_too() {
    let desk = Desk::new();
    for verb in ["copy", "bench formats", "servers run", "slabs classes"] {
        let long = desk.run(&format!("{verb} --help")).well();
        assert_eq!(desk.run(&format!("help {verb}")).well().text(), long.text(), "{verb}");
    }
    assert_eq!(desk.run("help nosuch").status, Some(2));
}

/// The long help explains languages and tiers; the short one stays short.
#[test]
fn long_help_explains_what_values_mean() {
    let desk = Desk::new();
    for (verb, explained) in [
        ("copy", &["Conditions (--where):", "sign      =", "Fields (--fields)"][..]),
        ("each", &["Conditions (--where):", "Fields (--fields)"]),
        ("delete", &["Conditions (--where):"]),
        ("audit", &["t2  a crash of the machine, except"]),
        ("servers run", &["t0  nothing: it is in memory"]),
    ] {
        let long = desk.run(&format!("{verb} --help")).well();
        let short = desk.run(&format!("{verb} -h")).well();
        for text in explained {
            assert!(long.text().contains(text), "{verb}: {text}");
            assert!(!short.text().contains(text), "{verb} -h: {text}");
        }
        assert!(short.text().lines().count() < 70, "{verb} -h");
    }
}

#[test]
fn manual_pages_are_made_for_every_verb() {
    let desk = Desk::new();
    desk.run("man pages/man1").well();
    let page = |name: &str| {
        let mut text = String::new();
        let path = desk.path().join("pages/man1").join(name);
        std::fs::File::open(path).expect(name).read_to_string(&mut text).unwrap();
        text
    };
    assert!(page("steelyard.1").contains(".TH steelyard 1"));
    for verb in &verbs(&desk) {
        let text = page(&format!("steelyard{}.1", verb.replace(' ', "-")));
        assert!(text.contains(".TH ") && text.contains("Examples:"), "{verb}");
    }
}

/// Tags, indicators, codes and text of records that would give a terminal orders.
#[test]
fn no_trouble_of_a_record_reaches_the_terminal_raw() {
    let desk = Desk::with_catalogue();
    let catalogue = desk.read("a.mrc");
    let record = super::records(&catalogue)[0];
    let base: usize = std::str::from_utf8(&record[12..17]).unwrap().parse().unwrap();
    let esc = *b"\x1b[2";
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    // In every entry of the directory, each part of it; and at every place of the leader and of some data.
    let places: Vec<usize> =
        (24..base - 3).step_by(3).chain(0..22).chain(base..base + 60).collect();
    for places in places.chunks(10) {
        let mut bytes = Vec::new();
        for &at in places {
            let begin = bytes.len();
            bytes.extend([record, record].concat());
            bytes[begin + at..begin + at + 3].copy_from_slice(&esc);
        }
        files.push((format!("{}.mrc", files.len()), bytes));
    }
    let xml = |tag: &str| {
        format!(
            "<collection><record><leader>00000nam a2200000 i 4500</leader><controlfield tag='{tag}'>x</controlfield>\
             <datafield tag='{tag}' ind1='&#155;' ind2='1'><subfield code='{tag}'>y</subfield></datafield>\
             <odd{tag}/></record></collection>"
        )
    };
    for tag in ["&#155;2J", "\u{9b}2", "\u{202e}ab", "&#x7f;"] {
        files.push((format!("{}.xml", files.len()), xml(tag).into_bytes()));
    }
    let mut told = 0;
    for (name, bytes) in files {
        desk.write(&name, bytes);
        for args in [
            format!("check {name} --pedantic"),
            format!("check {name} --pedantic --json"),
            format!("copy {name} out.json"),
            format!("copy {name} out.xml --strict --rejects bad"),
            format!("show {name}"),
        ] {
            let ran = desk.run(&args);
            let out = String::from_utf8_lossy(&ran.out).into_owned();
            let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            for said in [&ran.err, &out] {
                assert!(
                    !said.contains(odd),
                    "{args}: {:?}",
                    said.lines().find(|l| l.contains(odd))
                );
                told += usize::from(said.contains("\\u{1b}"));
            }
        }
    }
    assert!(told > 5, "{told}");
}

/// Names of a workload from somebody else, in its progress too.
#[test]
fn workloads_give_no_orders() {
    need!(programs::found("script"));
    let desk = Desk::new();
    desk.write(
        "o.toml",
        r#"name = "o"
about = "O."
[table.records]
dataset = "people"
count = 2000
[[phase]]
name = "l\u001b]0;x\u0007\u001b[8m\u202e"
do = "load"
[[phase]]
name = "g\u009b2J"
do = "get"
count = 2000
"#,
    );
    let mut script = Command::new("script");
    let line = format!("'{STEELYARD}' bench o.toml --on memory --on sqlite --rounds 2 --budget 3");
    script.args(["-qec", &line, "/dev/null"]).current_dir(desk.path()).stdin(Stdio::null());
    let out = String::from_utf8(script.output().unwrap().stdout).unwrap();
    for order in ["\x1b]", "\x1b[8m", "\u{202e}", "\u{9b}", "\u{7}"] {
        assert!(!out.contains(order), "{order:?}: {out:?}");
    }
    assert!(out.contains("\\u{1b}]0;x"), "{out}");
}

/// Keys, names of fields and values that would give a terminal orders.
#[test]
fn records_give_no_orders() {
    need!(programs::found("script"));
    let desk = Desk::new();
    let orders = ["\u{9b}2J", "\u{7f}\u{7f}", "\u{1b}[2J", "\u{202e}x", "\u{90}q"];
    let mut json = String::new();
    for (n, order) in orders.iter().enumerate() {
        let record = serde_json::json!({
            "_key": format!("k{n}{order}"), "age": n, "name": order, format!("f{order}"): [order],
        });
        json += &format!("{record}\n");
    }
    desk.write("a\u{9b}2J.json", &json);
    desk.write("bad\u{9b}2J.json", format!("{json}{{\"x\u{9b}\": \n[\"\u{9b}\"]\n"));
    desk.write("a.json", &json);
    let marc =
        "=LDR  00000nam a2200000 i 4500\n=001  x\u{9b}2J\n=245  10$aT\u{1b}[2J\u{7f}$b\u{202e}\n\n";
    desk.write("a.line", marc);
    desk.run("copy a.json sqlite:a.db -q").well();
    desk.run("copy a.json sqlite:b.db?format=marshal -q").well();
    let key = "'k0\u{9b}2J'";
    let mut runs = Vec::new();
    for to in [
        "json",
        "msgpack",
        "cbor",
        "marshal",
        "bson",
        "json+base64",
        "csv",
        "line",
        "marc21",
        "marcxml",
    ] {
        runs.push(format!("copy a.json - --to {to}"));
        runs.push(format!("copy a.line - --to {to}"));
        runs.push(format!("each sqlite:a.db --to {to}"));
        runs.push(format!("get sqlite:a.db {key} --to {to}"));
    }
    for args in [
        "copy a.json - --to json --packing gzip",
        "get sqlite:a.db",
        "get sqlite:a.db 'nothing\u{9b}2J'",
        "get sqlite:b.db",
        "each sqlite:a.db",
        "each sqlite:b.db --where 'name\u{9b}=\u{9b}'",
        "each sqlite:a.db --fields 'f\u{9b}2J'",
        "each sqlite:a.db --fields 'no\u{9b}2J'",
        "show a.json",
        "show a.line",
        "show sqlite:a.db",
        "show sqlite:b.db",
        "show 'a\u{9b}2J.json'",
        "show 'none\u{9b}2J.json'",
        "check 'a\u{9b}2J.json'",
        "check --json 'a\u{9b}2J.json'",
        "check --pedantic 'bad\u{9b}2J.json'",
        "check --json --pedantic 'bad\u{9b}2J.json'",
        "check --pedantic a.line",
        "copy 'bad\u{9b}2J.json' - --json",
        "copy 'bad\u{9b}2J.json' out.msgpack --strict",
        "copy a.json 'out\u{9b}2J.nothing'",
        "copy a.json sqlite:c.db --key 'f\u{9b}2J'",
        "copy a.json sqlite:a.db --on-duplicate reject",
        "put sqlite:d.db a.json",
        "put sqlite:d.db 'bad\u{9b}2J.json'",
        "delete sqlite:d.db 'no\u{9b}2J'",
        "delete sqlite:d.db --where 'f\u{9b}2J=1'",
    ] {
        match args.starts_with("get") && args.ends_with("db") {
            true => runs.push(format!("{args} {key}")),
            false => runs.push(args.to_owned()),
        }
    }
    let (mut seen, mut odd) = (0, Vec::new());
    for args in runs {
        let mut script = Command::new("script");
        script.args(["-qec", &format!("'{STEELYARD}' {args} 2>err"), "/dev/null"]);
        script.current_dir(desk.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        let out = script.output().unwrap().stdout;
        for (text, is_terminal) in [(out, true), (desk.read("err"), false)] {
            // Bytes that are no UTF-8 reach no terminal: some take single ones for orders.
            let whole = std::str::from_utf8(&text).map(str::to_owned);
            let text =
                whole.unwrap_or_else(|_| format!("{}\u{9b}", String::from_utf8_lossy(&text)));
            let order = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
            if text.contains(order) || text.contains("\r") && !text.contains("\r\n") {
                odd.push(format!("{args}: {:?}", text.lines().find(|line| line.contains(order))));
            }
            seen +=
                usize::from(is_terminal && (text.contains("\\u009b") || text.contains("\\u{9b}")));
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n"));
    assert!(seen > 20, "{seen}");
    // To a pipe the bytes go as they are.
    let piped = desk.run("copy a.json - --to json");
    assert!(
        piped.text().contains("\u{9b}2J") && piped.text().contains('\u{7f}'),
        "{}",
        piped.text()
    );
}
