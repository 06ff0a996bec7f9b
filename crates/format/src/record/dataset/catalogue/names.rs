//! Who wrote, played or published: 100 to 111, 700 and 710.

use super::{maker::Maker, maker::STREAM, titles::fixed};
use crate::record::dataset::{
    random::{Random, Ranks},
    words::Language,
};

/// People and bodies are drawn from so many, a few of them often.
const PEOPLE: Ranks = Ranks::new(17, 1250);
const BODIES: Ranks = Ranks::new(13, 1100);

/// A person of an authority file: the same number is always the same name, with the same dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Person {
    language: Language,
    era: Era,
    id: u32,
}

/// When a person lived: those who write a book were born before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Old,
    Past,
    Recent,
}

impl Person {
    /// A person who may have written a book of this year in this language.
    pub(super) fn any(random: &mut Random, language: Language, year: u32) -> Person {
        // Authors of English books have names of all countries.
        let language = match language {
            Language::English if random.chance(0.07) => random.pick(&[
                Language::English,
                Language::German,
                Language::French,
                Language::Spanish,
                Language::Italian,
                Language::Swedish,
                Language::Polish,
            ]),
            same => same,
        };
        let era = match year {
            0..1840 => Era::Old,
            1840..1945 => Era::Past,
            _ => Era::Recent,
        };
        Person { language, era, id: random.rank(&PEOPLE) }
    }

    fn random(self) -> Random {
        Random::new(STREAM, self.language as u64 + 100 * self.era as u64, u64::from(self.id))
    }
}

impl Maker<'_> {
    /// Someone, as the record's year and language have them.
    fn someone(&mut self) -> Person {
        Person::any(&mut self.random, self.plan.language, self.plan.year)
    }

    /// A person as headings have them: `$a`, and mostly `$d`, in some cases `$q` and `$c`.
    pub(super) fn person(&mut self) -> &mut Self {
        let person = self.someone();
        self.heading_of(person)
    }

    fn heading_of(&mut self, person: Person) -> &mut Self {
        let random = &mut person.random();
        let native = self.native && person.language == self.plan.language;
        let (lexicon, out) = (person.language.lexicon(), &mut self.text);
        out.push_str("\u{1f}a");
        lexicon.family(random, native, out);
        out.push_str(", ");
        lexicon.given(random, native, out);
        if random.chance(0.45) {
            out.push(' ');
            if random.chance(0.6) && !lexicon.has_script() {
                out.push(char::from(b'A' + random.below(23) as u8));
                out.push('.');
            } else {
                lexicon.given(random, native, out);
            }
        }
        if random.chance(0.05) {
            out.push_str("\u{1f}q(");
            lexicon.given(random, native, out);
            out.push(' ');
            lexicon.given(random, native, out);
            out.push(')');
        }
        if random.chance(0.015) {
            out.push_str(",\u{1f}c");
            out.push_str(random.choose("Sir|Jr.|Baron|Dr.|Saint"));
        }
        if random.chance(0.54) {
            let born = match person.era {
                Era::Old => random.between(1470, 1800),
                Era::Past => random.between(1780, 1905),
                Era::Recent => random.between(1885, 1975),
            };
            let died = born + random.between(30, 90);
            self.say(",").sub('d').num(born).say("-");
            if died < 2018 && random.chance(0.75) {
                self.num(died);
            }
        }
        self
    }

    /// A person in running text, given name first.
    pub(super) fn by(&mut self) -> &mut Self {
        let person = self.someone();
        self.name_of(person)
    }

    /// The author in running text: the one of 100.
    pub(super) fn by_author(&mut self) -> &mut Self {
        self.name_of(self.plan.author)
    }

    fn name_of(&mut self, person: Person) -> &mut Self {
        let native = self.native && person.language == self.plan.language;
        let (mut family, lexicon) = (String::new(), person.language.lexicon());
        let random = &mut person.random();
        lexicon.family(random, native, &mut family);
        lexicon.given(random, native, &mut self.text);
        self.text.push(' ');
        if random.chance(0.45) && random.chance(0.6) && !lexicon.has_script() {
            self.text.push(char::from(b'A' + random.below(23) as u8));
            self.text.push_str(". ");
        }
        self.text.push_str(&family);
        self
    }
}

pub(super) fn main_person(m: &mut Maker) {
    let identity = m.chance(0.065);
    m.linked("1 ", |m| {
        m.heading_of(m.plan.author);
        if identity {
            m.stop().sub('0').say("(DE-588)11").digits(7);
        } else if m.plan.case.new_rules() && m.chance(0.5) {
            m.say(",").sub('e').say("author.");
        } else {
            m.stop();
        }
    });
}

pub(super) fn other_person(m: &mut Maker) {
    let analytic = m.chance(0.1);
    m.linked(if analytic { "12" } else { "1 " }, |m| {
        m.person();
        if analytic {
            m.stop().sub('t').title(2, 6);
        } else if m.chance(0.19) {
            m.say(",").sub('e').any("ed.|editor.|joint author.|performer.|tr.");
        } else if m.chance(0.1) {
            m.stop().sub('4').any("prf|aut|edt|itr");
            return;
        }
        m.stop();
        if m.chance(0.05) {
            m.sub('0').say("(DE-588)1").digits(8);
        }
    });
}

/// A body that writes or publishes, by number.
fn body(m: &mut Maker) {
    let language = m.plan.language;
    let mut body = fixed(1, language, m.random.rank(&BODIES));
    let native = m.native;
    let lexicon = language.lexicon();
    let mut text = String::new();
    m.sub('a');
    if language == Language::English || body.chance(0.25) {
        let english = Language::English.lexicon();
        match body.below(6) {
            0 | 1 => {
                text.push_str(body.choose(COUNTRIES));
                text.push_str(".\u{1f}b");
                text.push_str(body.choose("Department of |Office of |Congress. House. Committee on |Bureau of |Division of |Ministry of |National Institute of "));
                let words = body.between(1, 3);
                english.phrase(&mut body, words, true, false, &mut text);
            }
            2 => {
                text.push_str("University of ");
                english.place(&mut body, false, &mut text);
            }
            3 => {
                english.place(&mut body, false, &mut text);
                text.push_str(body.choose(
                    " Symphony Orchestra| Museum of Art| Philharmonic| Historical Society",
                ));
            }
            4 => {
                text.push_str(body.choose("International |National |American |Royal |"));
                let words = body.between(2, 4);
                english.phrase(&mut body, words, true, false, &mut text);
                text.push_str(body.choose(" Society| Association| Institute| Conference| Council"));
            }
            _ => {
                english.family(&mut body, false, &mut text);
                text.push_str(body.choose(" (Firm)| Foundation| Quartet| & Co.| (Musical group)"));
            }
        }
    } else {
        let words = body.between(2, 5);
        lexicon.phrase(&mut body, words, true, native, &mut text);
        text.push_str(" (");
        lexicon.place(&mut body, native, &mut text);
        text.push(')');
    }
    m.say(&text).stop();
}

pub(super) fn main_body(m: &mut Maker) {
    m.linked(if m.plan.work.is_multiple_of(3) { "1 " } else { "2 " }, body);
}

pub(super) fn other_body(m: &mut Maker) {
    m.linked("2 ", |m| {
        body(m);
        if m.chance(0.12) {
            m.sub('e').any("performer.|issuing body.|publisher.");
        } else if m.chance(0.05) {
            m.sub('0').say("(DE-588)").digits(7).say("-").digits(1);
        }
    });
}

pub(super) fn meeting(m: &mut Maker) {
    m.ind("2 ").sub('a').any("International Conference on |Symposium on |Congress of ");
    m.english(2, 5).sub('n').say("(").range(1, 30).any("th|nd").say(" :").sub('d');
    let year = m.plan.year;
    m.num(year).say(" :").sub('c');
    m.place().say(")");
}

/// A country or state: headings, bodies and subdivisions name them.
pub(super) const COUNTRIES: &str = "\
    United States|Great Britain|Germany|France|England|China|India|Italy|California|\
    New York (State)|Soviet Union|Canada|Japan|Spain|New Zealand|Mexico|Pennsylvania|\
    Russia|Ireland|Australia|Africa|Europe|Massachusetts|Texas|Illinois|Scotland|\
    Israel|Greece|Poland|Brazil|South Africa|Argentina|Sweden|Austria|Switzerland|\
    Netherlands|Latin America|Virginia|Michigan|Egypt|Turkey|Iran|Korea|\
    Québec (Province)|São Paulo (Brazil : State)|Nigeria|Peru|Rome";
