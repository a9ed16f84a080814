// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the name that an unknown one may stand for, for messages.

/// Returns "; did you mean `x`?" if a known name is similar, else a list of all of them.
pub fn hint<S: AsRef<str>>(given: &str, known: &[S]) -> String {
    let near = known
        .iter()
        .map(AsRef::as_ref)
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= 1 + name.chars().count().min(9) / 3);
    match near {
        Some((_, name)) => format!("; did you mean `{name}`?"),
        None if known.is_empty() => "; there is none".into(),
        None => {
            let all: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
            format!("; there is `{}`", all.join("`, `"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn the_nearest_name_is_suggested() {
        let known = ["duration", "settle", "kernel"];
        assert_eq!(hint("durations", &known), "; did you mean `duration`?");
        assert_eq!(hint("kernle", &known), "; did you mean `kernel`?");
        assert_eq!(
            hint("bandwidth", &known),
            "; there is `duration`, `settle`, `kernel`"
        );
        assert_eq!(hint::<&str>("x", &[]), "; there is none");
    }
}
