//! What the long help of several verbs explains after the options: the languages of `--where` and `--fields`, and the
//! tiers of durability.

use steelyard::durability::Tier;

/// These explanations, with the examples behind them.
pub fn with(explained: &[&str], examples: &str) -> String {
    format!("{}\n\n{examples}", explained.join("\n\n"))
}

pub const CONDITIONS: &str = "\
Conditions (--where):
  age>=60                    also = != < <= >; numbers compare with numbers, texts with texts
  email   !email             the field is there; it is not there
  name~Bob   name!~Bob       the text contains Bob; it does not
  name^=Bo                   the text begins with Bo
  name~/^B.b$/               the text matches a regular expression
  at>=time(2009-02-13)       a day, or time(2009-02-13T23:31:30Z); a text is not a time, except
                             where the format or store keeps times as text
  name=\"bob smith\"i          a value with spaces needs quotes; i after them ignores case
  status in (open, held)     one of these; also: not in
  count(tags)>2  len(name)<9 how many there are; how many characters the text has
  a and b   a or b   not a   and binds closer than or; ( ) groups

  Documents: address.city; tags[] is any element of a list; _key is the key; \"first name\" (other
    characters than letters, digits, _ and - need quotes). Or JSON: {\"age\": {\"$gte\": 60}}
  MARC records: 245, 245a or 245$a, 650ax, 6XX, 650[2]a (the second 650), 245/ind2, LDR/06,
    008/35-37 (characters, counted from 0). A condition holds if it holds for any of the parts.
    = compares text: 001=123 does not find 000123. < and > compare numbers with numbers.
  !=, !~ and not in hold exactly where =, ~ and in do not: also where nothing is there.

  condition = all {\"or\" all}
  all       = one {\"and\" one}
  one       = \"not\" one | \"!\" one | \"(\" condition \")\" | part [test]
  test      = sign value | [\"not\"] \"in\" \"(\" value {\",\" value} \")\"
  part      = path | \"count(\" path \")\" | \"len(\" path \")\"
  sign      = = | != | < | <= | > | >= | ~ | !~ | ^= | !^=
  value     = word | \"text\"[i] | 'text'[i] | /pattern/[i] | time(DAY) | time(MOMENT)";

pub const FIELDS: &str = "\
Fields (--fields), separated by commas:
  name,address.city          of documents: names, with dots into maps
  001,245,6XX                of MARC records: whole fields; X stands for any character of a tag
  245a,245$a,650ax           only these subfields
  650[2]a                    only of the second field 650
  245/ind2,008/35-37,LDR/06  an indicator, characters counted from 0 (csv; elsewhere the whole field)
  For csv they are the columns, in this order; several values share a cell: Scales | History";

fn survives(tier: Tier) -> &'static str {
    match tier {
        Tier::T0 => "nothing: it is in memory (volatile)",
        Tier::T1 => "the end of the store's process: the operating system has it",
        Tier::T2 => "a crash of the machine, except for the last moments (bounded loss)",
        Tier::T3 => "a crash of the machine (durable)",
    }
}

/// The tiers of durability.
pub fn tiers() -> String {
    let tiers = Tier::ALL.map(|tier| format!("  {tier}  {}", survives(tier)));
    format!(
        "Durability (what a write has survived once it is acknowledged):\n{}\n  A store that cannot promise the tier \
         that is asked for is an error, which names those it can.",
        tiers.join("\n")
    )
}
