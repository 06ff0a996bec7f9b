//! What conditions mean, for documents and for MARC records.

use super::*;
use crate::{
    marc::Record,
    record::{self, Document, Time},
    store::Key,
};

fn age(test: Test) -> Filter {
    Filter::field("age", test).unwrap()
}

#[test]
fn both_styles_say_the_same() {
    let ninety = || Value::Int(90);
    let bob = || age(Test::Eq(Value::from("Bob")));
    for (text, want) in [
        (r#"{"age": {"$gte": 90}}"#, age(Test::Ge(ninety()))),
        ("age>=90", age(Test::Ge(ninety()))),
        ("age = 90", age(Test::Eq(ninety()))),
        ("age == 90", age(Test::Eq(ninety()))),
        (r#"{"age": 90}"#, age(Test::Eq(ninety()))),
        (r#"age="90""#, age(Test::Eq(Value::from("90")))),
        ("age='90'", age(Test::Eq(Value::from("90")))),
        ("age=Bob", bob()),
        ("age='it''s'", age(Test::Eq(Value::from("it's")))),
        (r#"age="a\nb""#, age(Test::Eq(Value::from("a\nb")))),
        ("age=null", age(Test::Eq(Value::Null))),
        ("age=true", age(Test::Eq(Value::Bool(true)))),
        ("age^=9", age(Test::Prefix("9".into()))),
        ("!age", age(Test::Exists(false))),
        ("not age", age(Test::Exists(false))),
        ("age", age(Test::Exists(true))),
        ("age!=Bob", age(Test::Ne(Value::from("Bob")))),
        ("age in (90, Bob)", age(Test::In(vec![ninety(), "Bob".into()]))),
        ("age IN (90)", age(Test::In(vec![ninety()]))),
        ("age not in (90)", Filter::Not(Box::new(age(Test::In(vec![ninety()]))))),
        (r#"{"age": {"$exists": true}}"#, age(Test::Exists(true))),
        ("{}", Filter::All),
        ("age=1 and age=Bob", Filter::And(vec![age(Test::Eq(1.into())), bob()])),
        (
            "age=1 or age=2 and age=Bob",
            Filter::Or(vec![
                age(Test::Eq(1.into())),
                Filter::And(vec![age(Test::Eq(2.into())), bob()]),
            ]),
        ),
        (
            "(age=1 or age=2)and(age=Bob)",
            Filter::And(vec![
                Filter::Or(vec![age(Test::Eq(1.into())), age(Test::Eq(2.into()))]),
                bob(),
            ]),
        ),
        (
            "not (age=1 and age=2)",
            Filter::Not(Box::new(Filter::And(vec![
                age(Test::Eq(1.into())),
                age(Test::Eq(2.into())),
            ]))),
        ),
        (
            r#"{"age": {"$gte": 1, "$lt": 9}}"#,
            Filter::And(vec![age(Test::Ge(Value::Int(1))), age(Test::Lt(Value::Int(9)))]),
        ),
        (
            r#"{"$or": [{"age": 90}, {"$not": {"age": null}}]}"#,
            Filter::Or(vec![
                age(Test::Eq(ninety())),
                Filter::Not(Box::new(age(Test::Eq(Value::Null)))),
            ]),
        ),
        (
            r#"{"age": {"$not": {"$in": [90]}}}"#,
            Filter::Not(Box::new(age(Test::In(vec![ninety()])))),
        ),
        (
            "age<time(2009-02-13T23:31:30Z)",
            age(Test::Lt(Value::Time(Time::from_unix(1_234_567_890, 0).unwrap()))),
        ),
        (
            r#"{"age": {"$lt": {"$date": "2009-02-13T23:31:30Z"}}}"#,
            age(Test::Lt(Value::Time(Time::from_unix(1_234_567_890, 0).unwrap()))),
        ),
        (r#""first name".x=1"#, Filter::Field(Path::new(["first name", "x"]), Test::Eq(1.into()))),
        (r"a\.b=1", Filter::Field(Path::new(["a.b"]), Test::Eq(1.into()))),
        ("_key=7", Filter::Field(Path::new(["_key"]), Test::Eq("7".into()))),
    ] {
        assert_eq!(text.parse::<Filter>().unwrap(), want, "{text}");
    }
}

/// The record as the model of documents.
fn document() -> Document {
    let inner: Document = [("city", "Lübeck")].into_iter().collect();
    let pet = |name: &str, age: i64| {
        Value::Map(Document::from_iter([("name", Value::from(name)), ("age", age.into())]))
    };
    Document::from_iter([
        ("name", Value::from("Bob Smith")),
        ("age", 65.into()),
        ("text", Value::from("65")),
        ("none", Value::Null),
        ("address", Value::Map(inner)),
        ("tags", Value::List(vec!["red".into(), "Blue".into(), 7.into()])),
        ("pets", Value::List(vec![pet("Rex", 3), pet("Tom", 9)])),
        ("accent", Value::from("e\u{301}te\u{301}")),
    ])
}

#[test]
fn conditions_on_documents() {
    let key = Key::new("k1").unwrap();
    for (condition, fits) in [
        ("age>=60 and age<70", true),
        ("age>=60 and age<65", false),
        ("age>=60 and (name~Bob or email)", true),
        ("name~Bo", true),
        ("name~bo", false),
        ("name~\"bo\"i", true),
        ("name!~Bo", false),
        ("name=\"bob smith\"i", true),
        ("name in (x, \"BOB SMITH\"i)", true),
        ("name not in (x, \"BOB SMITH\"i)", false),
        ("name^=\"bob\"i", true),
        ("name!^=Bob", false),
        ("name~/^B.b\\b/", true),
        ("name~/SMITH$/i", true),
        ("name~/SMITH$/", false),
        ("name!~/SMITH$/", true),
        ("nothing!~x", true),
        ("nothing~x", false),
        ("age~6", false),
        ("text=65", false),
        ("text=\"65\"", true),
        ("text~6", true),
        ("address.city=Lübeck", true),
        ("address.city~\"ÜBECK\"i", true),
        ("tags=red", false),
        ("tags[]=red", true),
        ("tags[]=7", true),
        ("tags[]>6", true),
        ("tags[]=blue", false),
        ("tags[]=\"blue\"i", true),
        ("tags[]!=red", false),
        ("tags[]!=green", true),
        ("tags[] in (green, red)", true),
        ("tags[]^=B", true),
        ("tags[]", true),
        ("pets[].name=Tom", true),
        ("pets[].age>8 and pets[].age<5", true),
        ("pets[].none", false),
        ("!pets[].none", true),
        ("age[]", false),
        ("count(tags)=3", true),
        ("count(pets[].name)=2", true),
        ("count(age)=1", true),
        ("count(nothing)=0", true),
        ("count(nothing)!=0", false),
        ("count(tags) in (2, 3)", true),
        ("len(name)=9", true),
        ("len(accent)=5", true),
        ("len(age)>0", false),
        ("accent~ét", false),
        ("accent~\"e\\u0301t\"", true),
        ("_key=k1", true),
        ("_key~k", true),
        ("count(_key)=1", true),
        (r#"{"name": {"$contains": "Smi"}}"#, true),
        (r#"{"name": {"$regex": "^Smi"}}"#, false),
        (r#"{"name": {"$not": {"$regex": "^Smi"}}}"#, true),
    ] {
        let query = Query::new(condition.parse().unwrap_or_else(|e| panic!("{condition}: {e}")));
        query.check().unwrap();
        assert_eq!(query.matches(&key, &document()), fits, "{condition}");
        let not = Query::new(Filter::Not(Box::new(query.filter)));
        assert_ne!(not.matches(&key, &document()), fits, "not {condition}");
    }
}

#[test]
fn in_files_of_texts_numbers_compare_with_texts_that_are_numbers() {
    let row =
        Document::from_iter([("age", "65"), ("id", "007"), ("word", "true"), ("part", "19uu")]);
    for (condition, fits) in [
        ("age>=60 and age<70", true),
        ("age>=100", false),
        ("age=65.0", true),
        ("age=\"65.0\"", false),
        ("age in (1, 65)", true),
        ("id=7", true),
        ("id=\"7\"", false),
        ("word=true", true),
        ("part>=1900", false),
        ("part!=1900", true),
        ("age^=6", true),
        ("age", true),
        ("none=5", false),
    ] {
        let filter = condition.parse::<Condition>().unwrap().text_filter().unwrap();
        assert_eq!(filter.fits_document(None, &row), fits, "{condition}");
    }
}

fn marc() -> Record {
    let mut r = Record::new();
    r.push_plain(*b"001", b"42").unwrap();
    r.push_plain(*b"008", b"851231s1985    xx            000 0 eng d").unwrap();
    r.push_data(*b"245", *b"14", &[(b'a', b"Weights"), (b'c', b"me")]).unwrap();
    r.push_data(*b"650", *b" 0", &[(b'a', b"Scales"), (b'x', b"History")]).unwrap();
    r.push_data(*b"650", *b" 7", &[(b'a', b"Hanse")]).unwrap();
    r.push_data(*b"700", *b"1 ", &[(b'a', "L\u{fc}beck".as_bytes())]).unwrap();
    r
}

const MARC: [(&str, bool); 47] = [
    ("001=42", true),
    ("001=42.0", false),
    ("001=042", false),
    ("001>=042", true),
    ("001=\"42.0\"", false),
    ("001=0042", false),
    ("001<9", false),
    ("001<\"9\"", true),
    ("650a=Hanse", true),
    ("650$a=Hanse", true),
    ("650a!=Hanse", false),
    ("650a=hanse", false),
    ("650a=\"hanse\"i", true),
    ("6XX~History", true),
    ("6XX~\"Scales History\"", true),
    ("650a~/^H.+e$/", true),
    ("650a!~/^X/", true),
    ("650x", true),
    ("650z", false),
    ("!650z", true),
    ("!880", true),
    ("!650a", false),
    ("650a!~Scales", false),
    ("880!~Scales", true),
    ("008/35-37=eng", true),
    ("008/35-37 in (ger, eng)", true),
    ("008/35-37 not in (ger, eng)", false),
    ("008/7-10=1985", true),
    ("008/7-10>=1986", false),
    ("LDR/06=a", true),
    ("245a^=Wei", true),
    ("007/99=x", false),
    ("245/ind2=4", true),
    ("245/ind2!=4", false),
    ("650/ind2=7", true),
    ("650[1]/ind2=7", false),
    ("650[2]a=Hanse", true),
    ("650[1]a=Hanse", false),
    ("count(650)=2", true),
    ("count(650)>3", false),
    ("count(650a)=2 and count(880)=0", true),
    ("len(008)!=40", false),
    ("len(245a)=7", true),
    ("700a=L\u{fc}beck", true),
    ("700a=Lu\u{308}beck", true),
    ("len(700a)=6 and 700a~\"LÜBECK\"i", true),
    ("245 and (880 or 650a=Hanse and not 100)", true),
];

#[test]
fn conditions_on_marc() {
    // The same records: as they are, in MARC-8, with accents apart, and as documents of a store.
    let record = marc();
    let mut marc8 = Record::new();
    crate::marc::encoding::to_marc8(record.as_ref(), &mut marc8, &mut Vec::new()).unwrap();
    assert!(!marc8.as_ref().is_utf8());
    let mut apart = marc8.clone();
    crate::marc::encoding::to_utf8(marc8.as_ref(), false, &mut apart, &mut Vec::new()).unwrap();
    assert_ne!(apart.as_ref(), record.as_ref());
    let Value::Map(document) = record::to_value(&record.as_ref()).unwrap() else { panic!() };
    for (condition, fits) in MARC {
        let parsed: Condition = condition.parse().unwrap();
        let filter = parsed.marc_filter().unwrap_or_else(|e| panic!("{condition}: {e}"));
        let key = Key::new("k1").unwrap();
        assert!(
            "_key~1"
                .parse::<Condition>()
                .unwrap()
                .marc_filter()
                .unwrap()
                .fits_marc(Some(&key), record.as_ref())
        );
        for record in [&record, &marc8, &apart] {
            assert_eq!(filter.fits_marc(None, record.as_ref()), fits, "{condition}: {record:?}");
        }
        assert_eq!(filter.fits_document(None, &document), fits, "{condition}, as a document");
        assert!(filter.looks() && filter.is_marc(), "{condition}");
    }
}

/// Where the caret of an error stands.
fn caret(error: &Error) -> usize {
    let text = error.to_string();
    text.lines().last().unwrap().len() - 3
}

#[test]
fn what_makes_no_sense_has_its_place() {
    for (text, at, why) in [
        ("a=1 and b[0]=1", 9, "[] is any element"),
        ("a.=1", 2, "a name is missing"),
        ("a..b=1", 2, "a name is missing"),
        ("\"\"=1", 0, "empty"),
        ("a[]b=1", 3, "expected a dot"),
        ("a<true", 2, "which has no order"),
        ("a=[1]", 2, "single values"),
        ("a~/(/", 2, "regular expression"),
        ("a~/(?:a{1000}){1000}/", 2, "memory"),
        ("count(a)=x", 9, "a whole number"),
        ("count(a)~3", 9, "compare it with"),
        ("len(a)^=3", 8, "compare it with"),
        ("a<\"b\"i", 2, "ignore case"),
    ] {
        let error = text.parse::<Filter>().unwrap_err();
        assert!(error.to_string().contains(why) && caret(&error) == at, "{text}: {error}");
    }
    for (text, at, why) in [
        ("title=x", 0, "not a path into a MARC record"),
        ("245 and age>=90", 8, "not a path into a MARC record"),
        ("650*", 3, "not a subfield code"),
        ("245ind2=4", 3, "245/ind1"),
        ("245a=null", 5, "no null"),
        ("008/40=e", 3, "characters 0 to 39"),
        ("008 and 245a/ind1=4", 12, "only a whole data field"),
        ("008a=x", 3, "no subfields"),
        ("{\"age\": 1}", 0, "for documents"),
    ] {
        let error = match text.parse::<Condition>() {
            Ok(condition) => condition.marc_filter().unwrap_err(),
            Err(e) => e,
        };
        assert!(error.to_string().contains(why) && caret(&error) == at, "{text}: {error}");
    }
}

#[test]
fn paths_come_back_dots_and_all() {
    for text in ["a", "a.b.c", r"a\.b.c", r"x\\y", "is_admin?"] {
        assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
    }
    assert_eq!(r"a\.b.c".parse::<Path>().unwrap().names(), ["a.b", "c"]);
    for text in ["", "a.", ".a", "a..b"] {
        assert!(text.parse::<Path>().is_err(), "{text}");
    }
}

#[test]
fn senseless_comparisons_are_refused() {
    for (test, want) in [
        (Test::Lt(Value::Bool(true)), "which has no order"),
        (Test::Eq(Value::List(vec![])), "which queries do not support"),
        (Test::Eq(Value::Float(f64::NAN)), "not a number"),
        (Test::In(vec![Value::Decimal("NaN".into())]), "not a number"),
        (Test::Gt(Value::BigInt("1x".into())), "not a number"),
    ] {
        let error = Query::new(Filter::field("a", test).unwrap()).check().unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    }
}
