package compat;

import com.rabbitmq.stream.ConfirmationStatus;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.Producer;
import com.rabbitmq.stream.ProducerBuilder;
import java.util.concurrent.atomic.AtomicInteger;

/** A producer that counts what the server says of its messages. */
final class Publisher {

  final Producer producer;
  private final AtomicInteger confirmed = new AtomicInteger();
  private final AtomicInteger refused = new AtomicInteger();

  Publisher(ProducerBuilder builder) {
    producer = builder.build();
  }

  int confirmed() {
    return confirmed.get();
  }

  int refused() {
    return refused.get();
  }

  void send(byte[] body) {
    producer.send(message(body), this::count);
  }

  void send(byte[] body, long publishingId) {
    var message = producer.messageBuilder().publishingId(publishingId).addData(body).build();
    producer.send(message, this::count);
  }

  private Message message(byte[] body) {
    return producer.messageBuilder().addData(body).build();
  }

  private void count(ConfirmationStatus answer) {
    (answer.isConfirmed() ? confirmed : refused).incrementAndGet();
  }

  /** Returns when the server has answered so many messages since the producer began. */
  void awaitAnswers(int count) {
    Run.until(count + " confirms", () -> confirmed() + refused() >= count);
  }

  /** Sends messages first to next - 1 and waits until all are confirmed. */
  void sendAll(String mark, int first, int next) {
    var before = confirmed() + refused();
    for (int i = first; i < next; i++) {
      send(Messages.body(mark, i));
    }
    awaitAnswers(before + next - first);
  }

  void sendAll(int first, int next) {
    sendAll("m", first, next);
  }

  /** Sends like sendAll, with publishing ids that count up from one. */
  void sendWithIds(int first, int next, long id) {
    var before = confirmed() + refused();
    for (int i = first; i < next; i++) {
      send(Messages.body(i), id + i - first);
    }
    awaitAnswers(before + next - first);
  }

  /** Sends one message and returns whether the server confirmed it. */
  boolean sendOne(int i) {
    var before = confirmed();
    var answered = before + refused();
    send(Messages.body(i));
    awaitAnswers(answered + 1);
    return confirmed() > before;
  }
}
