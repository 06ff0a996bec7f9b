//! The language of `--where`, for the long help of the verbs that have it.

/// What stands after the options in the long help of a verb, before its examples.
pub fn with(examples: &str) -> String {
    format!("{LANGUAGE}\n\n{examples}")
}

const LANGUAGE: &str = "\
Conditions (--where):
  age>=60                    also = != < <= >; a number compares with numbers, a text with texts
  email   !email             the field is there; it is not there
  name~Bob   name!~Bob       the text contains Bob; it does not
  name^=Bo                   the text begins with Bo
  name~/^B.b$/               the text matches a regular expression
  at>=time(2009-02-13)       a time: this day, or time(2009-02-13T23:31:30Z); no text fits,
                             but the text of a time where a format or store has texts for times
  name=\"bob smith\"i          a value with spaces needs quotes; i: in capital and small letters alike
  status in (open, held)     one of these; also: not in
  count(tags)>2  len(name)<9 how many there are; how many characters a text has
  a and b   a or b   not a   and binds closer than or; ( ) groups

  Documents: address.city; tags[] is any element of a list; _key is the key; \"first name\"
    (a name with other characters than letters, digits, _ and - needs quotes). Or in JSON: {\"age\": {\"$gte\": 60}}
  MARC records: 245, 245a or 245$a, 650ax, 6XX, 650[2]a (the second 650), 245/ind2, LDR/06,
    008/35-37 (characters, counted from 0). A condition holds if any part that is meant fits.
    = compares texts there: 001=123 is not 000123. < and > compare numbers where both are.
  !=, !~ and not in hold where =, ~ and in do not: also where nothing is there.";
