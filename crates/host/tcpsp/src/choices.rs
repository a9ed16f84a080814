// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of options that are words, with the kernel's numbers.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::uapi::*;

/// Makes an enum of words out of the kernel's numbers.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $number:ident $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$of])* $variant,)+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Returns the kernel's number.
            pub const fn number(self) -> u64 {
                match self { $(Self::$variant => $number,)+ }
            }

            /// Returns the value of a word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }

            /// Returns the value of the kernel's number, if it is known here.
            pub fn from_number(number: u64) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.number() == number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    };
}

words! {
    /// How time passes while no frame is due.
    Mode {
        /// Hybrid where the device allows it, else timer.
        Auto = TC_PSP_MODE_AUTO "auto",
        /// Gap frames fill the wire.
        Gap = TC_PSP_MODE_GAP "gap",
        Timer = TC_PSP_MODE_TIMER "timer",
        /// A timer, and gap frames for the last stretch.
        Hybrid = TC_PSP_MODE_HYBRID "hybrid",
    }
}
words! {
    /// Which bytes of a frame a rate counts.
    Layer {
        /// The frame without FCS.
        Link = TC_PSP_LAYER_LINK "link",
        /// Padded, and with the overhead.
        Wire = TC_PSP_LAYER_WIRE "wire",
        /// Without the link header.
        Ip = TC_PSP_LAYER_IP "ip",
    }
}
words! {
    /// Which of several due classes goes first.
    Order {
        /// The one that has waited longest.
        Clock = TC_PSP_ORDER_CLOCK "clock",
        /// The one with the highest rate.
        Rate = TC_PSP_ORDER_RATE "rate",
        /// The one whose next frame is due first.
        Next = TC_PSP_ORDER_NEXT "next",
    }
}
words! {
    /// Type of gap frame.
    Gap {
        /// IEEE 802.3x PAUSE with a pause time of 0.
        Pause = TC_PSP_GAP_PAUSE "pause",
        /// EtherType 0x88b5 to a reserved multicast address.
        Multicast = TC_PSP_GAP_MULTICAST "multicast",
    }
}
words! {
    /// Whether a burst (GSO packet) is cut into frames before it is queued.
    SplitGso {
        /// Where pacing would suffer from a whole one.
        Auto = TC_PSP_SPLIT_GSO_AUTO "auto",
        On = TC_PSP_SPLIT_GSO_ON "on",
        Off = TC_PSP_SPLIT_GSO_OFF "off",
    }
}
words! {
    ClassType {
        /// Best effort.
        Normal = TC_PSP_TYPE_NORMAL "normal",
        /// Has a rate.
        Paced = TC_PSP_TYPE_PACED "paced",
        /// Each TCP flow at packet size x cwnd / RTT.
        Dynamic = TC_PSP_TYPE_DYNAMIC "dynamic",
        /// Frames that arrived before a period leave in it.
        Rt = TC_PSP_TYPE_RT "rt",
        /// A share of each period, the rest in the next.
        Nrt = TC_PSP_TYPE_NRT "nrt",
        /// A rate and a ceil for the classes below it.
        Group = TC_PSP_TYPE_GROUP "group",
    }
}
words! {
    /// Clock of the launch times of a class's frames.
    LaunchClock {
        Monotonic = TC_PSP_TXTIME_MONOTONIC "monotonic",
        Tai = TC_PSP_TXTIME_TAI "tai",
    }
}
words! {
    /// Why gap frames are not sent. If they are, the kernel gives 0, which is none of these.
    Why {
        /// The device is not Ethernet.
        NotEthernet = TC_PSP_WHY_NOT_ETHERNET "not_ethernet",
        /// The device has no transmit queue.
        NoQueue = TC_PSP_WHY_NO_QUEUE "no_transmit_queue",
        /// A software device has no wire.
        Software = TC_PSP_WHY_SOFTWARE "software_device",
        /// The device names no line rate.
        NoRate = TC_PSP_WHY_NO_RATE "line_unknown",
        /// Other transmit queues send on the wire.
        Shared = TC_PSP_WHY_SHARED "line_shared",
        /// Frames took less time than the line says.
        NoClock = TC_PSP_WHY_NO_CLOCK "no_wire_clock",
        /// Gap frames have not shown yet that they take the time that the line says.
        NotProved = TC_PSP_WHY_NOT_PROVED "not_proved",
        /// The host makes gap frames too slowly for the line.
        HostSlow = TC_PSP_WHY_HOST_SLOW "host_slow",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// tc's own words, in the order of the numbers, of an array in tc/q_psp.c.
    fn of_tc(name: &str) -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tc/q_psp.c");
        let text = fs::read_to_string(path).unwrap();
        let start = format!("const char *const {name}[] = {{");
        let body = text
            .split_once(&start)
            .unwrap()
            .1
            .split_once('}')
            .unwrap()
            .0;
        let words = body.split('"').skip(1).step_by(2);
        words.map(str::to_owned).collect()
    }

    #[test]
    fn words_are_those_of_tc() {
        fn check<T: Copy>(
            name: &str,
            all: &[T],
            word: fn(T) -> &'static str,
            number: fn(T) -> u64,
        ) {
            let of_tc = of_tc(name);
            for value in all {
                let number = usize::try_from(number(*value)).unwrap();
                assert_eq!(of_tc[number], word(*value), "{name}");
            }
            // Of the reasons tc has "" for none.
            let named = of_tc.iter().filter(|word| !word.is_empty()).count();
            assert_eq!(named, all.len(), "{name}");
        }
        check("modes", Mode::ALL, Mode::word, Mode::number);
        check("layers", Layer::ALL, Layer::word, Layer::number);
        check("orders", Order::ALL, Order::word, Order::number);
        check("gaps", Gap::ALL, Gap::word, Gap::number);
        check("splits", SplitGso::ALL, SplitGso::word, SplitGso::number);
        check("types", ClassType::ALL, ClassType::word, ClassType::number);
        check("whys", Why::ALL, Why::word, Why::number);
        let clocks = LaunchClock::ALL.iter().map(|clock| clock.word());
        let clocks: Vec<_> = ["off"].into_iter().chain(clocks).collect();
        assert_eq!(of_tc("txtimes"), clocks);
        assert_eq!(LaunchClock::Tai.number(), 2);
    }

    #[test]
    fn words_and_numbers() {
        assert_eq!(Mode::parse("hybrid"), Some(Mode::Hybrid));
        assert_eq!(Mode::from_number(3), Some(Mode::Hybrid));
        assert_eq!(Mode::parse("Hybrid"), None);
        assert_eq!(Why::from_number(0), None);
        assert_eq!(SplitGso::Off.to_string(), "off");
    }
}
