// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads any bytes as a port and operations on it: the input of a fuzzer
//! (docs/contribute/fuzzing.md).

use arbitrary::{Result, Unstructured};
use pace::{Config, Layer, Mode, Order};

use super::{FRAMES_MAX, Op, Pair, Part, Size, burst_bytes};

const OPS_MAX: usize = 120;
const CLASSES_MAX: usize = 200;
/// Bounds the classes that the reference visits, so that no input takes long: it
/// visits every class to find the first.
const LOOKS_MAX: usize = 6000;
/// Twice 36 years of ns would overflow a u64.
const OLD_NS: u64 = 1 << 60;

/// Does the operations on core and reference; panics where they disagree.
pub fn replay(bytes: &[u8]) {
    let mut source = Unstructured::new(bytes);
    // An operation whose bytes are incomplete is not done.
    let _ = play(&mut source);
}

fn play(source: &mut Unstructured) -> Result<()> {
    let (cfg, periods) = config(source)?;
    let mut pair = Pair::new(cfg, start(source)?);
    if periods {
        pair.apply(&period(source)?);
    }
    pair.core.use_wheel_from(wheel_from(source)?);
    for _ in 0..source.int_in_range(1..=6)? {
        let copies = match source.arbitrary::<u8>()? {
            many @ 240.. => usize::from(many) - 230,
            _ => 1,
        };
        let class = optional_part(source)?;
        for _ in 0..copies {
            pair.add(class);
        }
    }
    let mut looks = 0;
    for _ in 0..OPS_MAX {
        if source.is_empty() {
            break;
        }
        let op = op(source, periods)?;
        let is_many = pair.classes.len() >= CLASSES_MAX && matches!(op, Op::Add(_));
        looks += match op {
            Op::Run { steps, .. } => steps * pair.classes.len(),
            _ => pair.classes.len(),
        };
        if looks > LOOKS_MAX || pair.now_ns > OLD_NS {
            break;
        }
        if !is_many {
            pair.apply(&op);
        }
    }
    Ok(())
}

fn op(source: &mut Unstructured, periods: bool) -> Result<Op> {
    let last = if periods { 28 } else { 23 };
    let op = match source.int_in_range(0..=last)? {
        0..=2 => Op::Activate(class(source)?),
        3 => Op::ActivateAll,
        4 => Op::Deactivate(class(source)?),
        5..=8 => Op::Step {
            size: size(source)?,
            more: source.arbitrary()?,
            late_ns: u64::from(source.arbitrary::<u16>()?) * 4,
        },
        9..=10 => Op::Run {
            steps: source.int_in_range(1..=40)?,
            size: size(source)?,
            heads: source.arbitrary()?,
        },
        11 => Op::Burst {
            frames: source.int_in_range(1..=FRAMES_MAX)?,
            size: size(source)?,
            more: source.arbitrary()?,
        },
        12 => Op::Head(class(source)?, size(source)?),
        13..=14 => Op::Rate(class(source)?, part(source)?),
        15 => Op::Type(
            class(source)?,
            optional_part(source)?,
            source.int_in_range(0..=4000)?,
        ),
        16 => Op::Add(optional_part(source)?),
        17 => Op::Remove(class(source)?),
        18..=19 => Op::Pass(elapsed(source)?),
        20 => Op::Back(source.int_in_range(0..=5_000_000)?),
        21 => Op::Reconfigure {
            line: f64::from(source.int_in_range(1..=100u8)?) / 10.0,
            max_frame_bytes: source.int_in_range(1..=10_000)?,
            order: order(source)?,
            guard_band: source.arbitrary()?,
        },
        22 => Op::Mode(mode(source)?),
        24..=26 => Op::Reservation(
            class(source)?,
            source.arbitrary()?,
            f64::from(source.arbitrary::<u16>()?) / 131_072.0,
        ),
        27 => Op::Drop(class(source)?),
        28 => period(source)?,
        _ => Op::WheelFrom(wheel_from(source)?),
    };
    Ok(op)
}

fn period(source: &mut Unstructured) -> Result<Op> {
    let length_ns = match source.int_in_range(0..=2u8)? {
        0 => 10_000_000,
        1 => source.int_in_range(125_000..=2_000_000)?,
        _ => source.int_in_range(125_000..=1_000_000_000)?,
    };
    Ok(Op::Period(
        length_ns,
        source.int_in_range(1..=100)?,
        source.arbitrary()?,
    ))
}

fn class(source: &mut Unstructured) -> Result<usize> {
    Ok(source.arbitrary::<u8>()?.into())
}

fn size(source: &mut Unstructured) -> Result<Size> {
    Ok(match source.int_in_range(0..=3u8)? {
        0 => Size::Smallest,
        1 | 2 => Size::Largest,
        _ => Size::Any(source.arbitrary::<u16>()?.into()),
    })
}

/// From a hundred-thousandth of the line to all of it; often round parts.
fn fraction(source: &mut Unstructured) -> Result<f64> {
    Ok(match source.int_in_range(0..=3u8)? {
        0 => 10f64.powf(f64::from(source.arbitrary::<u16>()?) / -13107.0),
        1 => 1.0 / f64::from(source.int_in_range(1..=8u8)?),
        2 => f64::from(source.int_in_range(1..=100u8)?) / 100.0,
        _ => 0.0,
    })
}

fn part(source: &mut Unstructured) -> Result<Part> {
    let rate = fraction(source)?;
    let ceil = match source.int_in_range(0..=2u8)? {
        2 => Some(f64::from(source.arbitrary::<u8>()?) / 255.0),
        _ => None,
    };
    Ok(Part { rate, ceil })
}

fn optional_part(source: &mut Unstructured) -> Result<Option<Part>> {
    match source.int_in_range(0..=4u8)? {
        4 => Ok(None),
        _ => part(source).map(Some),
    }
}

/// Up to half a year.
fn elapsed(source: &mut Unstructured) -> Result<u64> {
    let rebase = source.int_in_range(0..=38u8)?;
    Ok(u64::from(source.arbitrary::<u16>()?) << rebase)
}

fn order(source: &mut Unstructured) -> Result<Order> {
    Ok(*source.choose(&[Order::Clock, Order::Rate, Order::Next])?)
}

fn mode(source: &mut Unstructured) -> Result<Mode> {
    Ok(*source.choose(&[Mode::Gap, Mode::Timer, Mode::Hybrid])?)
}

/// From how many classes on the wheel is used: never, always, or between.
fn wheel_from(source: &mut Unstructured) -> Result<u32> {
    Ok(match source.arbitrary::<u8>()? {
        255 => u32::MAX,
        classes => classes.into(),
    })
}

/// A clock near a wrap: that of a queue key (44 bits of 64 ps), or its own.
fn start(source: &mut Unstructured) -> Result<u64> {
    let before = u64::from(source.arbitrary::<u16>()?);
    Ok(match source.int_in_range(0..=4u8)? {
        0 => 0,
        1 => (1 << 50) - before,
        2 => (1 << 49) - before,
        3 => 0u64.wrapping_sub(before),
        _ => source.arbitrary()?,
    })
}

/// And whether classes may go by periods: seven in eight of the inputs that are
/// older than those do not, and mean what they meant.
fn config(source: &mut Unstructured) -> Result<(Config, bool)> {
    let line_rate_bps = match source.int_in_range(0..=4u8)? {
        0 => 1_000_000_000,
        1 => 10_000_000_000,
        2 => 1_000_000_000_000,
        3 => source.int_in_range(8000..=1_000_000_000_000)?,
        _ => source.int_in_range(8000..=20_000)?,
    };
    let (min, max, overhead) = match source.int_in_range(0..=3u8)? {
        0 => (60, 1514, 24),
        1 => (60, 9014, 24),
        2 => (60, 60, 24),
        _ => {
            let min = source.int_in_range(0..=99)?;
            let more = source.int_in_range(0..=9999u32)?;
            (min, (min + more).max(1), source.int_in_range(0..=256)?)
        }
    };
    let burst = match source.int_in_range(0..=2u8)? {
        2 => source.int_in_range(1..=60_000)?,
        _ => 0,
    };
    let cfg = Config {
        line_rate_bps,
        overhead_bytes: overhead,
        min_frame_bytes: min,
        max_frame_bytes: max,
        max_burst_bytes: burst_bytes(burst, max, overhead),
        link_header_bytes: source.int_in_range(0..=19)?,
        layer: *source.choose(&[Layer::Link, Layer::Wire, Layer::Ip])?,
        order: order(source)?,
        mode: mode(source)?,
        guard_band: false,
        period: None,
    };
    let last = source.arbitrary::<u8>()?;
    let guard_band = last & 1 == 1;
    Ok((Config { guard_band, ..cfg }, last >= 0xe0))
}
