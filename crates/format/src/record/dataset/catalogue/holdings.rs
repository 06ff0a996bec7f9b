//! Where copies stand, and what each library notes for itself: 583, 596, 852 to 999.

use super::{maker::Maker, plan::Kind, plan::Library};
use crate::record::dataset::random::mix;

/// A date as these systems write it: month/day/year, or year, month, day run together.
fn date(m: &mut Maker, dense: bool) {
    let (year, month, day) =
        (m.random.between(1995, 2019), m.random.between(1, 12), m.random.between(1, 28));
    if dense {
        m.num(year).padded(month.into(), 2).padded(day.into(), 2);
    } else {
        m.num(month).say("/").num(day).say("/").num(year);
    }
}

fn short_date(m: &mut Maker) {
    let (year, month, day) =
        (m.random.between(0, 18), m.random.between(1, 12), m.random.between(1, 28));
    m.padded(month.into(), 2).say("-").padded(day.into(), 2).say("-").padded(year.into(), 2);
}

/// A copy's number on its label. Copies of one record were labelled one after the other.
fn barcode(m: &mut Maker, prefix: &str, digits: usize) {
    let step = if m.chance(0.5) { 7 } else { m.random.between(1, 9_000) };
    let base = mix(m.plan.run) % 40_000_000 + m.plan.number % 16 * 90_000;
    let label = base + u64::from(m.turn.0) * 7 + u64::from(step);
    m.say(prefix).padded(label, digits);
}

/// The copy's call number: the record's class, and which volume it is.
fn call_number(m: &mut Maker) {
    let (class, cutter) = m.plan.class.clone();
    m.say(&class).say(" ").say(&cutter).say(" ");
    volume(m);
}

fn volume(m: &mut Maker) {
    let (year, turn) = (m.plan.year, m.turn);
    if m.plan.case.kind == Kind::Serial || turn.1 > 8 {
        m.say("v.").num(turn.0 / 2 + 1);
        if m.plan.number.is_multiple_of(3) {
            m.say(":no.").num(turn.0 % 12 + 1);
        }
        m.say("(").num((year + turn.0 / 4).min(2018)).say(")");
    } else if turn.1 > 1 {
        m.say("V.").num(turn.0 + 1);
    } else {
        m.num(year);
    }
}

/// 949 of one system: copies with their history.
pub(super) fn copy_with_history(m: &mut Maker) {
    let run = m.plan.run;
    m.ind("  ").sub('a');
    call_number(m);
    let serial = m.plan.case.kind == Kind::Serial;
    m.sub('w').say(if serial { "LCPER" } else { "LC" });
    if m.chance(0.83) {
        m.sub('c').say("1");
    }
    m.sub('i');
    barcode(m, "0000", 8);
    if m.chance(0.45) {
        m.sub('d');
        date(m, false);
    }
    if m.chance(0.3) {
        m.sub('e');
        date(m, false);
    }
    let place = mix(run ^ u64::from(m.turn.1 > 3)) % 5;
    m.sub('l').say(["PATTEE-2", "PATERNO-3", "ANNEX", "STACKS-AB", "CATO-PARK"][place as usize]);
    m.sub('m').say(["UP-PAT", "UP-PAT", "UP-ANNEX", "ABINGTON", "UP-ANNEX"][place as usize]);
    if m.chance(0.25) {
        m.sub('n').range(1, 30);
    }
    if m.chance(0.15) {
        m.sub('q').range(1, 9);
    }
    m.sub('r').say("Y").sub('s').say("Y").sub('t');
    m.say(match m.plan.case.kind {
        Kind::Serial => "PERIODICAL",
        Kind::Music => "AUDIO",
        Kind::Map => "MAP",
        Kind::Score => "SCORE",
        _ => "BOOK",
    });
    m.sub('u');
    date(m, false);
    if m.chance(0.3) {
        m.sub('x').any("BW-CHILD|CIRCNOTE|GIFT|REPAIR");
    }
    if m.chance(0.12) {
        m.sub('o').any(".STAFF. |.PUBLIC. ").english(4, 18).stop();
    }
}

/// 999 of another: copies, shorter.
pub(super) fn copy(m: &mut Maker) {
    m.ind("  ").sub('a');
    call_number(m);
    if m.chance(0.75) {
        m.sub('w').say("LC");
    }
    if m.chance(0.58) {
        m.sub('c').say("1");
    }
    m.sub('i');
    barcode(m, "361050", 8);
    if m.chance(0.3) {
        m.sub('d');
        date(m, false);
    }
    m.sub('l').any("STACKS|STACKS|SAL3-STACKS|STACKS-1|LOWERSTACK");
    if m.chance(0.74) {
        m.sub('m').any("GREEN|SAL3|GREEN|MUSIC|LAW|SAL");
    }
    if m.chance(0.45) {
        m.sub('r').say("Y").sub('s').say("Y");
    }
    m.sub('t').any("STKS-MONO|STKS|SOUNDREC|STKS-PERI");
    if m.chance(0.4) {
        m.sub('u');
        date(m, false);
    }
}

/// 596: the numbers of the libraries that hold it.
pub(super) fn holders(m: &mut Maker) {
    m.ind("  ").sub('a').range(1, 31);
    let mut more = 0.33;
    while m.chance(more) {
        m.say(" ").range(2, 31);
        more = 0.3;
    }
}

/// 945 of a third: copies with counters of loans.
pub(super) fn copy_with_counters(m: &mut Maker) {
    let (class, cutter) = m.plan.class.clone();
    m.ind("  ").sub('a').say(&class).sub('b').say(&cutter).sub('g').say("1").sub('i');
    barcode(m, "000", 8);
    m.sub('j')
        .range(0, 2)
        .sub('l')
        .any("trln |ddda |aada |wbda ")
        .sub('o')
        .say("-")
        .sub('p')
        .say("$0.00");
    m.sub('q')
        .say("-")
        .sub('r')
        .say("-")
        .sub('s')
        .say("-")
        .sub('t')
        .range(0, 45)
        .sub('u')
        .range(0, 9);
    m.sub('v').say("0").sub('w').say("0").sub('x').say("0").sub('y').say(".i").digits(8).sub('z');
    short_date(m);
}

/// 940 of a fourth.
pub(super) fn item(m: &mut Maker) {
    m.ind("  ").sub('b').any("PERKN|LSC|MUSIC|DIV").sub('c').any("PK|PSM|PM").sub('d').say("0");
    m.sub('h');
    call_number(m);
    m.sub('n').say("c.1").sub('o').say("01").sub('r').any("BOOK|BOOK|BPER|SCORE").sub('p');
    barcode(m, "D", 8);
    m.say(" ").sub('s');
    date(m, true);
    m.sub('u');
    date(m, true);
    m.sub('w').range(0, 9).sub('k').control(0, 9);
}

/// 876 of a fifth: copies apart from their holdings.
pub(super) fn copy_of_holding(m: &mut Maker) {
    m.ind("  ").sub('0').control(4_000_000, 8).sub('3');
    volume(m);
    let turn = u64::from(m.turn.0);
    m.sub('a').control(turn, 8).sub('p');
    barcode(m, "32101", 9);
    m.sub('j').any("Not Charged|Not Charged|Discharged");
    if m.chance(0.6) {
        m.sub('t').say("1");
    }
    m.sub('d');
    date(m, true);
    m.sub('b').any("Open stacks|Off-site storage|Reading room");
    if m.chance(0.55) {
        m.sub('z').any("f|rcppa|scsb");
    }
    if m.chance(0.3) {
        m.sub('x').any("In Library Use|Private|tagged");
    }
}

/// 852: where it stands.
pub(super) fn location(m: &mut Maker) {
    let (class, cutter) = m.plan.class.clone();
    m.ind("0 ");
    if m.plan.case.library == Library::Shared {
        m.sub('a').say("MiU").sub('b').any("HATCH|BUHR|SPEC").sub('c').any("GRAD|BUHR|STAX");
        m.sub('h').say(&class).say(" ").say(&cutter);
    } else {
        if m.chance(0.3) {
            m.sub('8').control(4_000_000, 8);
        }
        m.sub('b').any("f|UP-PAT|PERKN|rcppa").sub('c').any("stacks|PATTEE-2|PK");
        m.sub('h').say(&class).sub('i').say(&cutter);
        if m.chance(0.5) {
            m.say(" ").year();
        }
    }
    if m.chance(0.17) {
        m.sub('x').digits(8);
    }
}

/// 866, 867: which volumes are held.
pub(super) fn volumes_held(m: &mut Maker) {
    m.ind(" 0");
    if m.chance(0.8) {
        m.sub('8').say("0");
    }
    m.sub('a');
    let first = m.plan.year;
    let mut volume = m.turn.0 * 40 + m.random.between(1, 20);
    loop {
        m.say("v.").num(volume).say("(").num((first + volume / 2).min(2018)).say(")");
        volume += m.random.between(1, 15);
        if !m.chance(0.45) {
            break;
        }
        m.say("-v.").num(volume).say(", ");
        volume += 1;
    }
    if m.chance(0.3) {
        m.say("-To Date.");
    }
    if m.chance(0.15) {
        m.sub('z').say("Current issues in ").english(1, 3).say(" Library");
    }
}

/// 856: an address on the web.
pub(super) fn address(m: &mut Maker) {
    m.ind("4").any("0|1|2|1");
    if m.chance(0.27) {
        m.sub('3').any("Table of contents|Publisher description|Contributor biographical information|Book review");
    }
    m.sub('u');
    let n = m.plan.control;
    match m.random.below(6) {
        0 => m.say("http://catdir.example.org/catdir/toc/ecip0").range(4, 9).say("/").num(n).say(".html"),
        1 => m.say("http://purl.access.example.org/GPO/LPS").digits(6),
        2 => m.say("http://hdl.handle.example.net/2027/mdp.39015").digits(9),
        3 => m
            .say("http://gateway.example.com/openurl?ctx_ver=Z39.88-2003&res_id=xri:eebo&rft_val_fmt=&rft_id=xri:eebo:image:")
            .digits(6),
        4 => m.say("https://ezproxy.example.edu/login?url=http://ebooks.example.com/product.php?isbn=978").digits(9).digits(1),
        _ => {
            m.say("http://www.example.org/").phrase_in(crate::record::dataset::words::Language::English, 1, 1, false);
            m.say("/").digits(5).any(".pdf|.html|/index.htm")
        }
    };
    if m.chance(0.35) {
        m.sub('y').any("Full text available from |Access online version from ").english(2, 6);
    }
    if m.chance(0.28) {
        m.sub('z').any("Restricted to campus users|Online access for authorized users only.|Connect to this title");
    }
    if m.chance(0.2) {
        m.sub('x').any("SCP UCSD|eLoaderURL|subscribed");
    }
}

/// 583: what the library has promised about it.
pub(super) fn kept(m: &mut Maker) {
    m.ind("1 ")
        .sub('a')
        .say("committed to retain")
        .sub('c')
        .say("20170930")
        .sub('d')
        .say("20430101");
    m.sub('f')
        .say("Shared Print")
        .sub('u')
        .say("https://www.example.org/shared_print_program")
        .sub('5')
        .say("PSt");
}

pub(super) fn record_number(m: &mut Maker) {
    m.ind("  ").sub('a').say(".b").control(10_000_000, 8);
    if m.chance(0.23) {
        m.sub('b');
        short_date(m);
        m.sub('c');
        short_date(m);
    }
}

pub(super) fn fixed_fields(m: &mut Maker) {
    let code = m.lexicon().code;
    m.ind("  ").sub('a').any("tr|dd|er").sub('b');
    short_date(m);
    m.sub('c').any("m|s").sub('d').any("a|c|~").sub('e').say("-").sub('f').say(code);
    m.sub('g').any("nyu|enk|gw ").say(" ").sub('h').say("0").sub('i').range(0, 3);
}

pub(super) fn repository(m: &mut Maker) {
    m.ind("  ");
    match m.tag {
        "970" => m.sub('a').any("BK|BK|SE|MU").any("Book|Serial|"),
        "971" => m.sub('a').say("MiU"),
        "972" => m.sub('c').say("20040625"),
        "973" => m.sub('a').any("HT|AC").sub('b').any("avail_ht|avail_circ"),
        _ => {
            m.sub('u').say("mdp.39015").digits(9).sub('r').any("ic|pd").sub('d');
            date(m, true);
            m
        }
    };
}

pub(super) fn workflow(m: &mut Maker) {
    m.ind("  ")
        .sub('a')
        .say("7")
        .sub('b')
        .any("cbc|vip|rix")
        .sub('c')
        .any("orignew|copycat|origcop");
    m.sub('d')
        .range(1, 4)
        .sub('e')
        .any("ocip|ncip|epcn")
        .sub('f')
        .range(19, 21)
        .sub('g')
        .any("y-gencatlg|y-nonroman");
}

pub(super) fn batch(m: &mut Maker) {
    m.ind("  ").sub('a').any("MARCIVE |LTI |cataloged ");
    date(m, true);
    if m.chance(0.2) {
        m.sub('b').any("OCLC|rev");
    }
}

pub(super) fn transaction(m: &mut Maker) {
    m.ind("  ").sub('a').any("C0|02|E0|92").sub('b').any("UPM|NDD|STF");
}

pub(super) fn local_number(m: &mut Maker) {
    m.ind("  ").sub('a').digits(6).any("|-|A");
}

pub(super) fn local_kind(m: &mut Maker) {
    m.ind("  ").sub('a').any("MU|AM|AS").sub('b').any("Score|Book|Serial");
}
