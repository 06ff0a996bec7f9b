//! Writes lists and maps, and decides which maps become Ruby objects.
//!
//! Ruby's loader runs code of a class for what dumped itself (`u`, `U`), and nothing of a class for
//! plain objects and structs. So only those two are ever written: records from strangers, copied
//! into Marshal, cannot choose what a Ruby program runs.

use serde::ser::{self, Error as _, Serialize};

use super::{
    CLASS, STRUCT,
    ser::{Encoder, put_long},
};
use crate::{Error, Result, format::objects::text::if_text};

/// What is being written.
#[derive(Clone, Copy)]
enum State {
    /// Elements, or keys and values.
    Plain,
    /// A map whose first key is not seen yet.
    Start,
    /// The first key was a mark; nothing is written yet.
    Marked(Mark),
    /// The name of a class came after it, and is in the encoder; nothing is written yet.
    Class(Mark),
    /// Variables of an object; true: with `@` before their names.
    Variables(bool),
}

/// A first key that makes an object of a map.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Class,
    Struct,
}

impl Mark {
    /// The mark that is this key.
    #[inline]
    fn of(key: &str) -> Option<Mark> {
        match key {
            CLASS => Some(Mark::Class),
            STRUCT => Some(Mark::Struct),
            _ => None,
        }
    }

    fn key(self) -> &'static str {
        match self {
            Mark::Class => CLASS,
            Mark::Struct => STRUCT,
        }
    }
}

/// A list or map being written.
pub struct Compound<'a, 'o> {
    encoder: &'a mut Encoder<'o>,
    state: State,
    declared: Option<usize>,
    /// Where the count stands in the output.
    count_at: usize,
    count: usize,
    /// It is itself what a hash of one pair holds, and ends with it.
    held: bool,
}

impl<'a, 'o> Compound<'a, 'o> {
    #[inline]
    fn new(encoder: &'a mut Encoder<'o>, state: State, declared: Option<usize>) -> Result<Self> {
        encoder.deeper()?;
        Ok(Compound { encoder, state, declared, count_at: 0, count: 0, held: false })
    }

    #[inline]
    pub fn list(encoder: &'a mut Encoder<'o>, len: Option<usize>) -> Result<Self> {
        let mut list = Self::new(encoder, State::Plain, len)?;
        list.begin(b'[')?;
        Ok(list)
    }

    /// A hash, whatever its keys are.
    #[inline]
    pub fn hash(encoder: &'a mut Encoder<'o>, len: Option<usize>) -> Result<Self> {
        let mut hash = Self::new(encoder, State::Plain, len)?;
        hash.begin(b'{')?;
        Ok(hash)
    }

    /// A hash or an object: the first key will tell.
    #[inline]
    pub fn map(encoder: &'a mut Encoder<'o>, len: Option<usize>) -> Result<Self> {
        Self::new(encoder, State::Start, len)
    }

    /// A hash of one pair, from the name of a variant to what comes next.
    pub fn holding(encoder: &'a mut Encoder<'o>, variant: &str) -> Result<Self> {
        let hash = Self::hash(encoder, Some(1))?;
        hash.encoder.key(variant)?;
        Ok(hash)
    }

    pub fn list_inside(self, len: usize) -> Result<Self> {
        let mut inner = Self::list(self.encoder, Some(len))?;
        inner.held = true;
        Ok(inner)
    }

    pub fn hash_inside(self, len: usize) -> Result<Self> {
        let mut inner = Self::hash(self.encoder, Some(len))?;
        inner.held = true;
        Ok(inner)
    }

    #[inline]
    fn begin(&mut self, tag: u8) -> Result<()> {
        self.encoder.enter();
        self.encoder.out.push(tag);
        self.count_at = self.encoder.out.len();
        self.encoder.length(self.declared.unwrap_or(0))
    }

    /// Begins an object: its class, which is in the encoder, and a count of variables without it.
    fn begin_object(&mut self, mark: Mark) -> Result<()> {
        self.encoder.enter();
        self.encoder.out.push(if mark == Mark::Class { b'o' } else { b'S' });
        let class = std::mem::take(&mut self.encoder.class);
        self.encoder.symbol(&class)?;
        self.declared = self.declared.map(|n| n.saturating_sub(1));
        self.count_at = self.encoder.out.len();
        self.encoder.length(self.declared.unwrap_or(0))?;
        // Ruby's own names for them have no `@`.
        let plain = mark == Mark::Struct || class == "Range";
        self.state = State::Variables(!plain);
        Ok(())
    }

    /// Makes a hash of a map that began like an object.
    fn begin_hash(&mut self, mark: Mark) -> Result<()> {
        self.state = State::Plain;
        self.begin(b'{')?;
        self.count = 1;
        self.encoder.key(mark.key())
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.count += 1;
        value.serialize(&mut *self.encoder)
    }

    #[inline]
    pub fn named<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        if let State::Start = self.state
            && Mark::of(key).is_none()
        {
            self.state = State::Plain;
            self.begin(b'{')?;
        }
        if let State::Plain = self.state {
            self.count += 1;
            self.encoder.key(key)?;
            return value.serialize(&mut *self.encoder);
        }
        self.any_key(key)?;
        self.any_value(value)
    }

    #[inline]
    fn any_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        if let State::Start = self.state {
            if let Some(Some(mark)) = if_text(key, Mark::of) {
                self.state = State::Marked(mark);
                return Ok(());
            }
            self.state = State::Plain;
            self.begin(b'{')?;
        }
        if let State::Plain = self.state {
            self.count += 1;
            self.encoder.in_key = true;
            key.serialize(&mut *self.encoder)?;
            self.encoder.in_key = false;
            return Ok(());
        }
        self.variable(key)
    }

    /// A key after the class.
    fn variable<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        if let State::Class(mark) = self.state {
            if if_text(key, |key| key.starts_with('^')) == Some(false) {
                self.begin_object(mark)?;
            } else {
                self.begin_hash(mark)?;
                let class = std::mem::take(&mut self.encoder.class);
                self.encoder.text(&class)?;
                return self.any_key(key);
            }
        }
        let State::Variables(at) = self.state else {
            return Err(Error::custom("a key before the value of the last"));
        };
        self.count += 1;
        let name = if_text(key, |key| if at { format!("@{key}") } else { key.to_owned() });
        match name {
            Some(name) => self.encoder.symbol(&name),
            None => Err(Error::custom("a variable of an object whose name is not text")),
        }
    }

    #[inline]
    fn any_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if let State::Marked(mark) = self.state {
            let class = if_text(value, |class| is_class(class).then(|| class.to_owned()));
            if let Some(Some(class)) = class {
                self.encoder.class = class;
                self.state = State::Class(mark);
                return Ok(());
            }
            self.begin_hash(mark)?;
        }
        value.serialize(&mut *self.encoder)
    }

    #[inline]
    pub fn finish(mut self) -> Result<()> {
        match self.state {
            State::Start => self.begin(b'{')?,
            State::Class(mark) => self.begin_object(mark)?,
            State::Marked(_) => return Err(Error::custom("a key without a value")),
            State::Plain | State::Variables(_) => {}
        }
        self.encoder.depth -= 1 + usize::from(self.held);
        if self.declared != Some(self.count) {
            self.correct_count()?;
        }
        Ok(())
    }

    /// Writes the count that was not known, or was wrong.
    #[cold]
    fn correct_count(&mut self) -> Result<()> {
        let mut old = Vec::new();
        put_long(&mut old, self.declared.unwrap_or(0) as i32);
        // Written for its check and its bytes, then moved to its place.
        let end = self.encoder.out.len();
        self.encoder.length(self.count)?;
        let new = self.encoder.out.split_off(end);
        if new.len() != old.len() {
            self.encoder.moved();
        }
        self.encoder.out.splice(self.count_at..self.count_at + old.len(), new);
        Ok(())
    }
}

/// True for the name of a class: constants with `::` between them.
fn is_class(name: &str) -> bool {
    name.split("::").all(|part| {
        part.starts_with(|c: char| c.is_ascii_uppercase())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

macro_rules! elements {
    ($($trait:ident $method:ident;)*) => {
        $(impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = Error;
            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.element(value)
            }
            #[inline]
            fn end(self) -> Result<()> {
                self.finish()
            }
        })*
    };
}

elements! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! fields {
    ($($trait:ident)*) => {
        $(impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = Error;
            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<()> {
                self.named(key, value)
            }
            #[inline]
            fn end(self) -> Result<()> {
                self.finish()
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Compound<'_, '_> {
    type Ok = ();
    type Error = Error;
    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.any_key(key)
    }
    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.any_value(value)
    }
    #[inline]
    fn end(self) -> Result<()> {
        self.finish()
    }
}
