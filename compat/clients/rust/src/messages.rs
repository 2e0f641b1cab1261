//! The bodies that all clients send, and what is told of those that were read.

use rabbitmq_stream_client::types::Message;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::inbox::Received;

/// The body of message `i` of a mark.
pub fn body(mark: &str, i: usize) -> Vec<u8> {
    let mut body = format!("{mark}{i}-").into_bytes();
    body.extend((0..(i * 7) % 90).map(|k| ((i + k) % 256) as u8));
    body
}

/// The body of `n` bytes that the scenario "large" sends.
pub fn body_of_size(n: usize) -> Vec<u8> {
    (0..n).map(|k| ((n + k) % 256) as u8).collect()
}

pub fn message(i: usize) -> Message {
    Message::builder().body(body("m", i)).build()
}

/// Which message a body is; an error if it is not, byte for byte, one of that mark.
pub fn number(mark: &str, found: &[u8]) -> Result<usize, String> {
    let head = found.split(|byte| *byte == b'-').next().unwrap_or_default();
    std::str::from_utf8(head)
        .ok()
        .and_then(|head| head.strip_prefix(mark)?.parse().ok())
        .filter(|i| body(mark, *i) == found)
        .ok_or_else(|| format!("not a message of mark {mark}: {found:02x?}"))
}

/// Which message one that the library hands out is; 0 if it is none of ours.
pub fn number_of(message: &Message) -> usize {
    number("m", message.data().unwrap_or_default()).unwrap_or_default()
}

/// The numbers of messages of mark m, in order of arrival.
pub fn numbers(arrived: &[Received]) -> Result<Vec<usize>, String> {
    arrived.iter().map(|each| number("m", &each.body)).collect()
}

pub fn offsets(arrived: &[Received]) -> Vec<u64> {
    arrived.iter().map(|each| each.offset).collect()
}

/// A count and one hash over all bodies in order of arrival.
pub fn summary(arrived: &[Received]) -> Value {
    let mut hash = Sha256::new();
    for each in arrived {
        hash.update((each.body.len() as u32).to_be_bytes());
        hash.update(&each.body);
    }
    json!({"count": arrived.len(), "sha256": format!("{:x}", hash.finalize())})
}
