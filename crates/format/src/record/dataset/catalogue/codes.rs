//! Control fields, codes and classes: 001 to 008, 039 to 099.

use super::{
    maker::Maker,
    plan::{Kind, Library},
};
use crate::record::dataset::words::Language;

/// 001. Unique in the dataset.
pub(super) fn control(m: &mut Maker) {
    let n = m.plan.control;
    match m.plan.case.library {
        Library::Stacks => m.say("a").num(n),
        Library::Campus => m.num(n),
        Library::Shared => m.padded(n, 9),
        Library::Millennium => m.say("ocm").padded(n, 8),
        Library::Holdings => m.say("99").num(n).say("3506421"),
        Library::Items => m.say("DUKE").padded(n, 9),
        Library::National => m.say("0").padded(n, 8),
        Library::Authorities => m.say("n  ").padded(n, 8),
    };
}

pub(super) fn control_mark(m: &mut Maker) {
    let mark = m.plan.case.library.mark();
    m.say(mark);
}

/// 005: a library loads many records on one day.
pub(super) fn changed(m: &mut Maker) {
    let run = m.plan.run;
    let (year, month, day) = (2001 + run % 18, 1 + run / 18 % 12, 1 + run / 216 % 28);
    m.num(year).padded(month, 2).padded(day, 2);
    let hour = 8 + run / 6048 % 10;
    if m.chance(0.3) {
        m.say("000000.0");
    } else {
        let minute = m.plan.number % 60;
        m.padded(hour, 2).padded(minute, 2).padded(minute * 7 % 60, 2).say(".0");
    }
}

pub(super) fn material(m: &mut Maker) {
    m.any("m     o  d        |m        d        |m     o  h        ");
}

pub(super) fn physical(m: &mut Maker) {
    match m.plan.case.kind {
        Kind::Music | Kind::Talk => {
            m.one_of(&["sd fsngnnmmned", "sd fungnn|||e|", "sd umsnnmslud", "ss lunjlcmnnn"])
        }
        Kind::Video => m.any("vd cvaizq|vf cbahou|vd mvaizm"),
        Kind::Map => m.any("aj canzn|aj aanzn"),
        _ => m.one_of(&["cr cn|||||||||", "cr bn |||auaua", "hd afb---buca", "ta"]),
    };
}

/// Country of publication by language, as 008 has it.
fn country(m: &mut Maker) {
    let places: &str = match m.plan.language {
        Language::English => "nyu|enk|nyu|enk|mau|cau|ilu|dcu|pau|nz |onc|at |mdu|stk",
        Language::German => "gw |gw |sz |au ",
        Language::French => "fr |fr |be |quc",
        Language::Spanish => "sp |mx |ag |cl ",
        Language::Italian => "it ",
        Language::Latin => "gw |it |ne ",
        Language::Swedish => "sw |sw |fi ",
        Language::Polish => "pl ",
        Language::Russian => "ru |ru |un ",
        Language::Greek => "gr ",
        Language::Chinese => "cc |ch ",
        Language::Japanese => "ja ",
        Language::Arabic => "ua |le |sy ",
        Language::Hebrew => "is ",
    };
    m.any(places);
}

/// 008: forty characters.
pub(super) fn fixed(m: &mut Maker) {
    let run = m.plan.run;
    let entered = if m.chance(0.6) { 80 + run % 20 } else { run % 19 };
    m.padded(entered, 2);
    m.padded(1 + run / 133 % 12, 2);
    let day = m.random.between(1, 28);
    m.padded(day.into(), 2);
    let year = m.plan.year;
    match m.plan.case.kind {
        Kind::PersonName | Kind::BodyName | Kind::Topic | Kind::PlaceName => {
            m.one_of(&["n| acannaab", "n| azannaab", "i| anannbab", "nn anzznbab"])
                .say("n          |");
            m.any("a ana     c|n ana     d|a aaa      ");
            return;
        }
        Kind::Copy => {
            m.any("0u    8   0001uu   0000000|2p    8   4001aa   0000000").fit(32);
            return;
        }
        Kind::Volumes => {
            m.one_of(&["0u    8   0001uu   0170201", "0u||||8|||4001uueng0"]).fit(32);
            return;
        }
        Kind::Serial => {
            m.say(if year < 1995 { "d" } else { "c" }).num(year);
            let end = (year + m.random.between(2, 40)).min(2018);
            if year < 1995 {
                m.num(end)
            } else {
                m.say("9999")
            };
            country(m);
            m.any("ar p       0   a0|qr p       0    0|mr p  o    0   b0|ar 1     s 0   a0");
        }
        kind => {
            let reprint = m.chance(0.08);
            m.say(if reprint { "r" } else { "s" }).num(year);
            if reprint {
                m.num(year.saturating_sub(30))
            } else {
                m.say("    ")
            };
            country(m);
            match kind {
                Kind::Music | Kind::Score | Kind::Talk => m.one_of(&[
                    "symn           n ",
                    "pp n  g        n ",
                    "jzn|         d   ",
                    "sgz         n n  ",
                ]),
                Kind::Video => m.range(20, 180).any("nn     o    vl|nn         vl|nng    o    vl"),
                Kind::Map => m.any("bg     a     0   |       a  f  0   "),
                _ => {
                    m.any("    |a   |a   |ab  |af  |    ").any(" | | |j|g");
                    m.any(" | | |o").any("    |b   |b   |bi  |m   ");
                    m.any("000 0 |001 0 |000 1 |001 0b|100 0 |00010 |000 f ")
                }
            };
        }
    }
    let code = m.lexicon().code;
    m.fit(35).say(code).any(" | | |o").any("d| |c|d| ");
    m.fit(40);
}

/// Libraries by their codes, as 040 strings them together.
const AGENCIES: &str = "\
    DLC|OCLCQ|DLC|UPM|OCLCF|OCLCO|UKM|OCL|m.c.|NDD|BAKER|MUQ|BTCTA|YDXCP|\
    NLGGC|CStRLIN|WaOLN|OrLoB|DEBBG|COO|IUL|UtOrBLW|ORU|EXW|CUS|TEF|AU@|SNN|\
    MiU|PSt";

pub(super) fn cataloguer(m: &mut Maker) {
    let by = m.random.choose(AGENCIES);
    m.ind("  ").sub('a').say(by);
    if m.chance(0.15) {
        m.sub('b').any("eng|eng|ger");
    }
    if m.plan.case.new_rules() && m.chance(0.7) {
        m.sub('e').say("rda");
    }
    m.sub('c').say(by);
    while m.chance(0.61) {
        m.sub('d').any(AGENCIES);
    }
}

pub(super) fn languages(m: &mut Maker) {
    let code = m.lexicon().code;
    if m.plan.language == Language::English || m.chance(0.4) {
        m.ind("1 ").sub('a').say("eng").sub('h');
        m.any("ger|fre|rus|spa|lat|chi|ita");
        if m.chance(0.25) {
            m.sub('b').any("eng|fre");
        }
    } else {
        m.ind("0 ").sub('a').say(code);
        m.sub('a').say("eng");
        if m.chance(0.3) {
            m.sub('d').any("fre|ger").sub('j').say("eng");
        }
    }
}

pub(super) fn authenticated(m: &mut Maker) {
    m.ind("  ").sub('a').any("lcac|pcc|lccopycat|nsdp|ukblcatcopy|pcc|lccopycat");
}

pub(super) fn area(m: &mut Maker) {
    m.ind("  ").sub('a');
    m.any("n-us---|n-us---|n-us---|e-uk-en|e-gx---|e-fr---|a-cc---|e-ur---|n-us-pa|e-it---|a-ii---|u-nz---|n-us-ca|e-uk---|n-cn---");
    if m.chance(0.14) {
        m.sub('a').any("n-us-ny|e-fr---|a-ja---|f-sa---|s-ag---");
    }
}

pub(super) fn held(m: &mut Maker) {
    m.ind("  ").sub('a');
    m.any("STFA|UPMM|NDDM|MAIN|EYMM|CSTM");
    if m.chance(0.1) {
        m.sub('o').say("skip");
    } else if m.chance(0.03) {
        m.sub('c').range(1, 3).say(" [D").digits(8).say("]");
    }
}

/// 050, and in other tags of the class of the Library of Congress.
pub(super) fn class(m: &mut Maker) {
    m.ind_or(0.6, "00", " 4");
    class_subfields(m, 0.7);
}

fn class_subfields(m: &mut Maker, cutter_share: f64) {
    let (class, cutter) = m.plan.class.clone();
    m.sub('a').say(&class);
    if m.chance(0.25) {
        m.say(&cutter);
    }
    if m.chance(cutter_share) {
        m.sub('b').say(&cutter);
        if m.chance(0.6) {
            m.say(" ").year();
        }
    }
}

pub(super) fn local_class(m: &mut Maker) {
    m.ind("  ");
    class_subfields(m, 0.75);
    if m.chance(0.62) {
        m.sub('m').any("PSt|GREEN|MUSIC").sub('q').any("STACKS|STKS-MONO|OVERSIZE");
    }
}

pub(super) fn local_shelf(m: &mut Maker) {
    let (class, cutter) = m.plan.class.clone();
    m.ind(" 1").sub('a').say(&class).sub('a').say(&cutter);
    if m.chance(0.5) {
        m.sub('a').year();
    }
}

pub(super) fn dewey(m: &mut Maker) {
    m.ind_or(0.6, "00", "04").sub('a').digits(3);
    if m.chance(0.8) {
        m.say(".").range(1, 99);
        if m.chance(0.5) {
            m.any("/0|09|/2|05|0973|/41").range(1, 9);
        }
    }
    if m.chance(0.82) {
        let edition = (14 + m.plan.year.saturating_sub(1950) / 7).clamp(14, 23);
        m.sub('2').num(edition);
    }
}

pub(super) fn other_class(m: &mut Maker) {
    m.ind("  ").sub('a').range(10, 99).say(".").range(10, 99);
    if m.chance(0.3) {
        m.sub('q').say("DE-").range(12, 600);
    }
    if m.chance(0.8) {
        m.sub('2').any("bcl|rvk|rubbkm|sdnb|z");
    }
}

pub(super) fn subject_code(m: &mut Maker) {
    m.ind(" 7").sub('a').any("HIS|BUS|SOC|LIT|SCI").digits(3).say("000").sub('2').say("bisacsh");
}

pub(super) fn document_number(m: &mut Maker) {
    m.ind("0 ").sub('a').any("Y 4.|A |E 1.|C 13.|I 19.").range(1, 90).say(":").range(1, 980);
}

pub(super) fn source_of_stock(m: &mut Maker) {
    m.ind("  ")
        .sub('a')
        .digits(6)
        .sub('b')
        .any("National Technical Information Service|U.S. G.P.O.|ProQuest");
}

/// 034 gives in code what 255 says.
pub(super) fn map_numbers(m: &mut Maker) {
    m.ind("1 ").sub('a').say("a").sub('b').range(1, 400).say("000");
    if m.chance(0.4) {
        m.sub('d')
            .say("W")
            .digits(7)
            .sub('e')
            .say("W")
            .digits(7)
            .sub('f')
            .say("N")
            .digits(7)
            .sub('g')
            .say("N")
            .digits(7);
    }
}

pub(super) fn system_history(m: &mut Maker) {
    let load = 10 + m.plan.run % 90;
    m.ind(" 9").sub('a').num(load).sub('b').any("v|m|b").sub('c').digits(1).sub('d').any("V|c");
    m.sub('e').any("1|2|3");
}

pub(super) fn system_identity(m: &mut Maker) {
    m.ind("  ").sub('a').say("(DE-588)").digits(7);
    if m.chance(0.17) {
        m.sub('q').say("a").sub('u').any("w|k");
    }
}

/// 066 is there where 880 is.
pub(super) fn scripts(m: &mut Maker) {
    if m.plan.linked {
        let script = match m.plan.language {
            Language::Russian => "(N",
            Language::Greek => "(S",
            Language::Arabic => "(3",
            Language::Hebrew => "(2",
            _ => "$1",
        };
        m.ind("  ").sub('c').say(script);
    }
}
