//! What consumers were given.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{Stream, StreamExt};
use rabbitmq_stream_client::error::ConsumerDeliveryError;
use rabbitmq_stream_client::types::Delivery;

use crate::connection::until;
use crate::messages;

/// How long to wait for what should not come.
const EXCESS: Duration = Duration::from_millis(300);

/// One message, and where it came from.
#[derive(Clone)]
pub struct Received {
    pub stream: String,
    pub offset: u64,
    pub body: Vec<u8>,
}

/// Keeps what a consumer was given, in order of arrival.
#[derive(Clone, Default)]
pub struct Inbox(Arc<Mutex<Vec<Received>>>);

impl Inbox {
    /// Takes what a consumer gives, until it is closed.
    pub fn of(
        mut consumer: impl Stream<Item = Result<Delivery, ConsumerDeliveryError>>
        + Send
        + Unpin
        + 'static,
    ) -> Self {
        let inbox = Self::default();
        let filled = inbox.clone();
        tokio::spawn(async move {
            while let Some(given) = consumer.next().await {
                match given {
                    Ok(delivery) => filled.0.lock().unwrap().push(Received {
                        stream: delivery.stream().clone(),
                        offset: delivery.offset(),
                        body: delivery.message().data().unwrap_or_default().to_vec(),
                    }),
                    Err(fault) => eprintln!("consumer: {fault}"),
                }
            }
        });
        inbox
    }

    pub fn all(&self) -> Vec<Received> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Returns when so many messages are there, without waiting for more.
    pub async fn wait(&self, count: usize) -> Result<(), String> {
        until(&format!("{count} messages"), || self.count() >= count).await
    }

    /// Returns so many messages, and any that come although they should not.
    pub async fn read(&self, count: usize) -> Result<Vec<Received>, String> {
        self.wait(count).await?;
        wait_for_excess().await;
        Ok(self.all())
    }

    /// Reads like `read`, and tells which messages they are.
    pub async fn read_numbers(&self, count: usize) -> Result<Vec<usize>, String> {
        messages::numbers(&self.read(count).await?)
    }
}

pub async fn wait_for_excess() {
    tokio::time::sleep(EXCESS).await;
}
