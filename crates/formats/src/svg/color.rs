//! Colors of boxes, which are the window's by package: neighbors of one package look alike, two shades part
//! callers from callees, and the kernel stands apart.

use candela_model::Frame;
use candela_model::FrameKind;
use candela_model::FrameTable;

use crate::svg::package::package_of;

/// Lightness, chroma and hue in degrees: <https://www.w3.org/TR/css-color-4/#ok-lab>.
type Oklch = [f64; 3];

/// Both shades of each hue in the window's light theme (`ui/src/styles/tokens.css`): dark text is read on
/// them in either color scheme.
const HUES: [[Oklch; 2]; 12] = [
    [[0.855, 0.078, 60.0], [0.83, 0.083, 60.0]],
    [[0.855, 0.07, 35.0], [0.83, 0.075, 35.0]],
    [[0.885, 0.08, 90.0], [0.86, 0.085, 90.0]],
    [[0.845, 0.065, 15.0], [0.82, 0.07, 15.0]],
    [[0.875, 0.07, 120.0], [0.85, 0.075, 120.0]],
    [[0.86, 0.06, 155.0], [0.835, 0.065, 155.0]],
    [[0.86, 0.055, 190.0], [0.835, 0.06, 190.0]],
    [[0.84, 0.06, 345.0], [0.815, 0.065, 345.0]],
    [[0.85, 0.05, 310.0], [0.825, 0.055, 310.0]],
    [[0.87, 0.085, 75.0], [0.845, 0.09, 75.0]],
    [[0.85, 0.075, 48.0], [0.825, 0.08, 48.0]],
    [[0.88, 0.075, 105.0], [0.855, 0.08, 105.0]],
];
const KERNEL: [Oklch; 2] = [[0.815, 0.032, 255.0], [0.79, 0.034, 255.0]];
const OTHER: Oklch = [0.9, 0.004, 75.0];
const ROOT: Oklch = [0.905, 0.008, 75.0];

/// The color of a frame in a row of the picture as `#rrggbb`.
pub(crate) fn color(frames: &FrameTable, frame: &Frame, row: u16) -> String {
    if row == 0 {
        return hex(ROOT);
    }
    // Not the number of the frame, as in the window: that is another one in every tree.
    let shade = usize::from(row & 1);
    hex(match frame.kind {
        FrameKind::Other => OTHER,
        FrameKind::Kernel => KERNEL[shade],
        kind => {
            let [name, file, mapping] =
                [frame.name, frame.file, frame.mapping].map(|id| frames.strings.get(id));
            HUES[hue_of(&package_of(name, file, mapping, kind))][shade]
        }
    })
}

/// Which hue a package has: FNV-1a over UTF-16, as the window reads texts.
fn hue_of(package: &str) -> usize {
    let hash = package.encode_utf16().fold(0x811c_9dc5_u32, |hash, unit| {
        (hash ^ u32::from(unit)).wrapping_mul(0x0100_0193)
    });
    hash as usize % HUES.len()
}

/// OKLCH to sRGB, clipped to what a screen shows:
/// <https://www.w3.org/TR/css-color-4/#color-conversion-code>.
fn hex([lightness, chroma, hue]: Oklch) -> String {
    let (a, b) = (
        chroma * hue.to_radians().cos(),
        chroma * hue.to_radians().sin(),
    );
    let [long, medium, short] = [
        lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b,
        lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b,
        lightness - 0.089_484_177_5 * a - 1.291_485_548 * b,
    ]
    .map(|root| root.powi(3));
    let linear = [
        4.076_741_662_1 * long - 3.307_711_591_3 * medium + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * medium - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * medium + 1.707_614_701 * short,
    ];
    let [red, green, blue] = linear.map(|light| {
        let encoded = if light <= 0.003_130_8 {
            12.92 * light
        } else {
            1.055 * light.powf(1.0 / 2.4) - 0.055
        };
        (encoded.clamp(0.0, 1.0) * 255.0).round() as u8
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const TOKENS: &str = include_str!("../../../../ui/src/styles/tokens.css");
    /// What `ui/src/model/names.test.ts` holds the window to.
    const PACKAGES: &str = include_str!("../../../../ui/src/model/packages.json");

    /// The light half of `--frame-NAME: light-dark(oklch(…), …)`.
    fn token(name: &str) -> Oklch {
        let start = format!("--frame-{name}: light-dark(oklch(");
        let (_, rest) = TOKENS.split_once(&start).expect("the token");
        let (numbers, _) = rest.split_once(')').expect("its end");
        let mut numbers = numbers
            .split(' ')
            .map(|number| number.parse().expect("a number"));
        std::array::from_fn(|_| numbers.next().expect("three numbers"))
    }

    #[test]
    fn colors_are_those_of_the_window() {
        for (number, hue) in HUES.iter().enumerate() {
            let shades = ["a", "b"].map(|shade| token(&format!("{number}-{shade}")));
            assert_eq!(*hue, shades, "hue {number}");
        }
        assert!(
            !TOKENS.contains(&format!("--frame-{}-a", HUES.len())),
            "one more"
        );
        assert_eq!(KERNEL, ["kernel-a", "kernel-b"].map(token));
        assert_eq!([OTHER, ROOT], ["other", "root"].map(token));
    }

    #[test]
    fn packages_have_the_hues_of_the_window() {
        let cases: Vec<Value> = serde_json::from_str(PACKAGES).expect("JSON");
        assert!(cases.len() > 10);
        for case in &cases {
            let text = |key: &str| case[key].as_str().expect(key);
            let kind = FrameKind::from_name(text("kind"));
            let package = package_of(text("name"), text("file"), text("mapping"), kind);
            assert_eq!(package, text("package"), "{case}");
            assert_eq!(hue_of(&package) as u64, case["hue"], "{case}");
        }
    }

    #[test]
    fn a_color_of_css_is_the_same_in_srgb() {
        // As Chromium computes them.
        assert_eq!(hex([1.0, 0.0, 0.0]), "#ffffff");
        assert_eq!(hex([0.0, 0.0, 0.0]), "#000000");
        assert_eq!(hex([0.628, 0.2577, 29.23]), "#ff0000");
        assert_eq!(hex([0.452, 0.3132, 264.05]), "#0000ff");
    }
}
