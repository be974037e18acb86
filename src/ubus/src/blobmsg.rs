// SPDX-License-Identifier: GPL-2.0-or-later
//! Blobmsg, the typed values inside of messages, from and to JSON.
//!
//! Every integer is sent with 64 bits, whatever its value: a counter does not
//! change its type when it grows, and none is read as a negative number when
//! it passes 2^31. All readers take both widths. Integers of every width are
//! understood.

use serde_json::{Map, Number, Value};

use super::blob::{Attribute, Attributes, Malformed, Writer, text};

/// Tables in tables beyond this are refused.
const DEPTH: usize = 16;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, JSON's null.
    Unspec = 0,
    /// Values without names.
    Array = 1,
    /// Values with names.
    Table = 2,
    /// Text.
    String = 3,
    /// 64 bits.
    Int64 = 4,
    /// 32 bits; `ubus list` calls it Integer.
    Int32 = 5,
    /// 16 bits.
    Int16 = 6,
    /// True or false.
    Bool = 7,
    /// A fraction.
    Double = 8,
}

/// Writes a value.
pub fn put(writer: &mut Writer, name: &str, value: &Value) {
    match value {
        Value::Null => named(writer, Kind::Unspec, name, |_| {}),
        Value::Bool(on) => named(writer, Kind::Bool, name, |w| w.bytes(&[u8::from(*on)])),
        Value::Number(number) => match whole(number) {
            Some(whole) => named(writer, Kind::Int64, name, |w| w.bytes(&whole.to_be_bytes())),
            None => {
                let fraction = number.as_f64().unwrap_or_default();
                named(writer, Kind::Double, name, |w| w.bytes(&fraction.to_be_bytes()));
            }
        },
        Value::String(string) => named(writer, Kind::String, name, |w| w.text(string)),
        Value::Array(items) => named(writer, Kind::Array, name, |w| {
            items.iter().for_each(|item| put(w, "", item));
        }),
        Value::Object(members) => named(writer, Kind::Table, name, |w| put_members(w, members)),
    }
}

/// Writes the members of a table.
pub fn put_members(writer: &mut Writer, members: &Map<String, Value>) {
    members.iter().for_each(|(name, value)| put(writer, name, value));
}

/// Writes a number of 32 bits.
pub fn put_int32(writer: &mut Writer, name: &str, number: i32) {
    named(writer, Kind::Int32, name, |w| w.bytes(&number.to_be_bytes()));
}

/// Writes a value that `fill` gives.
pub fn named(writer: &mut Writer, kind: Kind, name: &str, fill: impl FnOnce(&mut Writer)) {
    writer.named(kind as u8, name, fill);
}

/// Blobmsg knows signed numbers only; what is larger becomes the largest.
fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| number.as_u64().map(|_| i64::MAX))
}

/// Reads the members of a table.
pub fn members(payload: &[u8]) -> Result<Map<String, Value>, Malformed> {
    table(payload, DEPTH)
}

fn table(payload: &[u8], depth: usize) -> Result<Map<String, Value>, Malformed> {
    // Not collected: that would sort them first, which is code of its own.
    let mut members = Map::new();
    for attribute in Attributes(payload) {
        let (name, value) = value(attribute?, depth)?;
        members.insert(name, value);
    }
    Ok(members)
}

/// Name and value.
fn value(attribute: Attribute<'_>, depth: usize) -> Result<(String, Value), Malformed> {
    let depth = depth.checked_sub(1).ok_or(Malformed)?;
    let (name, data) = name(attribute)?;
    let value = match attribute.id {
        0 if data.is_empty() => Value::Null,
        1 => Attributes(data)
            .map(|attribute| Ok(value(attribute?, depth)?.1))
            .collect::<Result<Value, _>>()?,
        2 => table(data, depth)?.into(),
        3 => text(data).ok_or(Malformed)?.into(),
        4 => i64::from_be_bytes(sized(data)?).into(),
        5 => i32::from_be_bytes(sized(data)?).into(),
        6 => i16::from_be_bytes(sized(data)?).into(),
        7 => (sized::<1>(data)? != [0]).into(),
        // What JSON cannot say (NaN) becomes null.
        8 => f64::from_be_bytes(sized(data)?).into(),
        _ => return Err(Malformed),
    };
    Ok((name, value))
}

/// The name of a value, and what is behind it.
fn name(attribute: Attribute<'_>) -> Result<(String, &[u8]), Malformed> {
    let (len, rest) = attribute.payload.split_first_chunk().ok_or(Malformed)?;
    let len = usize::from(u16::from_be_bytes(*len));
    let name = rest.get(..len).ok_or(Malformed)?;
    if !attribute.extended || rest.get(len) != Some(&0) {
        return Err(Malformed);
    }
    let data = attribute.payload.get((2 + len + 1).next_multiple_of(4)..).ok_or(Malformed)?;
    Ok((String::from_utf8_lossy(name).into(), data))
}

fn sized<const N: usize>(data: &[u8]) -> Result<[u8; N], Malformed> {
    data.try_into().map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(value: &Value) -> Vec<u8> {
        let mut writer = Writer::default();
        put_members(&mut writer, value.as_object().unwrap());
        writer.finish()
    }

    #[test]
    fn json_there_and_back() {
        let value = json!({"none": null, "yes": true, "no": false, "small": 1, "minus": -1,
            "large": 1u64 << 40, "half": 0.5, "zero": 0.0, "text": "t\u{e4}xt", "": "no name",
            "list": [1, "two", [3], {}], "table": {"empty": [], "deep": {"x": 1}}});
        assert_eq!(Value::from(members(&written(&value)).unwrap()), value);
        let huge = members(&written(&json!({"huge": u64::MAX}))).unwrap();
        assert_eq!(huge["huge"], i64::MAX);
    }

    #[test]
    fn a_field_keeps_its_type_whatever_its_value() {
        let kind = |value: Value| written(&json!({"n": value}))[0] & 0x7f;
        for number in [0, 1, 1 << 31, 1 << 40, u64::MAX] {
            assert_eq!(kind(json!(number)), Kind::Int64 as u8);
        }
        for fraction in [0.0, 0.5, 1e300] {
            assert_eq!(kind(json!(fraction)), Kind::Double as u8);
        }
    }

    #[test]
    fn all_integers_are_understood() {
        let mut writer = Writer::default();
        put_int32(&mut writer, "a", -7);
        named(&mut writer, Kind::Int16, "b", |w| w.bytes(&[0xff, 0xff]));
        named(&mut writer, Kind::Double, "c", |w| w.bytes(&f64::NAN.to_be_bytes()));
        let read = members(&writer.finish()).unwrap();
        assert_eq!(Value::from(read), json!({"a": -7, "b": -1, "c": null}));
    }

    #[test]
    fn bottomless_tables_are_refused() {
        let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"in": inner}));
        assert!(members(&written(&deep(DEPTH))).is_ok());
        assert_eq!(members(&written(&deep(DEPTH + 1))), Err(Malformed));
    }

    #[test]
    fn lies_are_malformed() {
        for bytes in [
            &b"\x05\0\0\x08\0\0\0\x01"[..],     // no name where one belongs
            b"\x85\0\0\x05\0",                  // half a length of a name
            b"\x85\0\0\x0c\0\x09name\0\0",      // a name that leaves the value
            b"\x85\0\0\x0c\0\x01ab\0\0\0\0",    // a name without an end
            b"\x85\0\0\x0b\0\x01a\0\0\0\x01\0", // three bytes of four
            b"\x83\0\0\x0c\0\x01a\0text",       // a text without an end
            b"\x80\0\0\x0c\0\x01a\0\0\0\0\0",   // something in nothing
            b"\x89\0\0\x08\0\x01a\0",           // a type nobody knows
            b"\x87\0\0\x08\0\x01a\0",           // a bool without a value
        ] {
            assert_eq!(members(bytes), Err(Malformed), "{bytes:?}");
        }
    }
}
