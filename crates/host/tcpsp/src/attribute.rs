// SPDX-License-Identifier: MIT OR Apache-2.0
//! Netlink attributes: a number, and bytes that may be attributes again. What is not known here is
//! kept as it is, so that no qdisc of others hinders reading.

use netlink_packet_core::{DefaultNla, Emitable, NLA_TYPE_MASK, NlasIterator};

/// The flag of an attribute that holds others (NLA_F_NESTED).
const NESTED: u16 = 1 << 15;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its number, without flags.
    pub kind: u16,
    pub value: Vec<u8>,
    is_nested: bool,
}

impl Attribute {
    /// Returns an attribute of plain bytes.
    pub fn new(kind: u16, value: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            value: value.into(),
            is_nested: false,
        }
    }

    /// Returns an attribute that holds others.
    pub fn nested(kind: u16, attributes: &[Self]) -> Self {
        Self {
            kind,
            value: write(attributes),
            is_nested: true,
        }
    }

    /// Returns a number of one byte.
    pub fn u8(kind: u16, value: u8) -> Self {
        Self::new(kind, [value])
    }

    /// Returns a number of four bytes, in the host's order.
    pub fn u32(kind: u16, value: u32) -> Self {
        Self::new(kind, value.to_ne_bytes())
    }

    /// Returns a number of eight bytes, in the host's order.
    pub fn u64(kind: u16, value: u64) -> Self {
        Self::new(kind, value.to_ne_bytes())
    }

    /// Returns a string, which the kernel wants to end with a zero.
    pub fn string(kind: u16, text: &str) -> Self {
        let mut value = text.as_bytes().to_vec();
        value.push(0);
        Self::new(kind, value)
    }
}

/// Reads attributes; one that is cut short ends them.
pub fn read(bytes: &[u8]) -> Vec<Attribute> {
    NlasIterator::new(bytes)
        .map_while(Result::ok)
        .map(|attribute| Attribute {
            kind: attribute.kind() & NLA_TYPE_MASK,
            value: attribute.value().to_vec(),
            is_nested: attribute.nested_flag(),
        })
        .collect()
}

/// Writes attributes one after the other.
pub fn write(attributes: &[Attribute]) -> Vec<u8> {
    let all: Vec<_> = attributes
        .iter()
        .map(|attribute| {
            let flag = if attribute.is_nested { NESTED } else { 0 };
            DefaultNla::new(attribute.kind | flag, attribute.value.clone())
        })
        .collect();
    let mut bytes = vec![0; all.as_slice().buffer_len()];
    all.as_slice().emit(&mut bytes);
    bytes
}

/// Attributes that values are looked up in.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a [Attribute]);

impl<'a> Attributes<'a> {
    /// Returns the bytes of one.
    pub fn bytes(self, kind: u16) -> Option<&'a [u8]> {
        let attribute = self.0.iter().find(|attribute| attribute.kind == kind)?;
        Some(&attribute.value)
    }

    /// Returns a number of 1, 2, 4 or 8 bytes: a newer kernel may send a longer one.
    pub fn number(self, kind: u16) -> Option<u64> {
        let bytes = self.bytes(kind)?;
        match *bytes {
            [a] => Some(a.into()),
            [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
            [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d]).into()),
            _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        }
    }

    /// Returns a number of four bytes.
    pub fn u32(self, kind: u16) -> Option<u32> {
        self.number(kind)?.try_into().ok()
    }

    /// Returns a text, without the zero at its end.
    pub fn string(self, kind: u16) -> Option<String> {
        let bytes = self.bytes(kind)?;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read() {
        let all = [
            Attribute::u8(1, 7),
            Attribute::string(2, "psp"),
            Attribute::nested(3, &[Attribute::u64(1, 1 << 40)]),
        ];
        let bytes = write(&all);
        // Each begins at a multiple of four bytes.
        assert_eq!(bytes.len(), 8 + 8 + 16);
        assert_eq!(read(&bytes), all);
        let found = Attributes(&all);
        assert_eq!(found.number(1), Some(7));
        assert_eq!(found.string(2).as_deref(), Some("psp"));
        assert_eq!(found.number(4), None);
        let inside = read(found.bytes(3).unwrap());
        assert_eq!(Attributes(&inside).number(1), Some(1 << 40));
        assert_eq!(Attributes(&inside).u32(1), None);
        // What is cut short is left out.
        assert_eq!(read(&bytes[..10]), all[..1]);
    }
}
