// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the kernel's reasons to drop a packet, as the running kernel's type information (BTF)
//! has them: reasons are added and renumbered from version to version.

use std::collections::BTreeMap;
use std::sync::Arc;

const MAGIC: u32 = 0xeb9f;
const ENUM: u32 = 6;
const ENUM_NAME: &[u8] = b"skb_drop_reason";
/// What every name begins with; readers need not see it.
const PREFIX: &str = "SKB_DROP_REASON_";

/// The names of reasons. The default knows none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(Arc<BTreeMap<u32, String>>);

impl Reasons {
    /// Reads the names from a kernel's BTF in this host's byte order. Of malformed BTF it reads
    /// none.
    pub fn of_btf(btf: &[u8]) -> Self {
        Self(Arc::new(read(btf).unwrap_or_default()))
    }

    /// Returns the name of a reason, or its number where the kernel does not name it.
    pub fn name(&self, reason: u32) -> String {
        match self.0.get(&reason) {
            Some(name) => name.clone(),
            None => format!("reason {reason:#x}"),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn size(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(word(bytes, at)?).ok()
}

/// Reads the header (`struct btf_header`) and finds the enum.
fn read(btf: &[u8]) -> Option<BTreeMap<u32, String>> {
    let magic = btf.first_chunk().map(|magic| u16::from_ne_bytes(*magic));
    if magic.map(u32::from) != Some(MAGIC) {
        return None;
    }
    let body = btf.get(size(btf, 4)?..)?;
    let types = body.get(size(btf, 8)?..)?.get(..size(btf, 12)?)?;
    let strings = body.get(size(btf, 16)?..)?;
    let values = values(types, strings)?;
    let name_of = |pair: &[u8]| {
        let name = string(strings, size(pair, 0)?)?;
        let name = String::from_utf8_lossy(name);
        let name = name.strip_prefix(PREFIX).unwrap_or(&name);
        Some((word(pair, 4)?, name.to_owned()))
    };
    values.chunks_exact(8).map(name_of).collect()
}

/// Returns the values of the enum: pairs of a name's place and a number.
fn values<'a>(types: &'a [u8], strings: &[u8]) -> Option<&'a [u8]> {
    let mut rest = types;
    loop {
        let (name, info) = (size(rest, 0)?, word(rest, 4)?);
        let (kind, members) = ((info >> 24) & 0x1f, usize::try_from(info & 0xffff).ok()?);
        let behind = rest.get(12..)?;
        let length = match kind {
            1 | 14 | 17 => 4,
            3 => 12,
            4 | 5 | 15 | 19 => members * 12,
            ENUM | 13 => members * 8,
            2 | 7..=12 | 16 | 18 => 0,
            _ => return None,
        };
        let own = behind.get(..length)?;
        if kind == ENUM && string(strings, name) == Some(ENUM_NAME) {
            return Some(own);
        }
        rest = &behind[length..];
    }
}

fn string(strings: &[u8], at: usize) -> Option<&[u8]> {
    strings.get(at..)?.split(|byte| *byte == 0).next()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Makes BTF of a structure with a member, another enum, and the enum of reasons.
    fn btf() -> Vec<u8> {
        let strings = b"\0x\0skb_drop_reason\0SKB_DROP_REASON_QDISC_DROP\0SKB_CONSUMED\0";
        let at = |name: &str| {
            let all = std::str::from_utf8(strings).unwrap();
            u32::try_from(all.find(&format!("\0{name}\0")).unwrap() + 1).unwrap()
        };
        let info = |kind: u32, members: u32| (kind << 24) | members;
        let types = [
            [at("x"), info(4, 1), 8].as_slice(),
            &[at("x"), 3, 0],
            &[at("x"), info(6, 1), 4],
            &[at("x"), 48],
            &[at("skb_drop_reason"), info(6, 2), 4],
            &[at("SKB_CONSUMED"), 1],
            &[at("SKB_DROP_REASON_QDISC_DROP"), 48],
        ]
        .concat();
        let length = u32::try_from(types.len() * 4).unwrap();
        let mut bytes = 0xeb9f_u16.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let header = [24, 0, length, length, u32::try_from(strings.len()).unwrap()];
        bytes.extend(
            header
                .iter()
                .chain(&types)
                .flat_map(|word| word.to_ne_bytes()),
        );
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn names_of_reasons() {
        let reasons = Reasons::of_btf(&btf());
        assert_eq!(reasons.name(48), "QDISC_DROP");
        assert_eq!(reasons.name(1), "SKB_CONSUMED");
        assert_eq!(reasons.name(0x1_0003), "reason 0x10003");
        assert_eq!(Reasons::default().name(2), "reason 0x2");
    }

    #[test]
    fn cut_btf_has_no_names() {
        let whole = btf();
        for bytes in 0..whole.len() - 80 {
            let reasons = Reasons::of_btf(&whole[..bytes]);
            assert_eq!(reasons, Reasons::default(), "{bytes} bytes");
        }
    }

    #[test]
    fn this_kernel_has_names_if_it_has_types() {
        let Ok(btf) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            return;
        };
        assert_eq!(Reasons::of_btf(&btf).name(2), "NOT_SPECIFIED");
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn any_bytes_behind_a_header(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut whole = btf();
            whole.truncate(24);
            whole.extend(bytes);
            let _ = Reasons::of_btf(&whole);
        }
    }
}
