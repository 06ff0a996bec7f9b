//! What the language of conditions takes and refuses.

use super::*;

fn fault(text: &str) -> (String, usize) {
    let error = text.parse::<Condition>().unwrap_err().to_string();
    let mut lines = error.lines();
    let why = lines.next().unwrap().to_owned();
    let caret = lines.nth(1).unwrap_or_else(|| panic!("{error}"));
    (why, caret.len() - 3)
}

#[test]
fn what_is_not_understood_has_its_place() {
    for (text, at, why) in [
        ("", 0, "is empty"),
        ("age>=60 an age<70", 8, "expected `and`"),
        ("name=Bob Smith", 9, "needs quotes"),
        ("245^1=1", 3, "expected `and`"),
        ("650a~A,!880", 6, "expected `and`"),
        ("650a!", 4, "expected `and`"),
        ("age=", 4, "expected a value"),
        ("age= and b", 9, "expected `and`"),
        ("=5", 0, "expected a field"),
        ("(a", 0, "no ) belongs"),
        ("a)", 1, "no ( belongs"),
        ("(a b)", 3, "expected `and`, `or` or )"),
        ("a and", 5, "the condition ends here"),
        ("a in b", 5, "expected ("),
        ("a in (b c)", 8, "expected , or )"),
        ("a not b", 2, "expected `not in`"),
        ("a=\"b", 2, "no \" ends"),
        ("a='b", 2, "no ' ends"),
        (r#"a="\x""#, 2, "escape"),
        ("a~/b", 2, "no / ends"),
        ("a=~b", 1, "no sign =~"),
        ("a<>b", 2, "expected a value"),
        ("a=time(x)", 7, "RFC 3339"),
        ("count(a)", 8, "expected a comparison"),
        ("count(a", 7, "expected )"),
        ("a\\", 1, "nothing follows"),
        ("größe=1 x", 8, "expected `and`"),
        ("a≥1", 1, "write >=; "),
        ("not id≠3", 6, "write !=; "),
        ("a＝2", 1, "write = for equal; "),
        ("a:2", 1, "write = for equal; "),
        ("a&b", 1, "write and; "),
        ("a|b", 1, "write or; "),
        ("a?", 1, "? in a name needs quotes"),
        ("a$=1", 1, "$ in a name needs quotes"),
        ("tags[1].n", 4, "there is no index"),
        ("a=TRUE", 2, "write true, or \"TRUE\" for the text"),
        ("a!=NULL", 3, "write null"),
        ("a=01", 2, "write 1, or"),
        ("a in (+2)", 6, "write 2, or"),
        ("a=2.", 2, "write 2, or"),
        ("a=-.5", 2, "write -0.5, or"),
        ("a=“2”", 2, "the quotes of the language"),
        ("count(a)=1.5", 9, "a whole number"),
        ("count(a)<-1", 9, "a whole number"),
        ("len(a)=x", 7, "a whole number"),
        ("245$a=null", 6, "no null"),
    ] {
        let (found, place) = fault(text);
        assert!(found.contains(why) && place == at, "{text}: {found} at {place}");
    }
    let deep = format!("{}a{}", "(".repeat(60), ")".repeat(60));
    assert!(fault(&deep).0.contains("levels"));
    assert!(fault(&format!("{}a", "!".repeat(60))).0.contains("levels"));
}

#[test]
fn words_of_the_language_are_names_where_a_name_stands() {
    for text in ["and=1", "or>2", "\"and\"", "not.a", "in=1", "count=3", "android and order"] {
        assert!(text.parse::<Condition>().is_ok(), "{text}");
    }
}
