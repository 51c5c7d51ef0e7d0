//! Colors of boxes: the hue tells the kind of code, the shade tells neighbors apart.

use candela_model::FrameKind;

/// The color of a frame as `#rrggbb`: light enough for dark text on it in either color scheme.
pub(crate) fn color(name: &str, kind: FrameKind) -> String {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let (hue, saturation) = hue(kind);
    let hue = hue + f64::from(hash >> 8 & 15) - 7.5;
    let lightness = 0.66 + f64::from(hash >> 16 & 15) * 0.009;
    let [red, green, blue] = rgb((hue + 360.0) % 360.0, saturation, lightness);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn hue(kind: FrameKind) -> (f64, f64) {
    match kind {
        FrameKind::Unknown => (32.0, 0.72),
        FrameKind::Native => (38.0, 0.80),
        FrameKind::Kernel => (8.0, 0.72),
        FrameKind::Go => (192.0, 0.62),
        FrameKind::Rust => (20.0, 0.78),
        FrameKind::Jvm => (125.0, 0.42),
        FrameKind::Cpython => (212.0, 0.62),
        FrameKind::V8js => (54.0, 0.72),
        FrameKind::Dotnet => (262.0, 0.52),
        FrameKind::Php => (238.0, 0.50),
        FrameKind::Ruby => (346.0, 0.66),
        FrameKind::Perl => (172.0, 0.42),
        FrameKind::Beam => (300.0, 0.44),
        FrameKind::Luajit => (226.0, 0.62),
        FrameKind::Other => (0.0, 0.0),
    }
}

/// HSL to RGB: <https://www.w3.org/TR/css-color-4/#hsl-to-rgb>.
fn rgb(hue: f64, saturation: f64, lightness: f64) -> [u8; 3] {
    let amplitude = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|channel: f64| {
        let position = (channel + hue / 30.0) % 12.0;
        let value = lightness - amplitude * (position - 3.0).min(9.0 - position).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primary_colors_are_right() {
        assert_eq!(rgb(0.0, 1.0, 0.5), [255, 0, 0]);
        assert_eq!(rgb(120.0, 1.0, 0.5), [0, 255, 0]);
        assert_eq!(rgb(240.0, 1.0, 0.25), [0, 0, 128]);
    }

    #[test]
    fn a_name_always_has_the_same_color() {
        assert_eq!(color("main", FrameKind::Go), color("main", FrameKind::Go));
        assert_ne!(
            color("main", FrameKind::Go),
            color("main", FrameKind::Kernel)
        );
    }
}
