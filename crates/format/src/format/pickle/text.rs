//! How text is passed to serde: borrowed or copied.

use serde::de::Visitor;

use crate::Result;

/// As text, checked; or as bytes, to types that take bytes for text.
pub trait Text<'de>: Sized {
    /// Hands over what should be UTF-8.
    fn visit<V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value>;
}

impl<'de> Text<'de> for &'de str {
    #[inline]
    fn visit<V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value> {
        match std::str::from_utf8(bytes) {
            Ok(text) => visitor.visit_borrowed_str(text),
            Err(_) => visitor.visit_borrowed_bytes(bytes),
        }
    }
}

impl<'de> Text<'de> for &'de [u8] {
    #[inline]
    fn visit<V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value> {
        visitor.visit_borrowed_bytes(bytes)
    }
}
