// SPDX-License-Identifier: GPL-2.0-or-later
//! Objects of JSON, for answers. The macro that writes them would do, but each of its members is
//! three times the code.

use serde_json::{Map, Value};

/// An object with these members.
pub fn object(members: Vec<(&str, Value)>) -> Value {
    let mut object = Value::Object(Map::new());
    for (name, value) in members {
        object[name] = value;
    }
    object
}

/// One of numbers alone, which takes a third of that again.
pub fn numbers(members: &[(&str, u64)]) -> Value {
    // What collects into an object sorts before.
    let mut object = Value::Object(Map::new());
    for (name, value) in members {
        object[*name] = (*value).into();
    }
    object
}

/// A quotient, rounded to digits behind the point by their power of ten. Rounded as a whole number:
/// with floating point MIPS would need 2 KB of code more.
pub fn decimal(part: u64, of: u64, digits: u64) -> f64 {
    let of = of.max(1);
    (part.saturating_mul(digits).saturating_add(of / 2) / of) as f64 / digits as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_have_their_names() {
        let inner = numbers(&[("a", 1), ("b", u64::MAX)]);
        let whole = object(vec![("inner", inner), ("text", "t".into())]);
        assert_eq!(whole, json!({"inner": {"a": 1, "b": u64::MAX}, "text": "t"}));
    }

    #[test]
    fn quotients_are_rounded_at_their_last_digit() {
        assert_eq!(decimal(1, 3, 1000).to_string(), "0.333");
        assert_eq!(decimal(200, 3, 100).to_string(), "66.67");
        assert_eq!(decimal(5, 0, 10), 5.0);
        assert!(decimal(u64::MAX, 1, 1000) > 0.0);
    }
}
