//! Coming back after the server was away, and being refused.

use std::time::Duration;

use rabbitmq_stream_client::Environment;
use rabbitmq_stream_client::error::{
    ClientError, ConsumerCreateError, ProducerCreateError, StreamCreateError, StreamDeleteError,
};
use rabbitmq_stream_client::types::{ByteCapacity, OffsetSpecification, ResponseCode};
use serde_json::{Value, json};

use crate::connection::{Fault, Outcome, Run};
use crate::publisher::Publisher;

/// The library only tells that a connection ended: the program opens new ones.
pub async fn reconnect(run: &Run) -> Outcome {
    let environment = run.open_with_stream().await?;
    let publisher = Publisher::open(run, environment.producer()).await?;
    publisher.send_all(0, 10).await?;
    let first = environment.consumer().offset(OffsetSpecification::First);
    let inbox = run.consume(first, &run.stream).await?;
    let before = inbox.read_numbers(10).await?;
    let behind = inbox.all().last().map_or(0, |last| last.offset + 1);
    crate::wait_for("restart")?;
    // The old ones end now: closing them later would wait for answers that never come.
    run.close().await;
    let (environment, publisher) = open_again(run).await?;
    let rest = environment.consumer().offset(OffsetSpecification::Offset(behind));
    let inbox = run.consume(rest, &run.stream).await?;
    publisher.send_all(10, 20).await?;
    let after = inbox.read_numbers(10).await?;
    Ok(json!({"before": before, "after": after, "recovery": "program"}))
}

/// A server that is just starting may listen before it knows its streams.
async fn open_again(run: &Run) -> Result<(Environment, Publisher), Fault> {
    for _ in 0..20 {
        if let Ok(opened) = open_once(run).await {
            return Ok(opened);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    open_once(run).await
}

async fn open_once(run: &Run) -> Result<(Environment, Publisher), Fault> {
    let environment = run.open().await?;
    let publisher = Publisher::open(run, environment.producer()).await?;
    Ok((environment, publisher))
}

pub async fn errors(run: &Run) -> Outcome {
    let environment = run.open().await?;
    let missing = format!("{}-x", run.stream);
    let limited = || environment.stream_creator().max_length(ByteCapacity::B(1_000_000));
    let plain = || environment.stream_creator();
    Ok(json!({
        "create": created(plain().create(&run.stream).await),
        "again": created(plain().create(&run.stream).await),
        "otherwise": created(limited().create(&run.stream).await),
        "publish_missing": match environment.producer().build(&missing).await {
            Ok(_) => json!(1),
            Err(ProducerCreateError::Create { status, .. }) => number(&status),
            Err(ProducerCreateError::StreamDoesNotExist { .. }) => json!("StreamDoesNotExist"),
            Err(fault) => json!(fault.to_string()),
        },
        "read_missing": match environment.consumer().build(&missing).await {
            Ok(_) => json!(1),
            Err(ConsumerCreateError::Create { status, .. }) => number(&status),
            Err(ConsumerCreateError::StreamDoesNotExist { .. }) => json!("StreamDoesNotExist"),
            Err(fault) => json!(fault.to_string()),
        },
        "delete_missing": deleted(environment.delete_stream(&missing).await),
        "delete": deleted(environment.delete_stream(&run.stream).await),
        "password": connected(run.builder().password("wrong").build().await),
        "vhost": connected(run.builder().virtual_host("nowhere").build().await),
    }))
}

fn number(code: &ResponseCode) -> Value {
    json!(u16::from(code))
}

fn created(outcome: Result<(), StreamCreateError>) -> Value {
    match outcome {
        Ok(()) => json!(1),
        Err(StreamCreateError::Create { status, .. }) => number(&status),
        Err(fault) => json!(fault.to_string()),
    }
}

fn deleted(outcome: Result<(), StreamDeleteError>) -> Value {
    match outcome {
        Ok(()) => json!(1),
        Err(StreamDeleteError::Delete { status, .. }) => number(&status),
        Err(fault) => json!(fault.to_string()),
    }
}

fn connected(outcome: Result<Environment, ClientError>) -> Value {
    match outcome {
        Ok(_) => json!(1),
        Err(ClientError::RequestError(code)) => number(&code),
        Err(fault) => json!(fault.to_string()),
    }
}
