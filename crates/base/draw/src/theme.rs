// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colours and fonts. The colours of series are an Okabe-Ito set, darkened for light pages and
//! lightened for dark ones, so that readers with a colour vision deficiency can distinguish them.

/// Number of colours of series; more series are drawn as bands.
pub const COLOURS: usize = 8;

macro_rules! light {
    () => {
        "--ink:#1a1c20;--soft:#5c6370;--faint:#e4e6ea;--page:#ffffff;--card:#f7f8fa;\
         --good:#00705a;--bad:#b3261e;\
         --c0:#0b64ad;--c1:#c95100;--c2:#008566;--c3:#9c3d8a;--c4:#a67700;--c5:#3d93c9;--c6:#6549b5;--c7:#70757d"
    };
}
macro_rules! dark {
    () => {
        "--ink:#e8eaee;--soft:#a2a9b5;--faint:#33373f;--page:#15171b;--card:#1c1f24;\
         --good:#4fd1ac;--bad:#ff8a80;\
         --c0:#64b2f2;--c1:#ff9550;--c2:#45caa5;--c3:#e291cd;--c4:#e5b945;--c5:#9ad6f7;--c6:#b29df5;--c7:#a9aeb8"
    };
}
macro_rules! fonts {
    () => {
        "Inter,'Source Sans 3','Helvetica Neue',Arial,system-ui,sans-serif"
    };
}
macro_rules! plots {
    () => {
        concat!(
            ".plot text,.plot-narrow text{font:12px ",
            fonts!(),
            ";fill:var(--ink);font-variant-numeric:tabular-nums}\
             text.tick,text.unit,text.note{fill:var(--soft)}\
             text.label{font-weight:600}\
             text.label,text.note{paint-order:stroke;stroke:var(--page);stroke-width:3px;stroke-linejoin:round}\
             .grid{stroke:var(--faint);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}\
             .mark{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 3}\
             .line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}\
             .target{fill:none;stroke-width:1;stroke-dasharray:5 4;opacity:.75}\
             .range{stroke-width:2;stroke-linecap:round;opacity:.55}\
             .band{stroke:none;opacity:.2}.band.pale{opacity:.09}.bar{stroke:none}\
             .s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}\
             .s4{stroke:var(--c4)}.s5{stroke:var(--c5)}.s6{stroke:var(--c6)}.s7{stroke:var(--c7)}\
             .f0{fill:var(--c0)!important}.f1{fill:var(--c1)!important}.f2{fill:var(--c2)!important}\
             .f3{fill:var(--c3)!important}.f4{fill:var(--c4)!important}.f5{fill:var(--c5)!important}\
             .f6{fill:var(--c6)!important}.f7{fill:var(--c7)!important}"
        )
    };
}

/// The style sheet of a plot in a file of its own.
pub const SVG_STYLE: &str = concat!(
    "svg{",
    light!(),
    ";background:var(--page)}@media screen and (prefers-color-scheme:dark){svg{",
    dark!(),
    "}}",
    plots!()
);

/// The style sheet of a page.
pub const PAGE_STYLE: &str = concat!(
    ":root{color-scheme:light dark;",
    light!(),
    "}@media screen and (prefers-color-scheme:dark){:root{",
    dark!(),
    "}}",
    plots!(),
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}",
    "body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 ",
    fonts!(),
    "}",
    include_str!("page.css")
);
