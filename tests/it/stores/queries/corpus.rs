//! Records and queries drawn from a seed: few values, so that queries hit, and those few such as
//! stores are known to take for one another.

use steelyard::{
    record::{Document, Kind, Time, Value, dataset::random::Random},
    store::{
        Filter, Key, Query, Row, Shape,
        query::{Order, Path},
    },
};

/// Names that not every store can have.
pub const ODD_NAMES: [&str; 6] = ["is_admin?", "a.b", "we\"ird 'na`me", "größe", "$cash", "select"];

/// Fields that not every store can hold.
pub const NESTED: [&str; 3] = ["list", "m", "mixed"];

const TEXTS: [&str; 36] = [
    "", " ", "a", "A", "a ", "a  ", " a", "ab", "abc", "ABC", "b", "é", "e\u{301}", "É", "ß", "ss",
    "SS", "z", "Z", "\u{ff5e}", "😀", "10", "9", "1", "true", "null", "a%c", "a_c", "a\\c", "a'c",
    "a\"c", "a*c", "İ", "ı", "日本", "日",
];
const STARTS: [&str; 16] =
    ["", "a", "A", "ab", " ", "é", "e", "s", "a%", "a_", "a\\", "a'", "a*", "日", "😀", "\u{ff5e}"];
const SMALL: [i64; 10] = [0, 1, -1, 2, 3, 10, 100, -100, 255, 65_536];
const LARGE: [i64; 7] =
    [(1 << 53) - 1, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1, i64::MAX, i64::MIN, i64::MAX - 1];
pub const FLOATS: [f64; 12] = [
    0.0,
    1.0,
    -1.0,
    1.5,
    -2.5,
    0.1,
    100.0,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    1e300,
    -1e300,
    5e-324,
];
/// In seconds and thousandths of them.
const TIMES: [(i64, u32); 10] = [
    (0, 0),
    (1, 0),
    (1_234_567_890, 0),
    (1_234_567_890, 500),
    (1_234_567_890, 530),
    (1_234_567_890, 53),
    (1_234_567_891, 0),
    (-86_400, 0),
    (951_782_400, 0),
    (4_102_444_800, 999),
];

fn time(random: &mut Random) -> Value {
    let (seconds, thousandths) = random.pick(&TIMES);
    Value::Time(Time::from_unix(seconds, thousandths * 1_000_000).expect("in range"))
}

/// Whole numbers beyond 64 bits, and decimals: some equal to others, or to floats.
pub fn long() -> Vec<Value> {
    let big = ["9223372036854775808", "18446744073709551615", "-9223372036854775809"];
    let more = ["18446744073709551616", "100000000000000000000"];
    let decimals =
        ["1.50", "2", "-2.500", "1e20", "0.125", "12345678901234567890.5", "9007199254740992.5"];
    let big = big.into_iter().chain(more).map(|text| Value::BigInt(text.into()));
    big.chain(decimals.map(|text| Value::Decimal(text.into()))).collect()
}

/// What records and queries are made of in one store.
#[derive(Clone)]
pub struct Corpus {
    flat: bool,
    times: bool,
    large: bool,
    /// Floats that the store holds.
    floats: Vec<Value>,
    /// Those of [`long`] that the store holds.
    pub long: Vec<Value>,
    /// Names beyond the usual: of [`NESTED`] fields, and odd ones of fields with small numbers.
    pub names: Vec<&'static str>,
}

impl Corpus {
    /// `large` where whole numbers beyond 2^53 are kept; `floats` are those that may be there.
    pub fn new(shape: Shape, keeps: &[Kind], large: bool, floats: Vec<Value>) -> Corpus {
        Corpus {
            flat: shape == Shape::Columns,
            times: keeps.contains(&Kind::Time),
            large,
            floats,
            long: Vec::new(),
            names: Vec::new(),
        }
    }

    fn int(&self, random: &mut Random) -> Value {
        Value::Int(match self.large && random.chance(0.2) {
            true => random.pick(&LARGE),
            false => random.pick(&SMALL),
        })
    }

    fn float(&self, random: &mut Random) -> Value {
        self.floats[random.below(self.floats.len() as u32) as usize].clone()
    }

    /// A value for the field of this name.
    fn value(&self, name: &str, random: &mut Random) -> Value {
        match name {
            "n" if !self.flat && random.chance(0.4) => self.float(random),
            "n" if !self.long.is_empty() && random.chance(0.3) => pick(&self.long, random),
            "n" => self.int(random),
            "f" => self.float(random),
            "t" => random.pick(&TEXTS).into(),
            "b" => random.chance(0.5).into(),
            "d" => time(random),
            "list" => Value::List(match random.below(4) {
                0 => vec![],
                1 => vec![Value::Int(1)],
                2 => vec!["a".into(), Value::Null, Value::Int(1)],
                _ => vec![Value::List(vec![]), Document::from_iter([("x", 1i64)]).into()],
            }),
            "m" => match random.below(6) {
                0 => Value::Int(1),
                1 => Document::new().into(),
                2 => Document::from_iter([("x", Value::Null)]).into(),
                3 => {
                    Document::from_iter([("y", Document::from_iter([("z", random.pick(&TEXTS))]))])
                        .into()
                }
                _ => Document::from_iter([
                    ("x", Value::Int(random.pick(&SMALL))),
                    ("y", Document::from_iter([("z", random.pick(&TEXTS))]).into()),
                ])
                .into(),
            },
            "mixed" => match random.below(5) {
                0 => Value::Int(random.pick(&SMALL)),
                1 => random.pick(&TEXTS).into(),
                2 => random.chance(0.5).into(),
                3 => Value::Float(random.pick(&FLOATS)),
                _ => Value::List(vec![]),
            },
            _ => Value::Int(random.pick(&SMALL)),
        }
    }

    fn fields(&self) -> Vec<&'static str> {
        let usual: &[&str] = match self.flat {
            true => &["n", "f", "t", "b", "d"],
            false => &["n", "t", "b", "d"],
        };
        [usual, &self.names].concat()
    }

    /// So many records, the same for every seed.
    pub fn rows(&self, seed: u64, count: u64) -> Vec<Row> {
        let row = |number| {
            // Each field has a stream of its own: more names change nothing in the others.
            let fields = self.fields().into_iter().enumerate().filter_map(|(i, name)| {
                let mut random = Random::new(seed, 100 + i as u64, number);
                match random.below(10) {
                    0 | 1 => None,
                    2 => Some((name, Value::Null)),
                    _ => Some((name, self.value(name, &mut random))),
                }
            });
            let key = Key::new(key_text(number)).expect("not empty");
            Row { key, record: fields.collect() }
        };
        (0..count).map(row).collect()
    }

    /// A query.
    pub fn query(&self, random: &mut Random) -> Query {
        let filter = match random.below(12) {
            0 => Filter::All,
            1 | 2 => self.by_keys(random),
            _ => {
                let filter = self.filter(random, 3);
                Filter::from_document(&filter).expect("a filter")
            }
        };
        let mut query = Query::new(filter);
        let sorts: &[&str] = match self.flat {
            true => &["n", "f", "t", "d", "b", "_key", "n"],
            // Where times become texts, their order is that of the texts.
            false if !self.times => &["n", "t", "b", "m.x", "m.y.z", "_key", "none"],
            false => &["n", "t", "d", "b", "m.x", "m.y.z", "_key", "none"],
        };
        if random.chance(0.5) {
            for _ in 0..random.between(1, 2) {
                let order = if random.chance(0.5) { Order::Ascending } else { Order::Descending };
                query = query.sorted(random.pick(sorts).parse().expect("a path"), order);
            }
        }
        if random.chance(0.4) {
            query = query.limited(random.pick(&[0, 1, 5, 50, 1000]));
        }
        if random.chance(0.25) {
            let fields = [self.fields(), vec!["none"]].concat();
            let some = (0..random.between(0, 3)).map(|_| random.pick(&fields).to_owned()).collect();
            query.fields = Some(some);
        }
        query
    }

    /// Such as stores can do that have nothing but keys.
    fn by_keys(&self, random: &mut Random) -> Filter {
        let key = |random: &mut Random| Value::Text(key_text(random.below(330).into()));
        let test = match random.chance(0.5) {
            true => key(random),
            false => {
                let mut keys: Vec<_> = (0..random.below(6)).map(|_| key(random)).collect();
                // The same once more, and what is no key at all.
                keys.extend(keys.first().cloned());
                keys.extend([Value::Int(1), Value::Null, "".into()]);
                Document::from_iter([("$in", Value::List(keys))]).into()
            }
        };
        let field = Document::from_iter([("_key", test)]);
        Filter::from_document(&field).expect("a filter")
    }

    /// A filter in the style of document databases.
    fn filter(&self, random: &mut Random, depth: u32) -> Document {
        if depth > 0 && random.chance(0.35) {
            let operator = random.pick(&["$and", "$or", "$nor", "$not"]);
            if operator == "$not" {
                return Document::from_iter([("$not", self.filter(random, depth - 1))]);
            }
            let some = (0..random.between(1, 3)).map(|_| self.filter(random, depth - 1).into());
            return Document::from_iter([(operator, Value::List(some.collect()))]);
        }
        let fields = [self.fields(), vec!["none", "_key"]].concat();
        let field = random.pick(&fields);
        let path = match (field, self.flat) {
            ("m", _) => {
                random.pick(&["m", "m.x", "m.x", "m.y", "m.y.z", "m.y.z", "m.none", "m.x.y"])
            }
            ("list", _) => random.pick(&["list", "list", "list.x", "list.0"]),
            ("none", false) => random.pick(&["none", "none.x", "t.x"]),
            (field, _) => field,
        };
        let name = match ODD_NAMES.contains(&path) {
            // As it is, a name that begins with $ would be an operator.
            true if path.starts_with('$') => format!("\\{path}"),
            true => Path::new([path]).to_string(),
            false => path.to_owned(),
        };
        let condition = self.condition(path, random);
        match condition {
            (None, value) => Document::from_iter([(name, value)]),
            (Some(operator), value) => {
                let test = Document::from_iter([(operator, value)]);
                let test = match random.chance(0.1) {
                    true => Document::from_iter([("$not", test)]),
                    false => test,
                };
                Document::from_iter([(name, test)])
            }
        }
    }

    fn condition(&self, path: &str, random: &mut Random) -> (Option<&'static str>, Value) {
        match random.below(16) {
            0..=2 => (None, self.literal(path, random)),
            3 => (Some("$eq"), self.literal(path, random)),
            4 => (Some("$ne"), self.literal(path, random)),
            5 | 6 => {
                let operator = random.pick(&["$in", "$nin"]);
                let some = (0..random.below(5)).map(|_| self.literal(path, random)).collect();
                (Some(operator), Value::List(some))
            }
            7 => (Some("$exists"), random.chance(0.5).into()),
            8 => (Some("$prefix"), random.pick(&STARTS).into()),
            9 => (None, Value::Null),
            _ => {
                let operator = random.pick(&["$lt", "$lte", "$gt", "$gte"]);
                loop {
                    let value = self.literal(path, random);
                    if !matches!(value, Value::Null | Value::Bool(_)) {
                        break (Some(operator), value);
                    }
                }
            }
        }
    }

    /// What the values under a path are compared with: mostly such as are there.
    fn literal(&self, path: &str, random: &mut Random) -> Value {
        let number = |random: &mut Random| match random.below(5) {
            0 | 1 => self.int(random),
            2 | 3 => Value::Float(random.pick(&FLOATS)),
            _ => pick(&long(), random),
        };
        let kind = match path {
            "n" | "f" | "m.x" => 0,
            "t" | "m.y.z" => 1,
            "b" => 2,
            "d" => 3,
            "_key" => 4,
            "list" | "m" | "m.y" | "mixed" => random.below(3),
            _ => 0,
        };
        let kind = match random.chance(0.12) {
            // Of another kind. Where times become text, texts and times are not told apart.
            true if self.times => random.below(6),
            true if kind != 3 => random.pick(&[0, 1, 2, 5]),
            _ => kind,
        };
        match kind {
            0 => number(random),
            1 => random.pick(&TEXTS).into(),
            2 => random.chance(0.5).into(),
            3 => time(random),
            4 => Value::Text(key_text(random.below(330).into())),
            _ => Value::Null,
        }
    }
}

fn pick(values: &[Value], random: &mut Random) -> Value {
    values[random.below(values.len() as u32) as usize].clone()
}

/// Keys that do not sort as their numbers do.
fn key_text(number: u64) -> String {
    format!("{}{number}", ["k", "K", "ü", "k ", "😀"][number as usize % 5])
}
