//! Where a consumer begins, and what the server remembers for it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rabbitmq_stream_client::types::{OffsetSpecification, ResponseCode};
use rabbitmq_stream_client::{Client, error::ClientError};
use serde_json::{Value, json};

use crate::connection::{Fault, Outcome, Run, settle};
use crate::publisher::Publisher;

const AN_HOUR_MS: i64 = 3_600_000;

/// The scenarios "offset-…": publishes thrice, then reads.
pub async fn begin_at(run: &Run, specification: &str) -> Outcome {
    let environment = run.open_with_stream().await?;
    let publisher = Publisher::open(run, environment.producer()).await?;
    publisher.send_all(0, 10).await?;
    let mut between = 0;
    if specification == "timestamp" {
        settle().await;
        between = now_ms();
        settle().await;
    }
    publisher.send_all(10, 19).await?;
    publisher.send_all(19, 20).await?;
    // Where to begin, how many messages to expect, and whether they are still to come.
    let (offset, count, is_coming) = match specification {
        "first" => (OffsetSpecification::First, 20, false),
        "last" => (OffsetSpecification::Last, 1, false),
        "absolute" => (OffsetSpecification::Offset(5), 15, false),
        "timestamp" => (OffsetSpecification::Timestamp(between), 10, false),
        "next" => (OffsetSpecification::Next, 10, true),
        "beyond" => (OffsetSpecification::Offset(21), 9, true),
        "future" => (OffsetSpecification::Timestamp(now_ms() + AN_HOUR_MS), 10, true),
        _ => return Err(format!("no offset {specification}").into()),
    };
    let inbox = run.consume(environment.consumer().offset(offset), &run.stream).await?;
    if is_coming {
        settle().await;
        publisher.send_all(20, 30).await?;
    }
    Ok(json!({"read": inbox.read_numbers(count).await?}))
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

pub async fn tracking(run: &Run) -> Outcome {
    let environment = run.open_with_stream().await?;
    Publisher::open(run, environment.producer()).await?.send_all(0, 10).await?;
    let client = run.client().await?;
    let before = stored(&client, "app", &run.stream).await?;
    let mut found = Vec::new();
    for offset in [4, 7] {
        store(&client, "app", &run.stream, offset).await?;
        found.push(stored(&client, "app", &run.stream).await?);
    }
    let other = stored(&client, "other", &run.stream).await?;
    // The library leaves it to its user to begin behind what is stored.
    let app = environment.consumer().name("app").offset(OffsetSpecification::Offset(8));
    let read = run.consume(app, &run.stream).await?.read_numbers(2).await?;
    Ok(json!({"before": before, "stored": found, "other": other, "read": read}))
}

/// The offset that the server keeps for a name, or "none".
async fn stored(client: &Client, name: &str, stream: &str) -> Result<Value, Fault> {
    match client.query_offset(name.to_owned(), stream).await {
        Ok(offset) => Ok(json!(offset)),
        Err(ClientError::RequestError(ResponseCode::OffsetNotFound)) => Ok(json!("none")),
        Err(fault) => Err(fault.into()),
    }
}

/// Stores an offset and returns when the server tells it back: storing has no answer.
pub async fn store(client: &Client, name: &str, stream: &str, offset: u64) -> Result<(), Fault> {
    client.store_offset(name, stream, offset).await?;
    for _ in 0..2000 {
        if stored(client, name, stream).await? == json!(offset) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(format!("offset {offset} was not stored").into())
}
