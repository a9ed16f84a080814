// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both models beside a reference in exact fractions, which counts every read and every draining.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use proptest::prelude::*;
use st2110::format::{Raster, Scan, Schedule};
use st2110::limits::{SenderType, limits};
use st2110::network::Bucket;
use st2110::rate::{KNOWN, Rate};
use st2110::receiver::{Arrival, ReadTimes, Reading, follow};

fn fraction(num: i128, den: i128) -> BigRational {
    BigRational::new(BigInt::from(num), BigInt::from(den))
}

/// Seconds of a picture.
fn period(rate: Rate) -> BigRational {
    fraction(rate.den().into(), rate.num().into())
}

fn seconds(ps: i128) -> BigRational {
    fraction(ps, 1_000_000_000_000)
}

/// What the standard's tables say of a raster: the active share, and TR_OFFSET in frames.
fn table(raster: Raster) -> (BigRational, BigRational) {
    match raster.scan {
        Scan::Progressive if raster.height >= 1080 => (fraction(1080, 1125), fraction(43, 1125)),
        Scan::Progressive => (fraction(1080, 1125), fraction(28, 750)),
        Scan::Interlaced if raster.height >= 1080 => (fraction(1080, 1125), fraction(22, 1125)),
        Scan::Interlaced if raster.height >= 576 => (fraction(576, 625), fraction(26, 625)),
        Scan::Interlaced => (fraction(487, 525), fraction(20, 525)),
    }
}

fn raster() -> impl Strategy<Value = Raster> {
    let heights = prop::sample::select(vec![480, 576, 720, 1080, 2160]);
    (heights, any::<bool>()).prop_map(|(height, is_interlaced)| Raster {
        height,
        scan: if is_interlaced {
            Scan::Interlaced
        } else {
            Scan::Progressive
        },
    })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    prop::sample::select(vec![Schedule::Gapped, Schedule::Linear])
}

fn known() -> impl Strategy<Value = Rate> {
    prop::sample::select(KNOWN.to_vec())
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn the_bucket_is_that_of_the_reference(
        rate in known(),
        packets in 1u32..2000,
        origin_ps in 0i128..2_000_000_000_000_000_000_000,
        steps in prop::collection::vec(prop_oneof![
            Just(0i128),
            0i128..20_000_000,
            0i128..100_000_000_000,
        ], 1..80),
    ) {
        let drain = period(rate) / BigInt::from(packets) / fraction(11, 10);
        let mut bucket = Bucket::new(rate, packets);
        let mut time_ps = origin_ps;
        let (mut level, mut drained): (BigInt, BigInt) = (BigInt::zero(), BigInt::zero());
        prop_assert_eq!(bucket.add(origin_ps), 0);
        for step in steps {
            time_ps += step;
            // Drainings so far: one every T_DRAIN after the first packet.
            let now: BigInt = (seconds(time_ps - origin_ps) / &drain).floor().to_integer();
            level = (level + BigInt::from(1) - (&now - &drained)).max(BigInt::zero());
            drained = now;
            prop_assert_eq!(BigInt::from(bucket.add(time_ps)), level.clone());
        }
    }

    #[test]
    fn the_buffer_is_that_of_the_reference(
        rate in known(),
        nominal in 1u32..60,
        raster in raster(),
        schedule in schedule(),
        first in 0i128..120_000_000_000,
        offset_us in prop::option::of(-2000i128..20_000),
        moved in prop::collection::vec((-3_000_000_000i128..3_000_000_000, 0u64..3), 1..60),
    ) {
        let times = ReadTimes::new(rate, nominal, raster, schedule, offset_us.map(|us| us * 1_000_000));
        let (active, default) = table(raster);
        let active = match schedule {
            Schedule::Gapped => active,
            Schedule::Linear => fraction(1, 1),
        };
        let spacing = period(rate) * active / BigInt::from(nominal);
        let fields = BigInt::from(raster.pictures());
        let offset = offset_us.map_or(default * period(rate) * fields, |us| fraction(us, 1_000_000));
        let datum = |n: i128| period(rate) * BigInt::from(n) + &offset;
        // Two pictures, whose packets come around their read times.
        let places: Vec<(usize, u32)> = (0..moved.len() as u32)
            .map(|i| ((i / nominal).min(1) as usize, i % nominal))
            .collect();
        let read_at = |(picture, index): (usize, u32)| datum(first + picture as i128) + &spacing * BigInt::from(index);
        let mut arrivals: Vec<_> = places
            .iter()
            .zip(&moved)
            .map(|(place, (shift, more))| {
                let near = (read_at(*place) * BigInt::from(1_000_000_000_000i128)).floor().to_integer();
                Arrival {
                    time_ps: (near.to_i128().unwrap() + shift).max(0),
                    picture: place.0,
                    index: place.1,
                    packets: 1 + more,
                }
            })
            .collect();
        arrivals.sort_by_key(|arrival| arrival.time_ps);
        let readings: Vec<_> = (0..2)
            .map(|n| Reading { datum: times.datum(first + n), packets: nominal })
            .collect();
        let mut entered = 0i64;
        let mut outcome = Ok(());
        follow(&times, &readings, &arrivals, |arrival, state| {
            let now = seconds(arrival.time_ps);
            entered += arrival.packets as i64;
            let all = (0..2).flat_map(|p| (0..nominal).map(move |i| (p, i)));
            let read = all.filter(|place| read_at(*place) <= now).count() as i64;
            let late = (&now - read_at((arrival.picture, arrival.index))).max(BigRational::zero());
            let late_ps = (late * BigInt::from(1_000_000_000_000i128)).ceil().to_integer();
            if (state.vrx, BigInt::from(state.late_ps)) != (entered - read, late_ps.clone()) {
                outcome = Err(format!("{arrival:?}: {state:?}, expected {} {late_ps}", entered - read));
            }
        });
        prop_assert_eq!(outcome, Ok(()));
        // The picture that is nearest to a time.
        for arrival in &arrivals {
            let number = times.nearest(arrival.time_ps * times.scale());
            let distance = |n: i128| {
                let distance = seconds(arrival.time_ps) - datum(n);
                if distance < BigRational::zero() { -distance } else { distance }
            };
            prop_assert!(distance(number) <= distance(number - 1));
            prop_assert!(distance(number) <= distance(number + 1));
        }
    }

    #[test]
    fn the_limits_are_those_of_the_formulas(
        rate in known(),
        packets in 1u32..60_000,
        raster in raster(),
        ip_bytes in 64u32..10_000,
    ) {
        let per_second = BigRational::from_integer(BigInt::from(packets)) / period(rate);
        let whole = |value: BigRational| value.floor().to_integer().to_u64().unwrap();
        let over = |by: i128, active: &BigRational| whole(&per_second / fraction(by, 1) / active);
        let one = fraction(1, 1);
        let by_size = |times: u64| 1500 * times / u64::from(ip_bytes);
        let active = table(raster).0;
        for (of, cmax, vrx_full) in [
            (SenderType::Narrow, over(43_200, &active).max(4), over(27_000, &one).max(by_size(8))),
            (SenderType::NarrowLinear, over(43_200, &one).max(4), over(27_000, &one).max(by_size(8))),
            (SenderType::Wide, over(21_600, &one).max(16), over(300, &one).max(by_size(720))),
        ] {
            let found = limits(of, rate, packets, raster, ip_bytes);
            prop_assert_eq!((found.cmax, found.vrx_full), (cmax, vrx_full));
        }
    }
}

/// Times far from the epoch, with the largest of everything, stay exact.
#[test]
fn the_largest_numbers_fit() {
    let rate = Rate::new(240_000, 1001).unwrap();
    let raster = Raster {
        height: 2160,
        scan: Scan::Progressive,
    };
    let times = ReadTimes::new(
        rate,
        st2110::limits::MOST_PACKETS,
        raster,
        Schedule::Gapped,
        None,
    );
    let last_ps = i64::MAX as i128 * 1000;
    let number = times.nearest(last_ps * times.scale());
    let distance = (last_ps * times.scale() - times.datum(number)).abs();
    assert!(distance * 2 <= times.period());
    let mut bucket = Bucket::new(rate, st2110::limits::MOST_PACKETS);
    bucket.add(0);
    assert_eq!(bucket.add(last_ps), 0);
}
