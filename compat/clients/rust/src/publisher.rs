//! A producer that counts what the server says of its messages.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rabbitmq_stream_client::error::ProducerPublishError;
use rabbitmq_stream_client::types::Message;
use rabbitmq_stream_client::{ConfirmationStatus, NoDedup, Producer, ProducerBuilder};

use crate::connection::{Fault, Run, until};
use crate::messages::{body, message};

/// How many messages the server confirmed and refused.
#[derive(Clone, Default)]
pub struct Answers {
    confirmed: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

impl Answers {
    pub fn confirmed(&self) -> usize {
        self.confirmed.load(Ordering::SeqCst)
    }

    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    pub fn count(&self) -> usize {
        self.confirmed() + self.refused()
    }

    /// What the library calls for each message.
    pub fn counter(
        &self,
    ) -> impl Fn(Result<ConfirmationStatus, ProducerPublishError>) -> Ready<()>
    + Send
    + Sync
    + Clone
    + 'static {
        let answers = self.clone();
        move |answer| {
            let is_confirmed = answer.is_ok_and(|status| status.confirmed());
            let count = if is_confirmed { &answers.confirmed } else { &answers.refused };
            count.fetch_add(1, Ordering::SeqCst);
            ready(())
        }
    }

    /// Returns when the server has answered so many messages since the producer began.
    pub async fn wait(&self, count: usize) -> Result<(), String> {
        until(&format!("{count} confirms"), || self.count() >= count).await
    }
}

pub struct Publisher {
    producer: Producer<NoDedup>,
    pub answers: Answers,
}

impl Publisher {
    pub async fn open(run: &Run, builder: ProducerBuilder<NoDedup>) -> Result<Self, Fault> {
        let producer = builder.build(&run.stream).await?;
        let closed = producer.clone();
        run.at_end(async move {
            let _ = closed.close().await;
        });
        Ok(Self { producer, answers: Answers::default() })
    }

    /// Sends one message without waiting.
    pub async fn send(&self, message: Message) -> Result<(), Fault> {
        Ok(self.producer.send(message, self.answers.counter()).await?)
    }

    /// Sends messages `first` to `next - 1`, each by itself, and waits until all are confirmed.
    pub async fn send_all(&self, first: usize, next: usize) -> Result<(), Fault> {
        let before = self.answers.count();
        for i in first..next {
            self.send(message(i)).await?;
        }
        Ok(self.answers.wait(before + next - first).await?)
    }

    /// Sends messages at once, without waiting.
    pub async fn send_batch(&self, mark: &str, first: usize, next: usize) -> Result<(), Fault> {
        let batch = (first..next).map(|i| Message::builder().body(body(mark, i)).build()).collect();
        Ok(self.producer.batch_send(batch, self.answers.counter()).await?)
    }
}
