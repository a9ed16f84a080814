// SPDX-License-Identifier: MIT OR Apache-2.0
//! Periods and reservations that a port refuses.

use pace::{ClassConfig, Config, Error, Period, Scheduler};

use super::host::{BUDGET, LINE, config};

#[test]
fn refusals() {
    let rt = |reserve_bytes| ClassConfig::Rt { reserve_bytes };
    let mut port = Scheduler::new(&config(), 0).unwrap();
    assert_eq!(port.add_class(&rt(0)), Err(Error::Reserve));
    assert_eq!(port.add_class(&rt(BUDGET + 1)), Err(Error::Reserve));
    let first = port.add_class(&rt(BUDGET - 1000)).unwrap();
    assert_eq!(port.reserved_bytes(), BUDGET - 1000);
    let nrt = |reserve_bytes| ClassConfig::Nrt { reserve_bytes };
    assert_eq!(port.add_class(&nrt(1001)), Err(Error::Reserved));
    let second = port.add_class(&nrt(1000)).unwrap();
    // Its own reservation does not count against a class that changes.
    assert_eq!(
        port.change_class(second, &nrt(1001), 0),
        Err(Error::Reserved)
    );
    assert_eq!(port.change_class(second, &rt(900), 0), Ok(()));
    assert_eq!(port.change_class(first, &rt(BUDGET - 900), 0), Ok(()));
    assert_eq!(port.reserved_bytes(), BUDGET);
    let paced = ClassConfig::Paced { rate_bps: LINE };
    assert_eq!(port.change_class(first, &paced, 0), Ok(()));
    assert_eq!(port.reserved_bytes(), 900);
    port.remove_class(second).unwrap();
    assert_eq!(port.reserved_bytes(), 0);
}

#[test]
fn refusals_of_ports() {
    let period = config().period.unwrap();
    let with = |period| Config {
        period: Some(period),
        ..config()
    };
    for (length_ns, refused) in [
        (124_999, Some(Error::Period)),
        (125_000, None),
        (1_000_000_000, None),
        (1_000_000_001, Some(Error::Period)),
    ] {
        let config = with(Period {
            length_ns,
            ..period
        });
        assert_eq!(Scheduler::new(&config, 0).err(), refused);
    }
    for (budget_bytes, refused) in [
        (125_000_000_000, None),
        (125_000_000_001, Some(Error::Budget)),
    ] {
        let config = with(Period {
            budget_bytes,
            ..period
        });
        assert_eq!(Scheduler::new(&config, 0).err(), refused);
    }
    let rt = ClassConfig::Rt { reserve_bytes: 100 };
    let refused = |config: Config| {
        let mut port = Scheduler::new(&config, 0).unwrap();
        port.add_class(&rt).unwrap_err()
    };
    let no_budget = Period {
        budget_bytes: 0,
        ..period
    };
    let none = Config {
        period: None,
        ..config()
    };
    // 125 us of 8 kbit/s: not one byte.
    let slow = Config {
        line_rate_bps: 8000,
        period: Some(Period::percent(8000, 125_000, 70)),
        ..config()
    };
    assert_eq!(refused(none), Error::Period);
    assert_eq!(refused(slow), Error::Period);
    assert_eq!(refused(with(no_budget)), Error::Budget);

    let mut port = Scheduler::new(&config(), 0).unwrap();
    let class = port.add_class(&rt).unwrap();
    let error = port.reconfigure(&none, 0).unwrap_err();
    assert_eq!((error.error, error.class), (Error::Period, Some(class)));
    port.add_class(&rt).unwrap();
    let little = with(Period {
        budget_bytes: 150,
        ..period
    });
    let error = port.reconfigure(&little, 0).unwrap_err();
    assert_eq!((error.error, error.class), (Error::Reserved, None));
}
